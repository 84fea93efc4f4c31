"""Reading definition files safely: regular files of bounded size, UTF-8, that do not lead out of their root."""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import dataclass

from shared.definitions.document import Fault, Unreadable
from shared.errors import ToolError
from shared.workspace import FileMissing, Location, Workspace

MAX_BYTES = 1 << 20
#: Two changes within one tick of the file system's clock look alike: a file this young is read again later.
_TICK_NS = 50_000_000
_COARSE_TICK_NS = 2_000_000_000

Stamp = tuple[int, int, int, int]


@dataclass(frozen=True)
class TextFile:
    """The text of a file, and a short fingerprint of it."""

    text: str
    digest: bytes


def stamp_of(found: os.stat_result) -> Stamp:
    """What changes when a file or folder does."""
    return (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)


def is_young(found: os.stat_result) -> bool:
    """Whether another change could still leave the same stamp."""
    tick = _TICK_NS if found.st_ctime_ns % 1_000_000_000 else _COARSE_TICK_NS
    return time.time_ns() - found.st_ctime_ns < tick


def is_inside(path: str, root: str) -> bool:
    """Whether a resolved path is a resolved root or lies beneath it."""
    return path == root or path.startswith(root.rstrip(os.sep) + os.sep)


def read_file(path: str, *, root: str) -> TextFile:
    """The text of a definition file; raises Unreadable when it must not or cannot be read."""
    real = os.path.realpath(path)
    if not is_inside(real, root):
        raise Unreadable(Fault("link-outside", f"is a link out of {root}; put the file itself there"))
    location = Location(root, tuple(filter(None, real[len(root) :].split(os.sep))))
    try:
        with os.fdopen(Workspace(root).open(location), "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileMissing:
        raise Unreadable(Fault("missing", "there is no such file, or it is a link to nothing")) from None
    except (ToolError, OSError) as error:
        raise Unreadable(Fault("unreadable", f"cannot be read: {error}")) from None
    if len(data) > MAX_BYTES:
        raise Unreadable(Fault("too-large", f"is larger than {MAX_BYTES:,} bytes, the most a definition may have"))
    return TextFile(_decoded(data), hashlib.blake2b(data, digest_size=16).digest())


def _decoded(data: bytes) -> str:
    try:
        return data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Unreadable(Fault("not-utf8", "is not UTF-8 text; save it as UTF-8", line)) from None
