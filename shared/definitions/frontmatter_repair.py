"""Mending front matter that is not YAML: only the text of fields that are prose, and never what gives rights."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from shared.definitions.document import Document, Fault, Place, Unreadable, twice
from shared.definitions.rights_keys import is_rights_key, lost_mention, plain
from shared.definitions.yaml_text import read_yaml

#: Fields that are prose, so that their text can be taken as it stands.
_PROSE = frozenset(
    (
        "description",
        "whentouse",
        "argumenthint",
        "usageguidelines",
        "compatibility",
        "license",
        "displayname",
        "summary",
        "title",
        "vibe",
        "author",
    )
)
_MAX_CHARS, _MAX_LINES = 65_536, 400  # more than that is no front matter with a slip in it
_ENTRY = re.compile(r"^([\"']?)([a-z_][A-Za-z0-9_-]*)\1[ \t]*:(?:[ \t]+|$)")
_RIGHTS_ENTRY = re.compile(r"^([\"']?)([A-Za-z_][A-Za-z0-9_-]*)\1[ \t]*:(?:[ \t]+|$)")
_MARKDOWN = re.compile(r"^\s*(?:#|```|~~~|\*)")
_BLOCK_STYLE = re.compile(r"^[|>][-+0-9]*$")


@dataclass
class Mended:
    """What could be saved of a block, with a warning for each field that was taken as plain text."""

    fields: dict[str, Any] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    damaged: frozenset[str] = frozenset()
    swallowing: frozenset[str] = frozenset()  # those that took more than their own line
    starts: dict[Place, int] = field(default_factory=dict)

    @property
    def document(self) -> Document:
        """The fields with the lines they begin on."""
        return Document(self.fields, lambda: self.starts)


@dataclass(frozen=True)
class _Entry:
    """The lines from one top-level key to the next."""

    key: str
    line: int
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def ends_in_a_word(self) -> bool:
        """Whether the last line is nothing but one word."""
        rest = [line for line in self.lines[1:] if line.strip()]
        return bool(rest) and len(rest[-1].split()) == 1

    @property
    def prose(self) -> str:
        """The value as it stands, with lines joined as YAML would join them."""
        first = self.lines[0].partition(":")[2].strip()
        rest = [line.strip() for line in self.lines[1:]]
        if _BLOCK_STYLE.match(first):
            return "\n".join(rest).strip()
        text = " ".join(filter(None, [first, *rest]))
        quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
        return text[1:-1] if quoted else text


def mend(block: str, error: Unreadable) -> Mended:
    """The fields of a block that YAML refuses; raises the error where anything but prose is damaged."""
    if any(fault.code != "yaml-unreadable" for fault in error.faults):
        raise error  # it is YAML, and was refused for what it says
    lines = block.rstrip("\n").split("\n")
    if len(block) > _MAX_CHARS or len(lines) > _MAX_LINES:
        raise error
    mended = Mended()
    entries = list(_entries(lines, error))
    damaged = [entry for entry in entries if not _take(mended, entry)]
    if any(
        entry in damaged and entry.ends_in_a_word and is_rights_key(after.key) for entry, after in pairwise(entries)
    ):
        raise error  # the word may be the first half of that key, and turn it round
    for entry in damaged:
        _mend_prose(mended, entry, [*mended.fields, *(each.key for each in damaged)], error)
    if not damaged:
        raise error  # each line is sound by itself: what is wrong lies between them
    mended.damaged = frozenset(entry.key for entry in damaged)
    mended.swallowing = frozenset(entry.key for entry in damaged if any(map(str.strip, entry.lines[1:])))
    return mended


def _entries(lines: list[str], error: Unreadable) -> Iterator[_Entry]:
    """The block cut at its top-level keys; words in capitals before a colon are text, unless they name rights."""
    starts = [(index, key) for index, line in enumerate(lines) if (key := _key_of(line)) is not None]
    before = lines[: starts[0][0]] if starts else lines
    if not starts or any(line.strip() and not line.lstrip().startswith("#") for line in before):
        raise error
    ends = [index for index, _ in starts[1:]] + [len(lines)]
    for (index, key), end in zip(starts, ends, strict=True):
        yield _Entry(key, index + 1, tuple(lines[index:end]))


def _key_of(line: str) -> str | None:
    if (found := _ENTRY.match(line)) is not None:
        return found[2]
    found = _RIGHTS_ENTRY.match(line)
    return found[2] if found is not None and is_rights_key(found[2]) else None


def _take(mended: Mended, entry: _Entry) -> bool:
    """Take an entry that is sound; False if it is damaged."""
    if (place := (entry.key,)) in mended.starts:
        raise Unreadable(twice(place, entry.line, mended.starts[place]))
    mended.starts[place] = entry.line
    try:
        value = read_yaml(entry.text).value
    except Unreadable as error:
        if any(fault.code != "yaml-unreadable" for fault in error.faults):
            raise
        return False
    if not isinstance(value, dict) or list(value) != [entry.key]:
        return False
    mended.fields[entry.key] = value[entry.key]
    return True


def _mend_prose(mended: Mended, entry: _Entry, keys: list[str], error: Unreadable) -> None:
    if plain(entry.key) not in _PROSE:
        raise error
    if any(_MARKDOWN.match(line) for line in entry.lines[1:]):
        raise error  # a body that slipped in, not a text that slipped out
    if not "".join(entry.text.split()).isprintable():
        raise error  # what cannot be seen may divide the name of a field
    if (lost := lost_mention(entry.text, keys)) is not None:
        text = f"'{entry.key}' cannot be read, and '{lost}' may be meant as a field inside it: put the text in quotes"
        raise Unreadable(Fault("yaml-unreadable", text, entry.line, entry.key))
    mended.fields[entry.key] = entry.prose
    text = f"'{entry.key}' is not valid YAML and was taken as plain text; put it in quotes. It reads: {entry.prose}"
    mended.faults.append(Fault(f"yaml-repaired:{entry.key}", text, entry.line, entry.key, "warning"))
