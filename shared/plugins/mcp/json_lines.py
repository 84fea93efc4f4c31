"""Where in a JSON text a field stands, so that an error can name the line."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s"{}\[\],:]+')


def line_of(text: str, path: Sequence[str]) -> int | None:
    """The line of the field at this path in a valid JSON text; the nearest parent's when it is absent."""
    wanted = list(path)
    best, found = 0, None
    keys: list[str | None] = []  # the current key of each open bracket; None inside an array
    expects_key = False
    for token in _TOKEN.finditer(text):
        mark = token.group()
        if mark in ("{", "["):
            keys.append("" if mark == "{" else None)
            expects_key = mark == "{"
        elif mark in ("}", "]"):
            keys.pop()
        elif mark == ",":
            expects_key = keys[-1] is not None
        elif expects_key:
            keys[-1] = json.loads(mark)
            expects_key = False
            if len(keys) > best and keys == wanted[: len(keys)]:
                best, found = len(keys), text.count("\n", 0, token.start()) + 1
    return found
