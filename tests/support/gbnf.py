"""A reader of llama.cpp grammars that writes random sentences of them: what a model under the grammar could say."""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Callable

_TOKEN = re.compile(
    r"""\s*(?:(?P<literal>"(?:[^"\\]|\\.)*")|(?P<set>\[(?:[^\]\\]|\\.)*\])|(?P<repeat>\{\d+(?:,\d*)?\}|[*?+])
    |(?P<mark>[()|])|(?P<name>[a-z][a-z0-9-]*))""",
    re.VERBOSE,
)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}
_SAMPLE = "aZ09 <>toolx_-.,:;{}[]/\\\"'é漢\n\t\x1f"
Writer = Callable[[], str]


class Grammar:
    """The rules of a grammar; `sentence` derives one at random, `depth` keeps it from growing for ever."""

    def __init__(self, text: str, seed: int) -> None:
        self._random = random.Random(seed)
        lines = [line.split(" ::= ", 1) for line in _lines(text)]
        self._rules = {name: _tokens(body) for name, body in lines}
        assert len(self._rules) == len(lines), "a rule was written twice"

    def sentence(self, name: str = "root", depth: int = 0) -> str:
        """A random sentence of a rule."""
        sys.setrecursionlimit(max(20_000, sys.getrecursionlimit()))  # rules of rules of rules
        tokens = list(self._rules[name])
        node = _choice(tokens)
        assert not tokens, f"rule {name} has something left over: {tokens[:3]}"
        return self._write(node, depth + 1)

    def _write(self, node, depth: int) -> str:
        kind, value = node[0], node[1]
        if kind == "choice":
            options = value if depth < 40 else sorted(value, key=lambda option: len(str(option)))[:1]
            return self._write(self._random.choice(options), depth)
        if kind == "sequence":
            return "".join(self._write(each, depth) for each in value)
        if kind == "repeat":
            low, high = node[2]
            return "".join(self._write(value, depth) for _ in range(self._random.randint(low, min(high, low + 3))))
        if kind == "literal":
            return value
        if kind == "set":
            return self._random.choice(value)
        return self.sentence(value, depth)


def left_recursive(text: str) -> list[str]:
    """Rules that can begin with themselves, which llama.cpp refuses."""
    rules = {name: _choice(_tokens(body)) for name, body in (line.split(" ::= ", 1) for line in _lines(text))}
    begins = {name: _beginnings(node, rules)[0] for name, node in rules.items()}
    found = []
    for name in rules:
        reached, waiting = set(), list(begins[name])
        while waiting:
            if (each := waiting.pop()) not in reached:
                reached.add(each)
                waiting += begins[each]
        found += [name] if name in reached else []
    return found


def _beginnings(node, rules) -> tuple[set[str], bool]:
    """The rules a node can begin with, and whether it can be empty; a rule is taken to be empty only if it says so."""
    kind, value = node[0], node[1]
    if kind == "rule":
        return {value}, str(rules[value]).find("('literal', '')") >= 0
    if kind == "repeat":
        return _beginnings(value, rules)[0], node[2][0] == 0 or _beginnings(value, rules)[1]
    if kind == "choice":
        parts = [_beginnings(each, rules) for each in value]
        return {name for names, _ in parts for name in names}, any(empty for _, empty in parts)
    if kind == "sequence":
        names: set[str] = set()
        for each in value:
            more, empty = _beginnings(each, rules)
            names |= more
            if not empty:
                return names, False
        return names, True
    return set(), kind == "literal" and value == ""


def _lines(text: str) -> list[str]:
    return text.strip("\n").split("\n")


def _tokens(body: str) -> list[tuple[str, str]]:
    found, at = [], 0
    body = body.rstrip(" ")
    while at < len(body):
        match = _TOKEN.match(body, at)
        assert match, f"cannot read the grammar at {body[at : at + 40]!r}"
        found.append((match.lastgroup or "", match[match.lastgroup or 0]))
        at = match.end()
    return found


def _choice(tokens):
    options = [_sequence(tokens)]
    while tokens and tokens[0] == ("mark", "|"):
        tokens.pop(0)
        options.append(_sequence(tokens))
    return ("choice", options)


def _sequence(tokens):
    items = []
    while tokens and tokens[0] not in (("mark", "|"), ("mark", ")")):
        kind, text = tokens.pop(0)
        if (kind, text) == ("mark", "("):
            item = _choice(tokens)
            assert tokens.pop(0) == ("mark", ")")
        elif kind == "literal":
            item = ("literal", _unescaped(text[1:-1]))
        elif kind == "set":
            item = ("set", _members(text[1:-1]))
        else:
            assert kind == "name", f"unexpected {text!r}"
            item = ("rule", text)
        if tokens and tokens[0][0] == "repeat":
            item = ("repeat", item, _bounds(tokens.pop(0)[1]))
        items.append(item)
    return ("sequence", items)


def _bounds(text: str) -> tuple[int, int]:
    if not text.startswith("{"):
        return {"*": (0, 9), "?": (0, 1), "+": (1, 9)}[text]
    low, _, high = text[1:-1].partition(",")
    return int(low), int(high or (int(low) + 9 if "," in text else low))


def _unescaped(text: str) -> str:
    return re.sub(
        r"\\(x[0-9A-Fa-f]{2}|.)",
        lambda m: chr(int(m[1][1:], 16)) if m[1][0] == "x" and len(m[1]) == 3 else _ESCAPES.get(m[1], m[1]),
        text,
        flags=re.DOTALL,
    )


def _members(text: str) -> list[str]:
    negated = text.startswith("^")
    marked = re.sub(r"(?<!\\)-(?=.)", "\0", text[negated:]) if not text.endswith("-") else text[negated:]
    plain = _unescaped(marked)
    inside: set[str] = set()
    for at, char in enumerate(plain):
        if char == "\0" and 0 < at < len(plain) - 1:
            inside |= {chr(code) for code in range(ord(plain[at - 1]), ord(plain[at + 1]) + 1)}
        elif char != "\0":
            inside.add(char)
    return [char for char in _SAMPLE if char not in inside] if negated else sorted(inside)
