"""The keys of front matter that narrow what an agent may do, under every name that is in use for them."""

from __future__ import annotations

import re
from collections.abc import Collection
from difflib import get_close_matches

from shared.definitions.tool_names import our_names

#: As `plain` has them, so that `allowed-tools`, `allowed_tools` and `allowedTools` are one.
RIGHTS_KEYS = frozenset(
    (
        "tools",
        "allowedtools",
        "disallowedtools",
        "deniedtools",
        "excludedtools",
        "blockedtools",
        "permission",
        "permissions",
        "permissionmode",
    )
)
#: Fields that take something away besides tools: one that is misspelt must not be left out.
NARROWING_KEYS = frozenset(("allowagents", "candelegatetoagents", "disable", "hidden", "plugins", "visibility"))
#: Words that are no key, but can only be meant as one of these.
_MEANT_AS = {
    **dict.fromkeys(("allow", "allowed"), "allowedtools"),
    **dict.fromkeys(
        ("deny", "denied", "disallow", "disallowed", "forbidden", "blocked", "excluded"), "disallowedtools"
    ),
}
_WORDS = (
    r"(?:(?:allowed|disallowed|denied|excluded|blocked)[-_ ]?tools|tools|permissions?(?:[-_ ]?mode)?)(?![A-Za-z0-9_-])"
)
#: A rights key with its colon, anywhere in a text.
_MENTION = re.compile(rf"(?i)(?<![A-Za-z0-9_-])({_WORDS})[\"']?\s*:")
#: A line that begins as a rights key would, with or without its colon.
_LINE = re.compile(rf"(?im)^[ \t>|\"'?-]*({_WORDS[: _WORDS.rindex('(?!')]})(?![A-Za-z])")
#: The same at the margin and with its colon: an entry of its own, whatever surrounds it.
_ENTRY = re.compile(rf"(?im)^[^\w\s#]{{0,3}}({_WORDS})[\"']?[ \t]*:")
#: A rights key after whatever stands before it, with the rest of its line and the list or object beneath.
_SWALLOWED = re.compile(
    r"(?i)((?:(?:dis)?allowed|denied|excluded|blocked)?[-_]?tools|permissions?|permission[-_]?mode)[\"']?[ \t]*:"
    r"[ \t]*([^\n]*(?:\n[ \t]*(?:-[ \t]+[^\n]*|[\w\"'*-]+:[ \t]*(?:allow|ask|deny|true|false)[ \t]*(?=\n|$)))*)"
)
_WORD = re.compile(r"\w[\w-]*")
#: What stands beneath rights keys besides names of tools.
_VALUES = frozenset(("allow", "ask", "deny", "true", "false", "plan", "default", "acceptEdits", "bypassPermissions"))


def plain(key: str) -> str:
    """A key without the differences between styles of writing."""
    return key.replace("-", "").replace("_", "").replace(" ", "").lower()


def is_rights_key(key: str) -> bool:
    """Whether a key narrows rights."""
    return plain(key) in RIGHTS_KEYS


def nearly_rights_key(key: str) -> str | None:
    """The rights key that a misspelt one probably is, or that is a part of it because a colon got lost."""
    for word in dict.fromkeys(map(plain, (key, *key.split()))):
        close = get_close_matches(word, sorted(RIGHTS_KEYS), n=1, cutoff=0.75)
        if close and abs(len(close[0]) - len(word)) <= 2:
            return close[0]
    return None


def nearly_narrowing_key(key: str) -> str | None:
    """The field that takes something away which an unknown one is probably meant to be."""
    if (meant := nearly_rights_key(key) or _MEANT_AS.get(plain(key))) is not None:
        return meant
    close = get_close_matches(plain(key), sorted(NARROWING_KEYS), n=1, cutoff=0.8)
    return close[0] if close else None


def swallowed_entry(text: str, fields: Collection[str]) -> str | None:
    """A rights key in the lines of a text that is sound, where only a lost line break can have put it.

    Prose has such words as well, so it counts only if nothing but tools, or what is done with them, follows.
    """
    if "\n" not in text:
        return None
    present = {plain(field) for field in fields}
    for key, rest in _SWALLOWED.findall(text):
        words = _WORD.findall(rest)
        if (
            words
            and plain(key) not in present
            and all(word in _VALUES or our_names(word) is not None for word in words)
        ):
            return str(key)
    return None


def lost_entry(text: str, fields: Collection[str]) -> str | None:
    """A rights key that stands at the margin of a text as an entry would, and that is none of the fields."""
    return _first_lost(_ENTRY, text, fields)


def lost_mention(text: str, fields: Collection[str]) -> str | None:
    """A rights key that may have been swallowed by a damaged text, and that is none of the fields.

    In a text that is damaged already a misspelt key counts as one, and so does a line that begins with one.
    """
    if (
        found := _first_lost(_MENTION, text, fields) or _first_lost(_LINE, text.partition("\n")[2], fields)
    ) is not None:
        return found
    present = {plain(field) for field in fields}
    for line in text.split("\n")[1:]:
        first = next(iter(line.split()), "")
        if (meant := nearly_rights_key(first)) is not None and meant not in present:
            return first
    for line in text.split("\n"):
        for before in line.split(":")[:-1]:
            words = before.split()[-2:]
            for word in (words[-1:], words):
                meant = _meant("".join(word).strip("\"'-> "))
                if meant is not None and meant not in present:
                    return " ".join(word)
    return None


def _meant(word: str) -> str | None:
    """The rights key in a word of a damaged text, perhaps with the end of the line before in front of it."""
    ends = (key for key in sorted(RIGHTS_KEYS, key=len, reverse=True) if plain(word).endswith(key))
    return next(ends, None) or nearly_rights_key(word)


def _first_lost(pattern: re.Pattern[str], text: str, fields: Collection[str]) -> str | None:
    present = {plain(field) for field in fields}
    return next((found for found in pattern.findall(text) if plain(found) not in present), None)
