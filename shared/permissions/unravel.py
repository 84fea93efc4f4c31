"""Every command that a shell line might run, found generously: what blacklist patterns are held against.

The opposite temper of `command.py`: quotes, escapes, wrappers, substitutions, assignments and odd
characters are undone as far as reasonable. What stays unknown until the shell runs is marked with `UNKNOWN`.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field

from shared.permissions.command import RUNNERS

#: Stands in a word for text that only the running shell knows.
UNKNOWN = "\x00"

SHELLS = frozenset({".", "ash", "bash", "csh", "dash", "eval", "fish", "ksh", "sh", "source", "tcsh", "zsh"})
_LEADERS = frozenset({"if", "then", "else", "elif", "while", "until", "do", "!", "{", "in", "coproc"})
_MAX_DEPTH = 6
_MAX_COMMANDS = 400
_MAX_CHARS = 40_000
_INTERPRETERS = re.compile(r"(python|perl|ruby|node|php|lua|[gmn]?awk)[\d.]*$")
_LITERAL = re.compile(r"""(["'`])(.+?)\1""", re.DOTALL)
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)\+?=(.*)", re.DOTALL)
_BRACES = re.compile(r"([^{}]*)\{([^{}]*,[^{}]*)\}([^{}]*)")
_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_]\w*)([^}]*)\}|([A-Za-z_]\w*)|[@*0-9#?!$-]|\{[@*0-9][^}]*\})")
_DEFAULT = re.compile(r":?[-=](.*)", re.DOTALL)
_ANSI = re.compile(r"\\(x[0-9A-Fa-f]{1,2}|u[0-9A-Fa-f]{1,4}|[0-7]{1,3}|.)", re.DOTALL)
_ANSI_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "f": "\f", "v": "\v"}


@dataclass(frozen=True)
class Unravelled:
    """What a line runs: commands as words, program name first and without its folder."""

    commands: tuple[tuple[str, ...], ...]
    opaque: bool  # some program is only known when the shell runs


def unravel(line: str) -> Unravelled:
    """Find the commands in a shell line."""
    found = _Findings()
    _read(plain_text(line), found, depth=0)
    if any(words[0] in SHELLS for words in found.commands):
        printed = [" ".join(words[1:]) for words in found.commands if words[0] in ("echo", "printf")]
        for text in [*found.texts, *printed]:
            _read(text, found, depth=1)
    return Unravelled(tuple(found.commands), found.opaque)


def plain_text(text: str) -> str:
    """The text without invisible characters and with compatibility look-alikes folded."""
    if text.isascii():
        return text
    folded = unicodedata.normalize("NFKC", text)
    return "".join(char for char in folded if unicodedata.category(char) != "Cf")


@dataclass
class _Findings:
    commands: list[tuple[str, ...]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)  # words that hold blanks: scripts, perhaps
    variables: dict[str, str] = field(default_factory=dict)
    opaque: bool = False


def _read(text: str, found: _Findings, *, depth: int) -> None:
    if depth > _MAX_DEPTH or len(text) > _MAX_CHARS or len(found.commands) > _MAX_COMMANDS:
        found.opaque = True
        return
    _Reader(text.replace("\\\n", ""), found, depth).read()


def _note(words: list[str], found: _Findings, depth: int) -> None:
    """Record one command, and those its program would run in turn."""
    words = [part for word in words for part in _braces(word)]
    while words and (words[0] in _LEADERS or _assigned(words[0], found)):
        words = words[1:]
    if not words or len(found.commands) > _MAX_COMMANDS:
        found.opaque = found.opaque or bool(words)
        return
    program = os.path.basename(words[0].replace("\\", "/")).casefold().removesuffix(".exe")
    found.commands.append((program, *words[1:]))
    found.texts += [word for word in words[1:] if re.search(r"\s", word)]
    if UNKNOWN in words[0] or re.search(r"[*?\[]", words[0]):
        found.opaque = True
    if _INTERPRETERS.match(program):
        for literal in _LITERAL.finditer(" ".join(words[1:])):
            _read(literal[2], found, depth=depth + 1)
    if program in RUNNERS:
        _note_inner(program, words[1:], found, depth)


def _note_inner(program: str, rest: list[str], found: _Findings, depth: int) -> None:
    if program in SHELLS and all(word.startswith(("-", "+")) for word in rest):
        found.opaque = True  # it reads its script from standard input
    if program == "eval":
        _read(" ".join(rest), found, depth=depth + 1)
    for index, word in enumerate(rest):
        if re.search(r"[\s;&|]", word):
            _read(word, found, depth=depth + 1)
        elif len(found.commands) > _MAX_COMMANDS:
            found.opaque = True
            return
        elif not word.startswith("-"):
            inner = os.path.basename(word).casefold()
            found.commands.append((inner, *rest[index + 1 :]))
            found.opaque = found.opaque or (UNKNOWN in word and program != "find")


def _assigned(word: str, found: _Findings) -> bool:
    match = _ASSIGNMENT.fullmatch(word)
    if match is None:
        return False
    found.variables[match[1]] = match[2]
    if re.search(r"\s", match[2]):
        _read(match[2], found, depth=_MAX_DEPTH)  # PAGER='…' and its like are commands
    return True


def _braces(word: str, limit: int = 32) -> Iterator[str]:
    match = _BRACES.fullmatch(word)
    if match is None or limit < 0:
        yield word
        return
    for choice in match[2].split(","):
        yield from _braces(match[1] + choice + match[3], limit - 8)


class _Reader:
    """Reads one text as a shell would, without ever refusing it."""

    def __init__(self, text: str, found: _Findings, depth: int) -> None:
        self._text = text
        self._found = found
        self._depth = depth
        self._position = 0
        self._word: str | None = None
        self._words: list[str] = []
        self._drop_next = False

    def read(self) -> None:
        """Record every command of the text."""
        while self._position < len(self._text):
            self._step(self._text[self._position])
        self._end_command()

    def _step(self, char: str) -> None:
        self._position += 1
        if char in " \t\r\v\f":
            self._end_word()
        elif char in ";&|\n()":
            self._end_command()
        elif char in "<>":
            self._redirect()
        elif char == "#" and self._word is None:
            self._position = self._index_of("\n")
        elif char == "\\":
            self._add(self._take(1))
        elif char == "'":
            self._add(self._until("'"))
        elif char == '"':
            self._double_quoted()
        elif char in "$`":
            self._expand(char, quoted=False)
        else:
            self._add(char)

    def _add(self, text: str) -> None:
        self._word = (self._word or "") + text

    def _end_word(self) -> None:
        if self._word is not None and not self._drop_next:
            self._words.append(self._word)
        self._drop_next = self._drop_next and self._word is None
        self._word = None

    def _end_command(self) -> None:
        self._end_word()
        words, self._words, self._drop_next = self._words, [], False
        if words:
            _note(words, self._found, self._depth)

    def _redirect(self) -> None:
        """A redirection's number and target are no words of the command."""
        if self._word is not None and self._word.isdigit():
            self._word = None
        self._end_word()
        if self._peek() == "(":
            self._position += 1
            self._nested(self._balanced(")"))
            return
        while self._peek() in ("<", ">", "&", "|", "-"):
            self._position += 1
        self._drop_next = True

    def _double_quoted(self) -> None:
        self._add("")
        while self._position < len(self._text):
            char = self._take(1)
            if char == '"':
                return
            if char == "\\":
                following = self._take(1)
                self._add(following if following in '$`"\\' else char + following)
            elif char in "$`":
                self._expand(char, quoted=True)
            else:
                self._add(char)

    def _expand(self, char: str, *, quoted: bool) -> None:
        if char == "`":
            self._nested(self._until("`"))
        elif self._peek() == "(":
            self._position += 1
            self._nested(self._balanced(")"))
        elif self._peek() == "'" and not quoted:
            self._position += 1
            self._add(self._ansi())
        elif self._peek() == '"' and not quoted:
            return  # $"…" is a translated string: the quotes are read next
        else:
            self._variable(quoted=quoted)

    def _variable(self, *, quoted: bool) -> None:
        match = _VARIABLE.match(self._text, self._position - 1)
        if match is None:
            self._add("$")
            return
        self._position = match.end()
        value = self._value(match[1] or match[3] or "", match[2] or "")
        if "$(" in (match[2] or "") or "`" in (match[2] or ""):
            _read(match[2], self._found, depth=self._depth + 1)
        if quoted:
            self._add(value)
            return
        for index, piece in enumerate(re.split(r"\s+", value)):
            if index:
                self._end_word()
            if piece:
                self._add(piece)

    def _value(self, name: str, operation: str) -> str:
        if not name:
            return ""  # positional parameters are empty in `sh -c line`
        if name == "IFS":
            return " "
        if name in self._found.variables:
            return self._found.variables[name] if not operation else UNKNOWN
        default = _DEFAULT.match(operation)
        return default[1] if default else UNKNOWN

    def _nested(self, text: str) -> None:
        _read(text, self._found, depth=self._depth + 1)
        self._add(UNKNOWN)

    def _ansi(self) -> str:
        match = re.compile(r"((?:[^'\\]|\\.)*)'?", re.DOTALL).match(self._text, self._position)
        assert match is not None  # it matches the empty text
        self._position = match.end()
        return _ANSI.sub(_ansi_char, match[1])

    def _balanced(self, closing: str) -> str:
        """The text up to the bracket that closes the one just read; quotes hide brackets."""
        start, depth, quote = self._position, 1, ""
        while self._position < len(self._text):
            char = self._take(1)
            if char == "\\" and quote != "'":
                self._take(1)
            elif quote:
                quote = "" if char == quote else quote
            elif char in "'\"":
                quote = char
            elif char in "()":
                depth += 1 if char == "(" else -1
                if depth == 0:
                    return self._text[start : self._position - len(closing)]
        return self._text[start:]

    def _until(self, closing: str) -> str:
        end = self._index_of(closing)
        text = self._text[self._position : end]
        self._position = end + 1
        return text

    def _index_of(self, char: str) -> int:
        index = self._text.find(char, self._position)
        return len(self._text) if index < 0 else index

    def _peek(self) -> str:
        return self._text[self._position : self._position + 1]

    def _take(self, count: int) -> str:
        taken = self._text[self._position : self._position + count]
        self._position += count
        return taken


def _ansi_char(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] in "xu" and len(code) > 1:
        return chr(int(code[1:], 16))
    if code[0] in "01234567":
        return chr(int(code, 8) & 0xFF)
    return _ANSI_LETTERS.get(code, code)
