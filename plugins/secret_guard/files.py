"""Which calls open files that hold credentials: by a path argument, or by a word of a command line."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

#: Arguments that hold a command line; every other text is looked at as a path.
COMMANDS = ("command", "cmd", "script")
#: Arguments of tools that write: what stands in them is content, not a path.
CONTENTS = frozenset(
    {"content", "contents", "text", "old_text", "new_text", "old_string", "new_string", "pattern", "query"}
)
_DUMPS = re.compile(r"(?:^|[;&|(`\n]\s*)(?:printenv\b|env\s*(?:$|[;&|)`\n])|export\s+-p\b|set\s*(?:$|[;&|)`\n]))")
_BREAKS = re.compile(r"[\s;&|()<>`=,:\"']+")
_SPACE = re.compile(r"\s")
MAX_PATH = 1_000


class SecretFiles:
    """Globs of files that are not opened, without those that are harmless or were allowed."""

    def __init__(self, blocked: Iterable[str], allowed: Iterable[str]) -> None:
        self._blocked, self._allowed = tuple(blocked), tuple(allowed)

    def reason(self, args: Mapping[str, Any]) -> str | None:
        """Why a call is refused; None if it may go ahead."""
        for key, value in args.items():
            for text in _texts(value):
                if key in COMMANDS:
                    if _DUMPS.search(text):
                        return "it prints the whole environment"
                    if path := next((word for word in _words(text) if self.holds(word)), None):
                        return f"'{path}' holds credentials"
                elif _is_path(key, text) and self.holds(text):
                    return f"'{text}' holds credentials"
        return None

    def holds(self, path: str) -> bool:
        """Whether a path is that of a file with credentials."""
        if not path or len(path) > MAX_PATH or "\n" in path:
            return False
        plain = posixpath.normpath(path.replace("\\", "/")).lower()
        return _fits(plain, self._blocked) and not _fits(plain, self._allowed)


def _fits(path: str, globs: Iterable[str]) -> bool:
    name = posixpath.basename(path)
    for glob in map(str.lower, globs):
        if fnmatchcase(name, glob) if "/" not in glob else fnmatchcase(f"/{path.lstrip('/')}", f"*/{glob.lstrip('/')}"):
            return True
    return False


def _is_path(key: str, text: str) -> bool:
    """Whether an argument is a path: by its name, or because it is one word; a sentence may end in `.env`."""
    return key not in CONTENTS and ("path" in key or "file" in key or not _SPACE.search(text))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _texts(item)


def _words(line: str) -> list[str]:
    """What could be a path in a command line: its words as the shell has them, and as they are written."""
    try:
        found = shlex.split(line)
    except ValueError:
        found = []
    return [part for word in (*found, line) for part in _BREAKS.split(word) if part]
