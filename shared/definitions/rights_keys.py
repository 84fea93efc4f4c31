"""The keys of front matter that narrow what an agent may do, under every name that is in use for them."""

from __future__ import annotations

import re
from collections.abc import Collection
from difflib import get_close_matches

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
_WORDS = (
    r"(?:(?:allowed|disallowed|denied|excluded|blocked)[-_ ]?tools|tools|permissions?(?:[-_ ]?mode)?)(?![A-Za-z0-9_-])"
)
#: A rights key with its colon, anywhere in a text.
_MENTION = re.compile(rf"(?i)(?<![A-Za-z0-9_-])({_WORDS})[\"']?\s*:")
#: A line that begins as a rights key would, with or without its colon.
_LINE = re.compile(rf"(?im)^[ \t>|\"'?-]*({_WORDS[: _WORDS.rindex('(?!')]})(?![A-Za-z0-9])")
#: The same at the margin and with its colon: an entry of its own, whatever surrounds it.
_ENTRY = re.compile(rf"(?im)^[^\w\s#]{{0,3}}({_WORDS})[\"']?[ \t]*:")


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
