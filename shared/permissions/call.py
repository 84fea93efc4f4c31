"""One tool call as permission rules see it: its signature, its shell line, its argument values."""

from __future__ import annotations

import hashlib
import json
import os
import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from shared.permissions.command import settle_path, simple_command
from shared.permissions.deny_pattern import ShellLine
from shared.permissions.unravel import plain_text
from shared.permissions.visible import is_honest

#: Tools that run a shell line, and the argument that carries it.
SHELL_TOOLS: Mapping[str, str] = {"cli": "command", "cli_based_tool": "command", "run_command": "command"}

#: Arguments next to a shell line that do not change what it does.
_HARMLESS = frozenset({"timeout", "timeout_seconds", "background", "description", "intent", "max_output_chars"})
_HERE = ("", ".", "./")
_MASKED = str.maketrans({"=": "\x1f", ",": "\x1f", "(": "\x1f", ")": "\x1f"})


@dataclass(frozen=True)
class Call:
    """A tool's name and arguments, with what rules need worked out on demand, once."""

    tool: str
    args: Mapping[str, Any]
    auto_approved: bool = False
    workspace: Path | None = None
    shell_tools: Mapping[str, str] = field(default_factory=lambda: SHELL_TOOLS, repr=False)

    @cached_property
    def shell_argument(self) -> str | None:
        """The argument that carries a shell line, if this tool has one."""
        return self.shell_tools.get(self.tool)

    @cached_property
    def command(self) -> str | None:
        """The whole shell line; None for tools that run none."""
        if self.shell_argument is None:
            return None
        given, rest = self.args.get(self.shell_argument), self.args.get("args")
        line = shlex.join(map(str, given)) if isinstance(given, list | tuple) else str(given or "")
        return f"{line} {shlex.join(map(str, rest))}" if isinstance(rest, list | tuple) and rest else line

    @cached_property
    def command_words(self) -> tuple[str, ...] | None:
        """The words of a shell line that is one simple command and nothing else about the call."""
        if self.command is None or not isinstance(self.args.get(self.shell_argument or ""), str):
            return None
        extra = (name for name in self.args if name != self.shell_argument and name not in _HARMLESS)
        if any(not self._changes_nothing(self.args[name]) for name in extra):
            return None
        return simple_command(self.command)

    @cached_property
    def shell_line(self) -> ShellLine | None:
        """The shell line, taken apart for blacklist patterns."""
        return None if self.command is None else ShellLine.of(self.command)

    @cached_property
    def signature(self) -> str:
        """The call as text: the shell line, or `tool(key=value, …)` with sorted keys."""
        return self.command if self.command is not None else self._signature(_text)

    @cached_property
    def masked_signature(self) -> str:
        """The signature with punctuation in values hidden, so that no value can pose as another argument."""
        return self._signature(lambda value: settle_path(_text(value)).translate(_MASKED))

    @cached_property
    def signatures(self) -> tuple[str, ...]:
        """The signature in every shape a blacklist pattern is held against."""
        folded = self._signature(lambda value: settle_path(plain_text(_text(value))))
        return (self.signature, plain_text(self.signature), self._signature(_text), folded)

    @cached_property
    def is_readable(self) -> bool:
        """Whether no value holds control, invisible or look-alike characters."""
        return all(is_honest(_text(value)) for value in self.args.values())

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the tool and its exact arguments."""
        text = json.dumps([self.tool, self.args], sort_keys=True, default=repr, ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def allowed_prefix(self, argument: str, prefixes: tuple[str, ...]) -> bool:
        """Whether every value of an argument lies under one of the prefixes, however it is written."""
        values = list(_values(self.args.get(argument)))
        return bool(values) and all(
            is_honest(value) and any(self._lies_under(value, prefix) for prefix in prefixes) for value in values
        )

    def denied_prefix(self, argument: str, prefix: str) -> bool:
        """Whether some value of an argument, in any spelling, starts with a prefix."""
        return any(
            form.startswith(start)
            for value in _values(self.args.get(argument))
            for form, start in _pairs(value, prefix, self.workspace)
        )

    def _signature(self, write: Any) -> str:
        pairs = (f"{str(key).translate(_MASKED)}={write(self.args[key])}" for key in sorted(self.args, key=str))
        return f"{self.tool}({', '.join(pairs)})"

    def _changes_nothing(self, value: Any) -> bool:
        here = (*_HERE, str(self.workspace)) if self.workspace is not None else _HERE
        return value is None or value == [] or value == {} or (isinstance(value, str) and value in here)

    def _lies_under(self, value: str, prefix: str) -> bool:
        if "://" in value and ".." in re.split(r"[/\\]", unquote(unquote(value))):
            return False
        if not (_is_path(value) or _is_path(prefix)):
            return value.startswith(prefix)
        if not _starts_at_border(settle_path(value), prefix):
            return False
        if "://" in value or self.workspace is None:
            return True
        return _starts_at_border(_resolved(value, self.workspace), _resolved(prefix, self.workspace))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=repr, ensure_ascii=False)


def _values(value: Any) -> Iterator[str]:
    if isinstance(value, list | tuple):
        for item in value:
            yield from _values(item)
    elif value is not None:
        yield _text(value)


def _is_path(text: str) -> bool:
    return "/" in text or "\\" in text or text.startswith(("~", ".."))


def _starts_at_border(path: str, prefix: str) -> bool:
    """A prefix without closing punctuation must end where a name ends: `src` is no prefix of `src-old/x`."""
    if not path.startswith(prefix):
        return False
    return len(path) == len(prefix) or not prefix[-1:].isalnum() or path[len(prefix)] in "/?#"


def _resolved(path: str, workspace: Path) -> str:
    """The absolute path with links followed; a closing slash is kept, because it ends a name."""
    absolute = os.path.realpath(os.path.join(workspace, os.path.expanduser(path.replace("\x00", ""))))
    return absolute + "/" if path.endswith("/") and absolute != "/" else absolute


def _pairs(value: str, prefix: str, workspace: Path | None) -> Iterator[tuple[str, str]]:
    """Spellings of a value, each with the spelling of the prefix that it must be compared to."""
    plain = plain_text(value)
    yield value, prefix
    yield plain.strip(), prefix
    yield plain.strip().casefold(), prefix.casefold()
    yield unquote(plain).removeprefix("file://"), prefix
    if not _is_path(prefix) and not _is_path(plain):
        return
    settled = posixpath.normpath(plain.replace("\\", "/"))
    yield settled, prefix
    yield settled + "/", prefix
    if workspace is not None and "://" not in plain:
        yield _resolved(plain, workspace), _resolved(prefix, workspace).rstrip("/")
