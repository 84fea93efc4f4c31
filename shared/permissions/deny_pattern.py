"""A blacklist pattern, held against a shell line in every shape it can be read in."""

from __future__ import annotations

import fnmatch
import posixpath
import re
from dataclasses import dataclass
from enum import IntEnum

from shared.permissions.unravel import UNKNOWN, Unravelled, plain_text, unravel

_LONG_FLAGS = {"--recursive": "r", "--force": "f"}
_FLAGS = re.compile(r"-[A-Za-z]{1,3}")


class Hit(IntEnum):
    """How surely a blacklist rule fits a call."""

    NO = 0
    MAYBE = 1  # part of the command is only known when the shell runs
    YES = 2


@dataclass(frozen=True)
class ShellLine:
    """A shell line, read once for all patterns."""

    texts: tuple[str, ...]
    inside: Unravelled

    @staticmethod
    def of(line: str) -> ShellLine:
        """Read a line."""
        plain = plain_text(line)
        return ShellLine((line, plain, " ".join(plain.split())), unravel(line))


@dataclass(frozen=True)
class DenyPattern:
    """One blacklist pattern, compiled for command lines and for signatures of other tools."""

    pattern: str
    raw: re.Pattern[str]
    words: tuple[str, ...]
    command: re.Pattern[str]
    flags: frozenset[str]
    operands: re.Pattern[str]

    @staticmethod
    def of(pattern: str) -> DenyPattern:
        """Compile a pattern."""
        words = plain_text(pattern).split()
        if words and not re.search(r"[*?\[]", words[0]):
            words[0] = posixpath.basename(words[0]).casefold() or words[0]
        flags, operands = _split_flags(words[1:])
        return DenyPattern(
            pattern=pattern,
            raw=re.compile(fnmatch.translate(pattern)),
            words=tuple(words),
            command=re.compile(fnmatch.translate(" ".join(words))),
            flags=frozenset(flags),
            operands=re.compile(fnmatch.translate(" ".join(operands))),
        )

    def fits_text(self, text: str) -> bool:
        """Whether the pattern fits a text as it stands."""
        return self.raw.match(text) is not None

    def hit(self, line: ShellLine) -> Hit:
        """How surely the pattern fits something in the line."""
        if any(self.raw.match(text) for text in line.texts):
            return Hit.YES
        if self.words and "(" in self.words[0]:
            return Hit.NO  # the signature of another kind of tool
        best = Hit.MAYBE if line.inside.opaque else Hit.NO
        for command in line.inside.commands:
            best = max(best, self._hit_command(command))
        return best

    def _hit_command(self, command: tuple[str, ...]) -> Hit:
        if self.command.match(" ".join(command)) or self._fits_flags(command):
            return Hit.YES
        return Hit.MAYBE if self._may_fit(command) else Hit.NO

    def _fits_flags(self, command: tuple[str, ...]) -> bool:
        """The same flags in another order, spelled apart, or with more of them."""
        if not self.flags or command[0] != self.words[0]:
            return False
        flags, operands = _split_flags(command[1:])
        flags |= {"r"} if "R" in flags else set()  # many programs take either letter for "recursive"
        return self.flags <= flags and self.operands.match(" ".join(operands)) is not None

    def _may_fit(self, command: tuple[str, ...]) -> bool:
        """Whether the words agree up to one that only the running shell knows."""
        for expected, word in zip(self.words, command, strict=False):
            if UNKNOWN in word:
                return True
            if not fnmatch.fnmatchcase(word, expected):
                return False
        return False


def _split_flags(words: list[str] | tuple[str, ...]) -> tuple[set[str], list[str]]:
    """Short flags as single letters, and the other words; wildcards are no flags."""
    flags: set[str] = set()
    operands: list[str] = []
    for word in words:
        if word in _LONG_FLAGS:
            flags.add(_LONG_FLAGS[word])
        elif _FLAGS.fullmatch(word) or (re.fullmatch(r"-[A-Za-z]{4,}", word) and len(set(word)) == len(word)):
            flags.update(word[1:])
        else:
            operands.append(word)
    return flags, operands
