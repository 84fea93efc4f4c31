"""How a file's bytes are text: its encoding, its byte order mark and its line ends, kept through an edit."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from shared.errors import ToolError

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16: its mark begins with the other's
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(frozen=True)
class Encoding:
    """A codec and the byte order mark in front."""

    codec: str
    mark: bytes = b""

    def decode(self, data: bytes) -> str:
        """The text of a whole file."""
        return data[len(self.mark) :].decode(self.codec)

    def encode(self, text: str) -> bytes:
        """The bytes of a whole file."""
        try:
            return self.mark + text.encode(self.codec)
        except UnicodeEncodeError as error:
            char = text[error.start]
            raise ToolError(
                f"the character {char!r} cannot be written in the file's encoding, {self.codec}; use another one"
            ) from None


def encoding_of(data: bytes, *, whole: bool = True) -> Encoding | None:
    """The encoding of a file, from all of it or its beginning; None for binary data."""
    for mark, codec in _MARKS:
        if data.startswith(mark):
            return Encoding(codec, mark) if _decodes(data[len(mark) :], codec, whole=whole) else None
    if b"\0" in data:
        return None
    # Old single-byte encodings cannot be told apart; these two change nothing on the way back.
    return next(Encoding(codec) for codec in ("utf-8", "cp1252", "latin-1") if _decodes(data, codec, whole=whole))


def _decodes(data: bytes, codec: str, *, whole: bool) -> bool:
    try:
        codecs.getincrementaldecoder(codec)().decode(data, whole)
    except UnicodeDecodeError:
        return False
    return True


def decode_file(data: bytes, shown: str) -> tuple[str, Encoding]:
    """A whole file as text, with the way back."""
    encoding = encoding_of(data)
    if encoding is None:
        raise ToolError(f"'{shown}' is a binary file: it cannot be edited as text")
    return encoding.decode(data), encoding
