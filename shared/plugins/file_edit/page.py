"""Page: a stretch of lines of a file of any size, read without loading all of it."""

from __future__ import annotations

import io
import os
from dataclasses import dataclass

from shared.cancel import CancelToken
from shared.errors import ToolError
from shared.plugins._text import Encoding, encoding_of
from shared.types import Attachment
from shared.workspace import Location, Workspace

SAMPLE = 1 << 16
LINE_CHARS = 2_000
_IMAGES = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))


@dataclass(frozen=True)
class Page:
    """Numbered lines; `next_line` is where to go on when the limit cut them off."""

    lines: tuple[str, ...]
    first: int
    next_line: int | None
    at_end: bool


def image_type(sample: bytes) -> str | None:
    """The type of an image that models can see, by its first bytes."""
    if sample.startswith(b"RIFF") and sample[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in _IMAGES if sample.startswith(magic)), None)


def read_page(
    workspace: Workspace, location: Location, *, first: int, last: int | None, chars: int, image_bytes: int,
    cancel: CancelToken,
) -> Page | Attachment:  # fmt: skip
    """Lines `first` to `last` of a text file, as many as fit; an image comes whole."""
    with os.fdopen(workspace.open(location), "rb") as stream:
        sample = stream.read(SAMPLE)
        if kind := image_type(sample):
            return _image(sample + stream.read(image_bytes + 1), kind, location, image_bytes)
        encoding = encoding_of(sample, whole=len(sample) < SAMPLE)
        if encoding is None:
            size = os.fstat(stream.fileno()).st_size
            raise ToolError(f"'{location.shown}' is a binary file of {size:,} bytes; it cannot be shown as text")
        stream.seek(len(encoding.mark))
        return _lines(stream, encoding, first, last, chars, cancel)


def _image(data: bytes, kind: str, location: Location, limit: int) -> Attachment:
    if len(data) > limit:
        raise ToolError(f"'{location.shown}' is an image of more than {limit:,} bytes, too large to be shown")
    return Attachment(kind, data, location.parts[-1])


def _lines(
    stream: io.BufferedReader, encoding: Encoding, first: int, last: int | None, chars: int, cancel: CancelToken
) -> Page:
    # Only \n ends a line, so that numbers agree with those of edits and searches.
    text = io.TextIOWrapper(stream, encoding=encoding.codec, errors="replace", newline="\n")
    kept: list[str] = []
    room, number = chars, 0
    while last is None or number < last:
        line = _line(text, cancel)
        if line is None:
            return Page(tuple(kept), first, None, at_end=True) if number >= first else _short(number, first)
        number += 1
        if number < first:
            continue
        room -= len(line) + 8
        if room < 0 and kept:
            return Page(tuple(kept), first, number, at_end=False)
        kept.append(line)
    return Page(tuple(kept), first, None, at_end=not text.read(1))


def _short(number: int, first: int) -> Page:
    if number == 0 and first == 1:
        return Page((), 1, None, at_end=True)
    raise ToolError(f"the file has {number} lines: start_line {first} is past its end")


def _line(text: io.TextIOWrapper, cancel: CancelToken) -> str | None:
    """One line without its end, its middle left out of memory when it is very long."""
    cancel.raise_if_cancelled()
    line = text.readline(LINE_CHARS + 1)
    if not line:
        return None
    extra, piece = 0, line
    while not piece.endswith("\n") and (piece := text.readline(SAMPLE)):
        cancel.raise_if_cancelled()
        extra += len(piece.rstrip("\r\n"))
    shown = line.rstrip("\n").removesuffix("\r").replace("\0", "\ufffd")
    return f"{shown} [... {extra:,} more characters in this line]" if extra else shown
