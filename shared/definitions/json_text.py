"""Reading JSON text strictly, with the lines of its keys."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from shared.definitions.document import MAX_DEPTH, Document, Fault, Place, Unreadable, too_deep, twice

_PIECE = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|\n|[^\s"{}\[\],:]+')


def read_json(text: str) -> Document:
    """The value of a JSON text; raises Unreadable for anything doubtful."""
    duplicates: list[str] = []

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(items)
        if len(made) != len(items):
            duplicates.extend(key for key, _ in items)
        return made

    try:
        value = json.loads(text, object_pairs_hook=pairs, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise Unreadable(Fault("json-unreadable", f"not valid JSON: {_reason(error, text)}", error.lineno)) from None
    except RecursionError:
        raise Unreadable(too_deep()) from None
    except ValueError as error:  # a constant or number that is refused
        raise Unreadable(Fault("json-unreadable", f"not valid JSON: {error}")) from None
    if _depth_exceeds(value, MAX_DEPTH):
        raise Unreadable(too_deep())
    if duplicates:
        raise Unreadable(*_duplicates(text))
    return Document(value, cache(lambda: dict(reversed(list(_keys(text))))))


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is no JSON number")


def _reason(error: json.JSONDecodeError, text: str) -> str:
    if not text.strip():
        return "the file is empty"
    around = text[: error.pos].rstrip()[-1:]
    if around == "," and text[error.pos : error.pos + 1] in "}]":
        return "a comma before a closing bracket; remove it"
    if text.startswith(("//", "/*", "#"), error.pos):
        return "JSON has no comments; use a .yaml file for them"
    return error.msg[:1].lower() + error.msg[1:]


def _depth_exceeds(value: Any, most: int) -> bool:
    layer = [value]
    for _ in range(most + 1):
        layer = [
            inner
            for item in layer
            if isinstance(item, dict | list)
            for inner in (item.values() if isinstance(item, dict) else item)
        ]
        if not layer:
            return False
    return True


def _duplicates(text: str) -> list[Fault]:
    seen: dict[Place, int] = {}
    faults = []
    for place, line in _keys(text):
        if place in seen and isinstance(place[-1], str):
            faults.append(twice(place, line, seen[place]))
        seen.setdefault(place, line)
    return faults


def _keys(text: str) -> Iterator[tuple[Place, int]]:
    """Each key and list entry of a valid JSON text with its line, in order."""
    line = 1
    place: list[str | int] = []  # the key or index that is being read in each open object or list
    fresh = False  # whether a list entry may begin here
    for match in _PIECE.finditer(text):
        piece = match[0]
        if piece == "\n":
            line += 1
            continue
        if fresh and piece != "]":
            if isinstance(place[-1], str):
                place[-1] = json.loads(piece) if piece.startswith('"') else ""
            if piece != "}":
                yield tuple(place), line
        fresh = False
        if piece in ("{", "["):
            place.append("" if piece == "{" else 0)
            fresh = True
        elif piece in ("}", "]"):
            place.pop()
        elif piece == "," and place:
            last = place[-1]
            place[-1] = last + 1 if isinstance(last, int) else ""
            fresh = True
