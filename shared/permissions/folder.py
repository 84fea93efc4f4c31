"""FileChannel: writes each request as a file and waits for a file with the answer."""

from __future__ import annotations

import contextlib
import json
import os
import stat
from pathlib import Path
from typing import ClassVar

from shared.cancel import CancelToken
from shared.errors import ConfigError
from shared.permissions.channel import Channel, ChannelFailed
from shared.permissions.policy import ChannelSettings
from shared.permissions.reply import MAX_REPLY, read_reply
from shared.permissions.request import Decision, PermissionRequest

POLL_SECONDS = 0.1


class FileChannel(Channel):
    """`<id>.request.json` is answered by `<id>.response.json` in the same folder, which only its owner may write."""

    name: ClassVar[str] = "file"
    one_at_a_time: ClassVar[bool] = False

    def __init__(self, folder: Path | str, *, poll_seconds: float = POLL_SECONDS) -> None:
        self._folder = Path(folder).expanduser().absolute()
        self._poll = poll_seconds
        self._closed = CancelToken()

    @staticmethod
    def from_settings(settings: ChannelSettings) -> FileChannel:
        """The folder that a policy asks for."""
        if not settings.endpoint:
            raise ConfigError("file channel: 'endpoint' must name the folder for its requests")
        return FileChannel(settings.endpoint)

    def available(self) -> bool:
        """Whether the channel has not been closed."""
        return not self._closed.is_cancelled

    def ask(self, request: PermissionRequest, ended: CancelToken) -> Decision:
        """Write the request, then look for the answer until there is one."""
        if not request.id.isalnum():
            raise ChannelFailed(f"request id {request.id!r} cannot be a file name")
        self._prepare()
        question = self._folder / f"{request.id}.request.json"
        answer = self._folder / f"{request.id}.response.json"
        try:
            _write(question, json.dumps(request.as_dict(), indent=2, default=repr).encode())
            return self._await(answer, request.id, ended)
        except OSError as error:
            raise ChannelFailed(f"{error.filename or self._folder}: {error.strerror or error}") from error
        finally:
            for path in (question, answer):
                with contextlib.suppress(OSError):
                    path.unlink()

    def close(self) -> None:
        """Deny what waits, ask nothing any more."""
        self._closed.cancel("closed")

    def _await(self, answer: Path, request_id: str, ended: CancelToken) -> Decision:
        """A file that is not valid is read once more, unchanged, before it counts: it may be half written."""
        doubtful: bytes | None = None
        while not ended.wait(self._poll):
            if self._closed.is_cancelled:
                raise ChannelFailed("the file channel is closed")
            data = _read(answer)
            if data is None:
                continue
            try:
                return read_reply(data, request_id)
            except ChannelFailed:
                if data == doubtful:
                    raise
                doubtful = data
        raise ChannelFailed("the question was closed without an answer")

    def _prepare(self) -> None:
        if self._closed.is_cancelled:
            raise ChannelFailed("the file channel is closed")
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = self._folder.stat()
        if hasattr(os, "geteuid") and (found.st_uid != os.geteuid() or found.st_mode & 0o022):
            raise ChannelFailed(f"{self._folder} can be written by others, so an answer in it proves nothing")


def _write(path: Path, data: bytes) -> None:
    """Write under another name first, so that a watcher never sees half a request."""
    draft = path.with_suffix(".draft")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    os.replace(draft, path)


def _read(path: Path) -> bytes | None:
    """The file's bytes; None while it is missing or empty. Links and special files are refused."""
    flags = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ChannelFailed(f"{path.name} is not a regular file")
        return file.read(MAX_REPLY + 1) or None
