"""Whether a shell line is exactly one simple command, and whether a whitelist pattern covers it.

The grammar accepted here is a small, boring part of what a shell takes. Whatever is outside of it
(operators, expansions, redirections, assignments, escapes, odd characters) may well be harmless, but
it is not what the author of a pattern such as `git *` had in mind, so it is asked about instead.
"""

from __future__ import annotations

import fnmatch
import os
import posixpath
import re
from dataclasses import dataclass

from shared.permissions.handover import hands_on_more
from shared.permissions.visible import is_stable, mixes_scripts

#: Stands for a blank inside a quoted word, so that a blank in a pattern only matches between words.
INNER_BLANK = "\x1f"

#: Programs that run what their arguments say: a pattern covers them only if it names them itself.
_RUNNERS = (
    ". ash bash builtin busybox chroot command coproc csh dash doas env eval exec find fish flock ionice ksh "
    "nice nohup parallel runuser script setsid sh source ssh stdbuf strace su sudo taskset tcsh time timeout "
    "trap unshare watch xargs zsh"
)
RUNNERS = frozenset(_RUNNERS.split())

_KEYWORDS = "if then else elif fi case esac for select while until do done in function time coproc"
_RESERVED = frozenset(_KEYWORDS.split())
_QUOTED = r"""'(?P<single>[^']*)'|"(?P<double>(?:[^"\\$`]|\\["\\]|\\(?=[^"\\$`]))*)\""""
_LINE_TOKEN = re.compile(rf"(?P<blank>[ \t]+)|(?P<plain>[A-Za-z0-9_@%+=:,./^~*?\[\]-]+)|{_QUOTED}")
_PATTERN_TOKEN = re.compile(rf"(?P<blank>[ \t]+)|(?P<plain>[^\s'\"\\$`;&|<>(){{}}#\x00-\x1f]+)|{_QUOTED}")
_PROGRAM = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_.+/-]*(?=[ \t]|\Z)")
_SUBSTITUTION = re.compile(r"`|\$[({\[]")
_NOT_IN_CMD_EXE = re.compile(r"['%^!]")


def simple_command(line: str) -> tuple[str, ...] | None:
    """The words of a line that is one simple command; None for anything else.

    Blanks inside a quoted word come back as `INNER_BLANK`. Substitutions are refused even inside single
    quotes, because some shell builtins evaluate their arguments a second time.
    """
    text = line.strip(" \t")
    program = _PROGRAM.match(text)
    if program is None or program[0] in _RESERVED or _SUBSTITUTION.search(text) or not _is_readable(text):
        return None
    if os.name == "nt" and _NOT_IN_CMD_EXE.search(text):
        return None
    return _words(text, _LINE_TOKEN)


@dataclass(frozen=True)
class CommandPattern:
    """A whitelist pattern for command lines, compiled; it never covers more than one command."""

    pattern: str
    words: tuple[str, ...]
    regex: re.Pattern[str] | None

    @staticmethod
    def of(pattern: str) -> CommandPattern:
        """Compile a pattern; one that could only fit several commands fits nothing."""
        words = _words(pattern.strip(" \t"), _PATTERN_TOKEN)
        if not words:
            return CommandPattern(pattern, (), None)
        return CommandPattern(pattern, words, re.compile(fnmatch.translate(" ".join(words))))

    def covers(self, words: tuple[str, ...] | None) -> bool:
        """Whether the pattern covers a command given as the words of `simple_command`."""
        if self.regex is None or words is None:
            return False
        if posixpath.basename(words[0]) in RUNNERS and words[0] != self.words[0]:
            return False
        if hands_on_more(words, self.words):
            return False
        if not self.regex.match(" ".join(words)):
            return False
        settled = tuple(settle_path(word) for word in words)
        return settled == words or self.regex.match(" ".join(settled)) is not None


def covers(pattern: str, line: str) -> bool:
    """Whether a whitelist pattern covers a command line."""
    return CommandPattern.of(pattern).covers(simple_command(line))


def settle_path(word: str) -> str:
    """The word with `..` steps taken, so that `src/../../etc` does not look like something in `src`."""
    if ".." not in word:
        return word
    head, sign, path = word.rpartition("=")
    if ".." not in path.replace("\\", "/").split("/"):
        return word
    return head + sign + posixpath.normpath(path.replace("\\", "/"))


def _words(text: str, token: re.Pattern[str]) -> tuple[str, ...] | None:
    words: list[str] = []
    word: str | None = None
    position = 0
    while position < len(text):
        found = token.match(text, position)
        if found is None:
            return None
        position = found.end()
        if found["blank"] is not None:
            words += [] if word is None else [word]
            word = None
        else:
            word = (word or "") + (found["plain"] or _unquoted(found))
    return tuple(words if word is None else [*words, word])


def _unquoted(found: re.Match[str]) -> str:
    text = found["single"] if found["single"] is not None else re.sub(r'\\(["\\])', r"\1", found["double"] or "")
    return re.sub(r"[ \t]", INNER_BLANK, text)


def _is_readable(text: str) -> bool:
    """Whether a person who reads the text sees what the shell sees."""
    if any(not (char == "\t" or " " <= char <= "~" or _is_honest(char)) for char in text):
        return False
    return not any(mixes_scripts(run) for run in re.findall(r"[^\W\d_]+", text))


def _is_honest(char: str) -> bool:
    return char.isalnum() and is_stable(char)
