"""PermissionRequest and Decision: the question a person is asked, and what they may answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from shared.errors import ConfigError, unknown_name
from shared.plugin import PermissionDisplayInfo

Scope = Literal["once", "agent", "session", "always"]
Breadth = Literal["call", "usual", "tool", "all"]


@dataclass(frozen=True)
class Decision:
    """An answer: yes or no, for how long and whom (`scope`), and for how much (`breadth`).

    `breadth` "call" covers exactly the tool and arguments that were shown, "tool" any use of the tool,
    "usual" the tool, except that of a tool that runs shell lines it is only the line that was shown.
    """

    allow: bool
    scope: Scope = "once"
    breadth: Breadth = "call"
    comment: str = ""

    @staticmethod
    def parse(text: str, *, comment: str = "") -> Decision:
        """The decision that a word stands for, such as `y`, `session`, `agent tool`, `never`."""
        words = text.strip().lower().replace("-", "_").split()
        name = " ".join(words)
        if name not in ANSWERS:
            raise ConfigError(unknown_name("answer", text.strip()[:40], ANSWERS))
        allow, scope, breadth = ANSWERS[name]
        return Decision(allow, scope, breadth, comment)


#: Every accepted answer: (allow, scope, breadth).
ANSWERS: Mapping[str, tuple[bool, Scope, Breadth]] = {
    **dict.fromkeys(("y", "yes", "once", "allow", "allow_once"), (True, "once", "call")),
    **dict.fromkeys(("n", "no", "deny", "deny_once"), (False, "once", "call")),
    **dict.fromkeys(("agent", "allow_agent"), (True, "agent", "call")),
    **dict.fromkeys(("session", "allow_session"), (True, "session", "call")),
    **dict.fromkeys(("agent tool", "allow_agent_tool"), (True, "agent", "tool")),
    **dict.fromkeys(("session tool", "allow_session_tool"), (True, "session", "tool")),
    **dict.fromkeys(("a", "always", "allow_always"), (True, "always", "usual")),
    **dict.fromkeys(("always call", "allow_always_call"), (True, "always", "call")),
    **dict.fromkeys(("deny session", "deny_session"), (False, "session", "call")),
    **dict.fromkeys(("deny agent", "deny_agent"), (False, "agent", "call")),
    **dict.fromkeys(("never",), (False, "session", "usual")),
    **dict.fromkeys(("never tool", "deny_session_tool"), (False, "session", "tool")),
    **dict.fromkeys(("deny always", "deny_always"), (False, "always", "usual")),
    **dict.fromkeys(("all", "allow_all"), (True, "session", "all")),
}


@dataclass(frozen=True)
class PermissionRequest:
    """One question: which agent wants to call which tool with which arguments."""

    id: str
    agent_id: str
    agent_path: str
    tool: str
    arguments: Mapping[str, Any]
    display: PermissionDisplayInfo
    asked_at: float
    expires_at: float
    agent_name: str = ""
    profile: str = ""
    parents: tuple[str, ...] = ()
    plugin: str = ""
    reason: str = ""
    is_command: bool = False
    options: tuple[str, ...] = field(default_factory=lambda: tuple(ANSWERS))

    def as_dict(self) -> dict[str, Any]:
        """A plain dict for JSON, with everything a person needs to decide."""
        return {
            "id": self.id,
            "request_id": self.id,
            "agent": {
                "id": self.agent_id,
                "path": self.agent_path,
                "name": self.agent_name,
                "profile": self.profile,
                "parents": list(self.parents),
            },
            "tool": self.tool,
            "plugin": self.plugin,
            "arguments": dict(self.arguments),
            "reason": self.reason,
            "display": {
                "summary": self.display.summary,
                "details": self.display.details,
                "format_hint": self.display.format_hint,
                "language": self.display.language,
                "truncated": self.display.truncated,
            },
            "asked_at": self.asked_at,
            "expires_at": self.expires_at,
            "options": list(self.options),
        }
