"""Front matter: the fields between two `---` lines at the top of a markdown file, and the body beneath.

Whatever a file is for, agent or skill, it is read here. Text that cannot be used raises `Unreadable`;
what was tolerated is in `faults`. Damage is mended only in `frontmatter_repair`, and a text in which a key
that narrows rights may have got lost is refused, because leaving it out would widen them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from shared.definitions.document import Document, Fault, Place, Unreadable
from shared.definitions.frontmatter_repair import mend
from shared.definitions.rights_keys import (
    NARROWING_KEYS,
    RIGHTS_KEYS,
    is_rights_key,
    lost_entry,
    plain,
    swallowed_entry,
)
from shared.definitions.yaml_text import read_yaml

_FENCE = re.compile(r"^---[ \t]*$", re.MULTILINE)
_OPENING = re.compile(r"\A(?:[ \t]*\n)?---[ \t]*(?:\n|\Z)")
_KEY_LINE = re.compile(r"\A[ \t]*[\"']?[A-Za-z_][\w-]*[\"']?[ \t]*:(?:\s|$)")
#: What a line of fields looks like, and the key in it.
_YAML_LINE = re.compile(r"[ \t]|-(?:[ \t]|$)|[\"']?[A-Za-z_][\w-]*[\"']?[ \t]*:(?:\s|$)")
_FIELD = re.compile(r"[\"']?([A-Za-z_][\w-]*)[\"']?[ \t]*:(?:\s|$)")
_INSIDE = re.compile(r"[ \t]*-[ \t]+\S|[ \t]+\S")
#: Keys that agents and skills have, of which one beneath the fields is hardly the beginning of a text.
_KNOWN = RIGHTS_KEYS | NARROWING_KEYS | frozenset(("name", "description", "model", "maxturns", "color", "skills"))
_COMMENT = re.compile(r"(?m)^[ \t]*#[ \t]*(?=\S)")
_HEAD_LINES = 20  # how far from the top text that looks like front matter is taken for some
_EMPTY = Document(None, dict)


@dataclass(frozen=True)
class FrontMatter:
    """The fields as they are written, the body verbatim, and what had to be tolerated to read them.

    `damaged` has the keys whose text was mended, `swallowing` those of them that took more lines than their
    own; `body_line` is the line on which the body begins.
    """

    fields: Mapping[str, Any]
    body: str
    faults: tuple[Fault, ...] = ()
    damaged: frozenset[str] = frozenset()
    swallowing: frozenset[str] = frozenset()
    body_line: int = 1
    document: Document = field(default=_EMPTY, compare=False, repr=False)

    def line(self, *place: str | int) -> int | None:
        """The line of a key, or of the nearest one around it."""
        return self.document.line(place)


def read_front_matter(text: str) -> FrontMatter:
    """The fields and the body of a markdown text; raises Unreadable for anything doubtful."""
    text = text.removeprefix("\ufeff")
    lined = text.replace("\r\n", "\n").replace("\r", "\n")
    opening = _OPENING.match(lined)
    if opening is None:
        raise Unreadable(_without(lined))
    closing = _FENCE.search(lined, opening.end())
    above = lined.count("\n", 0, opening.end())
    if closing is None:
        raise Unreadable(Fault("unclosed-frontmatter", "the front matter never ends: add a line '---' after it", above))
    block = lined[opening.end() : closing.start()]
    read = _read(block, above)
    body_line = above + block.count("\n") + 2
    body = _after(text, body_line)
    _require_rights(block, body, read.fields)
    _require_whole(block, body, body_line)
    return replace(read, body=body, faults=(*read.faults, *_remarks(block, read.fields, above)), body_line=body_line)


def _read(block: str, above: int) -> FrontMatter:
    """The fields of the text between the fences, of which `above` lines of the file stand before."""
    try:
        document = read_yaml(block)
    except Unreadable as error:
        return _mended(block, error, above)
    if document.value is None:
        return FrontMatter({}, "")
    if not isinstance(document.value, dict):
        raise Unreadable(Fault("not-an-object", "the front matter must be 'key: value' lines", above + 1))
    return FrontMatter(document.value, "", document=_shifted(document, above))


def _mended(block: str, error: Unreadable, above: int) -> FrontMatter:
    try:
        mended = mend(block, error)
    except Unreadable as final:
        raise Unreadable(*(_moved(fault, above) for fault in final.faults)) from None
    faults = tuple(_moved(fault, above) for fault in mended.faults)
    document = _shifted(mended.document, above)
    return FrontMatter(mended.fields, "", faults, mended.damaged, mended.swallowing, document=document)


def _require_whole(block: str, body: str, line: int) -> None:
    """Refuse a text in which a stray fence cuts the fields in two: the second half would count for nothing."""
    lined = re.sub(r"\r\n?", "\n", body) if "\r" in body else body
    head, fence, _ = lined.partition("\n---")
    lines = head.split("\n")
    if not fence or not all(_YAML_LINE.match(each) and each.strip() for each in lines):
        return  # a text that has an empty line or a heading is a body
    keys = {plain(found[1]) for each in lines if (found := _FIELD.match(each)) is not None}
    last = block.rstrip("\n").rpartition("\n")[2]
    goes_on = all(_INSIDE.match(each) for each in (last, head))  # a list or an object that the fence divides
    if goes_on or not keys.isdisjoint(_KNOWN):
        text = "a line '---' stands among the fields, so that those after it would not count: remove it"
        raise Unreadable(Fault("frontmatter-cut", text, line - 1))


def _require_rights(block: str, body: str, fields: Mapping[str, Any]) -> None:
    """Refuse a text in which a key that narrows rights stands, but not where it would count."""
    top = body.lstrip("\r\n").replace("\r\n", "\n").partition("\n\n")[0]
    lost = lost_entry(block, fields) or (lost_entry(top, fields) if _KEY_LINE.match(top) else None)
    nested = (
        key
        for holder, value in fields.items()
        if isinstance(value, Mapping) and not is_rights_key(holder)
        for key in value
        if isinstance(key, str) and is_rights_key(key)
    )
    present = {plain(field) for field in fields}
    lost = lost or next((key for key in nested if plain(key) not in present), None)
    prose = (value for value in fields.values() if isinstance(value, str))
    lost = lost or next(filter(None, (swallowed_entry(text, fields) for text in prose)), None)
    if lost is not None:
        text = f"'{lost}' does not stand where it counts: write it as an entry of its own between the '---' lines"
        raise Unreadable(Fault("rights-misplaced", text, field=lost))


def _remarks(block: str, fields: Mapping[str, Any], above: int) -> list[Fault]:
    """A rights key in a comment is out of force, which is worth saying when nothing stands in its place."""
    uncommented = _COMMENT.sub("", block)
    if uncommented == block or (lost := lost_entry(uncommented, fields)) is None:
        return []
    text = f"'{lost}' is in a comment and does not count; remove the comment if that is meant"
    return [Fault("rights-commented", text, above + 1, lost, "warning")]


def _without(text: str) -> Fault:
    """Why a text that does not begin with front matter is none: mostly it never was meant to have any."""
    lines = text.split("\n", _HEAD_LINES)[:_HEAD_LINES]
    fences = [index for index, line in enumerate(lines) if line.strip() == "---"]
    first = next((index for index, line in enumerate(lines) if line.strip()), 0)
    if fences and not any(line.lstrip().startswith(("```", "~~~")) for line in lines[: fences[0]]):
        after = lines[fences[0] + 1] if fences[0] + 1 < len(lines) else ""
        if _KEY_LINE.match(lines[first]) or (fences[0] == first and _KEY_LINE.match(after)):
            return Fault("no-frontmatter", "the front matter does not begin with a line '---' of its own", first + 1)
        if _KEY_LINE.match(after):
            where = "the front matter must come first: move what stands before its '---'"
            return Fault("frontmatter-not-first", where, fences[0] + 1)
    return Fault("no-frontmatter", "has no front matter, so it defines nothing", 1, severity="info")


def _after(text: str, line: int) -> str:
    """What begins on a line, as it is written."""
    ends = re.finditer(r"\r\n|\n|\r", text)
    for number, end in enumerate(ends, start=2):
        if number == line:
            return text[end.end() :]
    return ""


def _moved(fault: Fault, above: int) -> Fault:
    return fault if fault.line is None else replace(fault, line=fault.line + above)


def _shifted(document: Document, above: int) -> Document:
    def lines() -> dict[Place, int]:
        return {place: line + above for place, line in document.lines().items()}

    return Document(document.value, lines)
