"""One server entry, checked field by field and with `${VAR}` filled in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from shared.config import env
from shared.errors import ConfigError, unknown_name
from shared.plugins.mcp.json_lines import line_of

Transport = Literal["stdio", "http", "sse"]

_TRANSPORTS: Mapping[str, Transport] = {
    "stdio": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamable_http": "http",
    "streamableHttp": "http",
    "sse": "sse",
}
_PROGRAM_KEYS = ("command", "args", "env", "cwd")
_WEB_KEYS = ("url", "headers")
#: Keys of other clients that mean nothing here; what they would allow stays forbidden.
_IGNORED = {"description", "autoApprove", "alwaysAllow"}
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


@dataclass(frozen=True)
class ServerSpec:
    """How to reach one server: a program to start, or a URL."""

    name: str
    source: str
    transport: Transport
    command: str = ""
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str | None = None
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Place:
    """Where an entry was written, to say so in errors."""

    path: Path | None
    text: str = field(repr=False)
    root: tuple[str, ...]

    def error(self, fields: tuple[str, ...], message: str) -> ConfigError:
        """An error that names file, line and field."""
        steps = (*self.root, *fields)
        line = line_of(self.text, steps) if self.path else None
        where = f"{self.path}{f':{line}' if line else ''}" if self.path else "plugin 'mcp'"
        return ConfigError(f"{where}: {'.'.join(steps)}: {message}")


def read_entry(name: str, raw: Any, *, place: Place, source: str, workspace: Path) -> ServerSpec:
    """The checked form of one entry; ConfigError with file, line and field otherwise."""
    if not name.strip():
        raise place.error((name,), "a server needs a name")
    if not isinstance(raw, Mapping):
        raise place.error((name,), f"expected an object with 'command' or 'url', got {_kind(raw)}")
    reader = _Reader(name, raw, place)
    reader.check_keys()
    transport = reader.transport()
    if transport == "stdio":
        cwd = workspace / Path(reader.text("cwd") or ".").expanduser()
        return ServerSpec(
            name, source, transport, reader.text("command"), reader.texts("args"), reader.table("env"), str(cwd)
        )
    return ServerSpec(name, source, transport, url=reader.url(), headers=reader.headers())


class _Reader:
    """Takes typed values out of one entry."""

    def __init__(self, name: str, raw: Mapping[str, Any], place: Place) -> None:
        self._name = name
        self._raw = raw
        self._place = place

    def check_keys(self) -> None:
        known = {*_PROGRAM_KEYS, *_WEB_KEYS, "type", "disabled"}
        for key in self._raw:
            if key not in known and key not in _IGNORED:
                raise self._error((key,), unknown_name("key", key, known))
        if not isinstance(self._raw.get("disabled", False), bool):
            raise self._error(("disabled",), f"expected true or false, got {_kind(self._raw['disabled'])}")

    def transport(self) -> Transport:
        kind = self._raw.get("type")
        if kind is not None and (not isinstance(kind, str) or kind not in _TRANSPORTS):
            raise self._error(("type",), f"expected one of stdio, http, streamable-http, sse, got {kind!r}")
        if ("command" in self._raw) == ("url" in self._raw):
            raise self._error((), "expected either 'command' (a program) or 'url' (a web address): give one of them")
        found: Transport = _TRANSPORTS[kind] if kind else "stdio" if "command" in self._raw else "http"
        needed, foreign = ("command", _WEB_KEYS) if found == "stdio" else ("url", _PROGRAM_KEYS)
        for key in foreign:
            if key in self._raw:
                raise self._error((key,), f"does not belong to a server of type {found}, which takes '{needed}'")
        return found

    def text(self, key: str) -> str:
        value = self._raw.get(key, "")
        if not isinstance(value, str) or (key in ("command", "url") and not value.strip()):
            raise self._error((key,), f"expected a text, got {_kind(value)}")
        return self._expanded(value, key)

    def texts(self, key: str) -> tuple[str, ...]:
        value = self._raw.get(key, [])
        if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
            raise self._error((key,), f'expected a list of texts such as ["-y", "server"], got {_kind(value)}')
        return tuple(self._expanded(item, key) for item in value)

    def table(self, key: str) -> dict[str, str]:
        value = self._raw.get(key, {})
        if not isinstance(value, Mapping):
            raise self._error((key,), f"expected an object of texts, got {_kind(value)}")
        for name, item in value.items():
            if not isinstance(item, str):
                raise self._error((key, name), f"expected a text, got {_kind(item)}: put it in quotes")
        return {name: self._expanded(item, key, name) for name, item in value.items()}

    def headers(self) -> dict[str, str]:
        found = self.table("headers")
        for name, value in found.items():
            if not (name + value).isascii() or not (name + value).isprintable() or not name:
                raise self._error(("headers", name), "expected printable ASCII characters, as HTTP headers have")
        return found

    def url(self) -> str:
        found = self.text("url")
        try:
            parts = urlsplit(found)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:  # such as a port that is no number
            usable = False
        if not usable:
            raise self._error(("url",), "expected an address such as https://host:port/mcp")
        return found

    def _expanded(self, text: str, *fields: str) -> str:
        def fill(match: re.Match[str]) -> str:
            value = env(match[1]) or match[2]
            if value is None:
                hint = f"set it, or write ${{{match[1]}:-default}}"
                raise self._error(fields, f"the environment variable '{match[1]}' is not set: {hint}")
            return value

        return _VARIABLE.sub(fill, text)

    def _error(self, fields: tuple[str, ...], message: str) -> ConfigError:
        return self._place.error((self._name, *fields), message)


def _kind(value: Any) -> str:
    names: dict[type, str] = {
        dict: "an object",
        list: "a list",
        str: "a text",
        bool: "true or false",
        type(None): "null",
    }
    return "an empty text" if value == "" else names.get(type(value), f"the number {value!r}")
