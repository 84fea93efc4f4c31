"""Excerpt: the part of a source's content that fits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shared.errors import ToolError
from shared.plugins._text import decode_file
from shared.plugins._tree import IGNORED, walk
from shared.plugins._visible import visible_line
from shared.plugins.references.source import Source
from shared.workspace import Location, Workspace

MAX_FILE_BYTES = 10_000_000
MAX_LISTED = 500


@dataclass(frozen=True)
class Excerpt:
    """Content from `offset` on; `next_offset` is where it goes on, None at the end."""

    text: str
    offset: int
    total: int

    @property
    def next_offset(self) -> int | None:
        """The offset of what comes next."""
        end = self.offset + len(self.text)
        return end if end < self.total else None

    def as_dict(self) -> dict[str, Any]:
        """The excerpt for the model."""
        answer: dict[str, Any] = {"content": self.text}
        if self.next_offset is not None:
            answer |= {"next_offset": self.next_offset, "total_chars": self.total}
        return answer


def excerpt(source: Source, workspace: Workspace, *, path: str = "", offset: int = 0, chars: int) -> Excerpt:
    """Content of a source, or of one file of a folder."""
    content = _content(source, workspace, path)
    if offset > len(content):
        raise ToolError(f"offset {offset} is past the end: reference '{source.id}' has {len(content)} characters")
    return Excerpt(content[offset : offset + chars], offset, len(content))


def _content(source: Source, workspace: Workspace, path: str) -> str:
    if source.type in ("inline", "url"):
        if path:
            raise ToolError(f"reference '{source.id}' is of type {source.type}: it has no path '{path}'")
        return source.content if source.type == "inline" else f"See {source.url} (open it with another tool)."
    space, place = source.place(workspace)
    if path:
        # Checked against the source's own folder, opened from the workspace: neither can be left.
        inner = Workspace(place.absolute).locate(path)
        place = Location(place.root, (*place.parts, *inner.parts))
    if _is_folder(space, place):
        return _listing(source, space, place)
    return decode_file(space.read(place, limit=MAX_FILE_BYTES), place.shown)[0].replace("\0", "\ufffd")


def _is_folder(space: Workspace, place: Location) -> bool:
    if not place.parts:
        return True
    try:
        with space.folder(place):
            return True
    except ToolError:
        return False  # reading it as a file says what is wrong, if anything


def _listing(source: Source, space: Workspace, place: Location) -> str:
    lines: list[str] = []
    top = source.place(space)[1]
    for found in walk(space, place, ignore=IGNORED, check=lambda: None):
        if len(lines) == MAX_LISTED:
            lines.append(f"[only the first {MAX_LISTED} files are listed]")
            break
        lines.append(visible_line("/".join(found.parts[len(top.parts) :])))
    return "\n".join(lines) or "[the folder is empty]"
