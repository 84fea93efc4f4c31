"""Text for a person's eyes: nothing in it can hide, move the cursor or turn the reading direction."""

from __future__ import annotations


def visible(text: str) -> str:
    """The text with every control and invisible character written out as an escape."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in "\n\t" else _escaped(char) for char in text)


def visible_line(text: str) -> str:
    """The same on one line: no name can fake a second one."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")
