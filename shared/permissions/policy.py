"""Policy: what is allowed, denied or asked, and the order in which its rules are looked at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, Protocol, get_args

from shared.permissions.call import SHELL_TOOLS, Call
from shared.permissions.deny_pattern import Hit
from shared.permissions.rules import Match, Rules

Action = Literal["allow", "ask", "deny"]
ACTIONS: tuple[Action, ...] = get_args(Action)


class Verdict(NamedTuple):
    """What a policy says about a call: the action, the kind of rule that decided, and that rule in words."""

    action: Action
    method: str
    reason: str


class SessionRules(Protocol):
    """What a person decided since the start, on top of the policy."""

    @property
    def default(self) -> Action | None: ...
    def denies(self, call: Call, agent_id: str) -> Match | None: ...
    def allows(self, call: Call, agent_id: str, *, by_name: bool = True) -> str | None: ...


@dataclass(frozen=True)
class ChannelSettings:
    """Who is asked, as a policy file says it."""

    type: str
    endpoint: str | None = None
    timeout: float | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Policy:
    """An immutable permission policy; a broken one denies everything and says why."""

    default: Action = "ask"
    blacklist: Rules = field(default_factory=Rules)
    whitelist: Rules = field(default_factory=Rules)
    channel: ChannelSettings | None = None
    shell_tools: Mapping[str, str] = field(default_factory=lambda: SHELL_TOOLS)
    source: Path | None = None
    states_default: bool = True
    problem: str = ""
    warnings: tuple[str, ...] = ()

    @staticmethod
    def broken(problem: str) -> Policy:
        """A policy that denies every call, because the real one could not be read."""
        return Policy(default="deny", problem=problem)

    @property
    def allows_all(self) -> bool:
        """Whether no rule could ever stop a call."""
        return self.default == "allow" and not self.blacklist and not self.problem

    def verdict(self, call: Call, session: SessionRules, agent_id: str) -> Verdict:
        """Judge a call: blacklist, whitelist, what a person decided before, default."""
        if self.problem:
            return Verdict("deny", "policy_error", f"the permission policy is broken: {self.problem}")
        denied = self.blacklist.denies(call)
        if denied is not None and denied.hit is Hit.YES:
            return Verdict("deny", "blacklist", f"blacklisted by {denied.rule}")
        refused = session.denies(call, agent_id)
        if refused is not None and refused.hit is Hit.YES:
            return Verdict("deny", "session_blacklist", f"a person denied {refused.rule} for this session")
        doubt = denied or refused
        return self._allowed(call, session, agent_id, sure=doubt is None) or self._default(session, doubt)

    def _allowed(self, call: Call, session: SessionRules, agent_id: str, *, sure: bool) -> Verdict | None:
        """A call that may hide something blacklisted needs more than a rule for its whole tool."""
        if sure and call.auto_approved:
            return Verdict("allow", "auto_approved", "its plugin approves it")
        if rule := self.whitelist.allows(call, by_name=sure):
            return Verdict("allow", "whitelist", f"whitelisted by {rule}")
        if rule := session.allows(call, agent_id, by_name=sure):
            return Verdict("allow", "session_whitelist", f"a person allowed {rule}")
        return None

    def _default(self, session: SessionRules, doubt: Match | None) -> Verdict:
        default = session.default or self.default
        if default == "allow" and doubt is not None:
            return Verdict(
                "ask", "blacklist", f"parts are unknown until it runs and may be blacklisted by {doubt.rule}"
            )
        return Verdict(default, "default", f"the default policy is '{default}'")


def stricter(first: Action, second: Action) -> Action:
    """The action that lets fewer calls through."""
    return max(first, second, key=ACTIONS.index)
