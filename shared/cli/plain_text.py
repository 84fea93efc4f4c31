"""Text from models and tools as a terminal may show it: nothing in it can move the cursor, colour or reorder."""

from __future__ import annotations

import re

#: Control characters but tab and newline, reading-direction overrides, invisible tags, halves of characters.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f\ud800-\udfff]")
_BREAKS = re.compile("[\u2028\u2029]")


def plain(text: str) -> str:
    """The text without control characters; it can be cleaned piece by piece, as it streams in."""
    if text.isascii() and text.isprintable():
        return text
    return _BREAKS.sub("\n", _UNSAFE.sub("", text)).expandtabs(4)


def plain_line(text: str, limit: int = 200) -> str:
    """The same as one line of limited length."""
    line = " ".join(plain(text).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def whole(text: str) -> str:
    """What was typed, with a question mark for every byte that is no character: nobody could send or store it."""
    return text.encode("utf-8", "replace").decode("utf-8")
