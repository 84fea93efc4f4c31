"""Which characters a person can see, and how to write out those they cannot."""

from __future__ import annotations

import unicodedata

#: Letters and marks that count as printable but leave no ink.
_NO_INK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0") | frozenset(map(chr, range(0xFE00, 0xFE10)))


def is_visible(char: str) -> bool:
    """Whether a character shows, stays in place, and leaves the reading direction alone."""
    return char.isprintable() and char not in _NO_INK


def visible(text: str) -> str:
    """The text with every control, invisible and bidirectional character written out."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if char in "\n\t" or is_visible(char) else _escaped(char) for char in text)


def is_stable(text: str) -> bool:
    """Whether the text is all visible and holds no compatibility look-alikes such as wide letters."""
    if text.isascii():
        return all(char.isprintable() or char in "\n\t\r" for char in text)
    seen = all(is_visible(char) or char in "\n\t\r" for char in text)
    return seen and unicodedata.normalize("NFKC", text) == text


def is_honest(text: str) -> bool:
    """Whether the text is all visible, and folding look-alikes would not turn it into another path."""
    if text.isascii():
        return is_stable(text)
    if not all(is_visible(char) or char in "\n\t\r" for char in text):
        return False
    return _steps(unicodedata.normalize("NFKC", text)) == _steps(text)


def _steps(text: str) -> tuple[int, int]:
    parts = text.replace("\\", "/").split("/")
    return len(parts), parts.count("..")


def mixes_scripts(letters: str) -> bool:
    """Whether Latin letters stand next to others in one word, as they do in a faked one."""
    if letters.isascii():
        return False
    latin = [unicodedata.name(char, "").startswith("LATIN") for char in letters]
    return any(latin) and not all(latin)


def _escaped(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
