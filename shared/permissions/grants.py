"""Grants: what a person allowed or denied since the start; in memory, for one tree of agents."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace

from shared.permissions.call import Call
from shared.permissions.policy import Action
from shared.permissions.request import Decision
from shared.permissions.rules import Match, Rules

#: (tool, fingerprint or None for any arguments, agent or None for every agent)
Key = tuple[str, str | None, str | None]


@dataclass(frozen=True)
class _State:
    """One immutable picture of all decisions: readers need no lock."""

    default: Action | None = None
    everything: bool = False
    allowed: frozenset[Key] = field(default_factory=frozenset)
    denied: frozenset[Key] = field(default_factory=frozenset)
    whitelist: Rules = field(default_factory=Rules)
    blacklist: Rules = field(default_factory=Rules)


class Grants:
    """Decisions that outlive their question. A later decision about the same thing replaces the earlier one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._state = _State()

    @property
    def default(self) -> Action | None:
        """The default a person set for this session, if any."""
        return self._state.default

    @property
    def whitelist(self) -> Rules:
        """Rules a person typed to allow."""
        return self._state.whitelist

    @property
    def blacklist(self) -> Rules:
        """Rules a person typed to deny."""
        return self._state.blacklist

    @property
    def is_empty(self) -> bool:
        """Whether nothing was decided."""
        return self._state == _State()

    def remember(self, call: Call, agent_id: str, decision: Decision) -> None:
        """Keep a decision that is wider than once."""
        if decision.scope == "once":
            return
        print_or_any = None if decision.breadth == "tool" else call.fingerprint
        key: Key = (call.tool, print_or_any, agent_id if decision.scope == "agent" else None)
        with self._lock:
            state = self._state
            if decision.breadth == "all":
                self._state = replace(state, everything=decision.allow)
            elif decision.allow:
                self._state = replace(state, allowed=state.allowed | {key}, denied=state.denied - {key})
            else:
                self._state = replace(state, denied=state.denied | {key}, allowed=state.allowed - {key})

    def add_rules(self, rules: Rules, *, allow: bool) -> None:
        """Add rules that a person typed; the same rules typed before with the other meaning are taken back."""
        with self._lock:
            state = self._state
            if allow:
                denied = frozenset(key for key in state.denied if key[0] not in rules.tools)
                self._state = replace(
                    state, whitelist=state.whitelist | rules, blacklist=state.blacklist - rules, denied=denied
                )
            else:
                self._state = replace(state, blacklist=state.blacklist | rules, whitelist=state.whitelist - rules)

    def set_default(self, default: Action | None) -> None:
        """Use another default than the policy's."""
        with self._lock:
            self._state = replace(self._state, default=default)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._state = _State()

    def denies(self, call: Call, agent_id: str) -> Match | None:
        """The denial that fits a call."""
        state = self._state
        if state.denied and (what := _find(state.denied, call, agent_id, by_name=True)):
            return Match(what)
        return state.blacklist.denies(call) if state.blacklist else None

    def allows(self, call: Call, agent_id: str, *, by_name: bool = True) -> str | None:
        """The grant that covers a call."""
        state = self._state
        if state.allowed and (what := _find(state.allowed, call, agent_id, by_name=by_name)):
            return what
        if state.whitelist and (rule := state.whitelist.allows(call, by_name=by_name)):
            return rule
        return "everything for this session" if state.everything and by_name else None

    def listing(self) -> list[str]:
        """All decisions in words, sorted."""
        state = self._state
        lines = [f"default: {state.default}"] if state.default else []
        lines += ["allow: everything"] if state.everything else []
        for word, keys, rules in (("allow", state.allowed, state.whitelist), ("deny", state.denied, state.blacklist)):
            lines += sorted(f"{word}: {_in_words(key)}" for key in keys)
            lines += [f"{word}: {line}" for line in rules.listing()]
        return lines


def _find(keys: frozenset[Key], call: Call, agent_id: str, *, by_name: bool) -> str | None:
    for agent in (None, agent_id):
        wide: Key = (call.tool, None, agent)
        exact: Key = (call.tool, call.fingerprint, agent)
        if by_name and wide in keys:
            return _in_words(wide)
        if exact in keys:
            return _in_words(exact)
    return None


def _in_words(key: Key) -> str:
    tool, exact, agent = key
    return f"'{tool}'{' with these arguments' if exact else ''}{f' for agent {agent}' if agent else ''}"
