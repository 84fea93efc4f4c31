"""Arguments of a skill: `$ARGUMENTS`, `$ARGUMENTS[N]` and `$N` in its body, filled in with one pass."""

from __future__ import annotations

import re
from collections.abc import Mapping

# A double quote groups anywhere (--name="a b"); a single one only where a word or a value begins, so that the
# apostrophe of "don't" does not.
_WORD = re.compile(r"""(?:"[^"]*"|(?:(?<=\s)|(?<=\A)|(?<==))'[^']*'|\S)+""")
_QUOTED = re.compile(r""""([^"]*)"|(?:(?<=\s)|(?<=\A)|(?<==))'([^']*)\'""")
_MARK = re.compile(
    r"(?P<escape>\\*)\$(?:ARGUMENTS(?:\[(?P<index>\d{1,6})\]|(?P<all>(?!\w)))|(?P<number>\d{1,6})(?!\w))"
    r"|(?P<variable>\$\{[A-Z_]+\}|\{baseDir\})"
)


def split_arguments(text: str) -> list[str]:
    """Words, with quoted ones kept together and without their quotes; an open quote is a character like any other."""
    return [_QUOTED.sub(lambda found: found[1] or found[2] or "", word) for word in _WORD.findall(text)]


def fill_in(body: str, arguments: str = "", *, variables: Mapping[str, str] | None = None) -> str:
    """The body with its marks replaced; what was inserted is never looked at again.

    Without arguments `$1` stays, because it mostly stands in a shell sample then. Arguments for which the
    body has no mark are appended. One backslash before a mark takes it literally. `variables` are such as
    `${CLAUDE_SKILL_DIR}`, and those that are not known stay.
    """
    given, words, known = arguments.strip(), split_arguments(arguments), variables or {}
    used = False

    def replaced(found: re.Match[str]) -> str:
        nonlocal used
        if (variable := found["variable"]) is not None:
            return known.get(variable, variable)
        number = found["number"]
        if number is not None and not given:
            return found[0]
        if found["escape"] == "\\":
            return found[0][1:]
        used = True
        index = number if number is not None else found["index"]
        value = given if index is None else _at(words, int(index))
        return found["escape"] + value

    filled = _MARK.sub(replaced, body)
    if used or not given:
        return filled
    return f"{filled.rstrip()}\n\nARGUMENTS: {given}" if filled.strip() else f"ARGUMENTS: {given}"


def _at(words: list[str], index: int) -> str:
    return words[index] if index < len(words) else ""
