"""Rules: one list of a policy (blacklist or whitelist), compiled, and what in it fits a call."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from shared.permissions.call import Call
from shared.permissions.command import CommandPattern
from shared.permissions.deny_pattern import DenyPattern, Hit

Prefixes = Mapping[str, Mapping[str, tuple[str, ...]]]


class Match(NamedTuple):
    """The rule that fits a call, in words, and how surely."""

    rule: str
    hit: Hit = Hit.YES


@dataclass(frozen=True)
class Rules:
    """Tool names (globs), patterns over signatures, and argument prefixes per tool."""

    tools: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    arguments: Prefixes = field(default_factory=dict)
    _allow: tuple[tuple[CommandPattern, re.Pattern[str]], ...] = field(init=False, repr=False, compare=False)
    _deny: tuple[DenyPattern, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        compiled = tuple((CommandPattern.of(text), re.compile(fnmatch.translate(text))) for text in self.patterns)
        object.__setattr__(self, "_allow", compiled)
        object.__setattr__(self, "_deny", tuple(DenyPattern.of(text) for text in self.patterns))

    def __bool__(self) -> bool:
        return bool(self.tools or self.patterns or self.arguments)

    def __or__(self, other: Rules) -> Rules:
        arguments = {tool: dict(prefixes) for tool, prefixes in self.arguments.items()}
        for tool, named in other.arguments.items():
            mine = arguments.setdefault(tool, {})
            for name, prefixes in named.items():
                mine[name] = (*mine.get(name, ()), *prefixes)
        return Rules(_joined(self.tools, other.tools), _joined(self.patterns, other.patterns), arguments)

    def __sub__(self, other: Rules) -> Rules:
        tools = tuple(name for name in self.tools if name not in other.tools)
        return Rules(tools, tuple(text for text in self.patterns if text not in other.patterns), self.arguments)

    def allows(self, call: Call, *, by_name: bool = True) -> str | None:
        """The rule that covers a call as a whitelist: narrow, and never more than was written.

        With `by_name` off, a rule that looks at nothing but the tool's name does not count.
        """
        for name in self.tools:
            if by_name and fnmatch.fnmatchcase(call.tool, name):
                return f"tool '{name}'"
        for command, signature in self._allow:
            if self._pattern_allows(command, signature, call):
                return f"pattern '{command.pattern}'"
        named = self.arguments.get(call.tool)
        if named and call.shell_argument is not None and call.shell_argument not in named:
            return None  # a rule about the folder or the time of a command says nothing about the command
        if named and all(_prefix_allows(call, name, prefixes) for name, prefixes in named.items()):
            return f"arguments of '{call.tool}'"
        return None

    def denies(self, call: Call) -> Match | None:
        """The rule that fits a call as a blacklist: wide, against every shape of the call."""
        for name in self.tools:
            if fnmatch.fnmatchcase(call.tool.casefold(), name.casefold()):
                return Match(f"tool '{name}'")
        doubt: Match | None = None
        for pattern in self._deny:
            hit = _pattern_hit(pattern, call)
            if hit is Hit.YES:
                return Match(f"pattern '{pattern.pattern}'")
            if hit is Hit.MAYBE:
                doubt = Match(f"pattern '{pattern.pattern}'", Hit.MAYBE)
        for name, prefixes in self.arguments.get(call.tool, {}).items():
            for prefix in prefixes:
                if _prefix_denies(call, name, prefix):
                    return Match(f"argument '{name}' of '{call.tool}' with prefix '{prefix}'")
        return doubt

    def listing(self) -> list[str]:
        """All rules in words."""
        lines = [f"tool '{name}'" for name in self.tools] + [f"pattern '{text}'" for text in self.patterns]
        for tool, named in self.arguments.items():
            lines += [f"{tool}.{name} starting with {', '.join(map(repr, texts))}" for name, texts in named.items()]
        return lines

    @staticmethod
    def _pattern_allows(command: CommandPattern, signature: re.Pattern[str], call: Call) -> bool:
        if call.command is not None:
            return command.covers(call.command_words)
        return call.is_readable and signature.match(call.masked_signature) is not None


def _pattern_hit(pattern: DenyPattern, call: Call) -> Hit:
    if any(pattern.fits_text(text) for text in call.signatures):
        return Hit.YES
    return pattern.hit(call.shell_line) if call.shell_line is not None else Hit.NO


def _prefix_allows(call: Call, name: str, prefixes: tuple[str, ...]) -> bool:
    if name == call.shell_argument:
        return any(CommandPattern.of(glob_escape(prefix) + "*").covers(call.command_words) for prefix in prefixes)
    return call.allowed_prefix(name, prefixes)


def _prefix_denies(call: Call, name: str, prefix: str) -> bool:
    if name == call.shell_argument and call.shell_line is not None:
        return DenyPattern.of(glob_escape(prefix) + "*").hit(call.shell_line) is Hit.YES
    return call.denied_prefix(name, prefix)


def glob_escape(text: str) -> str:
    """The text as a pattern that fits only itself."""
    return re.sub(r"([*?\[])", r"[\1]", text)


def _joined(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*first, *second)))
