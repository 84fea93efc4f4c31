"""PermissionBroker: the gate of a whole tree of agents; judges by a policy and asks where it says so."""

from __future__ import annotations

import copy
import logging
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from shared.errors import CancelledException, ToolDenied, ToolError, unknown_name
from shared.permissions.approvals import CLOSED, ApprovalQueue, Outcome, Question
from shared.permissions.call import Call
from shared.permissions.channel import Channel
from shared.permissions.display import describe, one_line
from shared.permissions.grants import Grants
from shared.permissions.persist import remember_for_good
from shared.permissions.policy import Action, Policy, Verdict
from shared.permissions.request import Decision, PermissionRequest
from shared.permissions.rules import Rules
from shared.permissions.user_command import PermissionsCommand
from shared.plugin import CommandCompletion, UserCommand
from shared.tools import Tool, ToolContext

log = logging.getLogger(__name__)

TTL_SECONDS = 300.0
LOG_ENTRIES = 1_000
NO_CHANNEL = (
    "nobody can be asked: say what is allowed with --permissions, in a permissions.json, or in code with "
    "client.configure_tools(registry, permissions='allow' | 'ask' | 'deny' | {...} | path)"
)
_NO_RETRY = "Do not try the same call again; go on without it or tell the user what you need."
_PATH_SIGN = " \u203a "  # between the names of an agent path
_CANCELLED = Outcome(False, "cancelled", "cancelled while waiting for permission")

OnRequested = Callable[[PermissionRequest], object]
OnResolved = Callable[[PermissionRequest, Outcome], object]


class LogEntry(NamedTuple):
    """One line of the execution log: who called what, and what became of it."""

    at: float
    agent_id: str
    tool: str
    granted: bool
    method: str
    reason: str


class PermissionBroker:
    """Checks calls against a policy and asks a person where it says so.

    One broker serves all agents of a process. `load` reads the policy again for `reload()`, `tools` lists what
    the `permissions` command can complete. Hooks run in the
    asking agent's thread, each exactly once per question, never under a lock.
    """

    def __init__(
        self,
        policy: Policy,
        *,
        channel: Channel | None = None,
        load: Callable[[], Policy] | None = None,
        workspace: Path | None = None,
        ttl_seconds: float | None = None,
        on_requested: OnRequested | None = None,
        on_resolved: OnResolved | None = None,
        tools: Callable[[], Iterable[Tool]] = tuple,
    ) -> None:
        self.on_requested = on_requested
        self.on_resolved = on_resolved
        self._load = load
        self._workspace = workspace
        self._ttl = ttl_seconds
        self._grants = Grants()
        self._queue = ApprovalQueue(channel, self._settle)
        self._log: deque[tuple[float, str, str, bool, str, str]] = deque(maxlen=LOG_ENTRIES)
        self._opening = threading.Lock()
        self._policy = policy
        self._open = policy.allows_all
        self._command = PermissionsCommand(self, tools=tools)
        self._warn()

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        return self._policy

    def check(self, tool: Tool, args: Mapping[str, Any], context: ToolContext) -> None:
        """Return if the call may run; raise ToolDenied, or CancelledException if cancelled while waiting."""
        if self._open:
            self._log.append((time.time(), context.agent_id, tool.schema.name, True, "allow_all", ""))
            return
        call = self._call(tool, args)
        verdict = self._policy.verdict(call, self._grants, context.agent_id)
        outcome = self._ask(tool, call, verdict, context) if verdict.action == "ask" else _outcome(verdict)
        self._log.append((time.time(), context.agent_id, tool.name, *outcome))
        if outcome.method == "cancelled":
            raise CancelledException(context.cancel.reason or "cancelled")
        if not outcome.granted:
            raise ToolDenied(f"permission denied for {tool.name}: {outcome.reason}. {_NO_RETRY}")

    def evaluate(self, tool: Tool, args: Mapping[str, Any], *, agent_id: str = "main") -> Verdict:
        """What the policy says about a call, without asking anyone."""
        return self._policy.verdict(self._call(tool, args), self._grants, agent_id)

    def pending(self) -> list[PermissionRequest]:
        """The questions that wait, oldest first."""
        return [question.request for question in self._queue.waiting()]

    def answer(self, request_id: str, decision: Decision | str) -> bool:
        """Answer a question; False if it does not wait any more."""
        made = Decision.parse(decision) if isinstance(decision, str) else decision
        question = self._queue.find(request_id)
        return question is not None and self._settle(question, made)

    def allow(self, rules: Rules) -> None:
        """Allow what these rules cover for this session; the policy's blacklist still beats them."""
        self._grants.add_rules(rules, allow=True)
        self._refresh()

    def deny(self, rules: Rules) -> None:
        """Deny what these rules cover for this session."""
        self._grants.add_rules(rules, allow=False)
        self._refresh()

    def set_default(self, default: Action | None) -> None:
        """Use another default for this session; None takes it back."""
        self._grants.set_default(default)
        self._refresh()

    def clear_grants(self) -> None:
        """Forget every decision of this session."""
        self._grants.clear()
        self._refresh()

    def list_grants(self) -> list[str]:
        """The decisions of this session, in words."""
        return self._grants.listing()

    def reload(self) -> Policy:
        """Read the policy again and judge waiting questions by it."""
        if self._load is not None:
            self._policy = self._load()
            self._warn()
        self._refresh()
        return self._policy

    def execution_log(self) -> list[LogEntry]:
        """The last decisions, oldest first."""
        return [LogEntry(*entry) for entry in self._log.copy()]

    def clear_log(self) -> None:
        """Forget the log."""
        self._log.clear()

    def close(self) -> None:
        """Deny what waits, and everything that would have to be asked from now on."""
        self._queue.close()

    def get_user_commands(self) -> list[UserCommand]:
        """The `permissions` command."""
        return [self._command.command]

    def get_command_completions(self, command: str, args: Sequence[str]) -> list[CommandCompletion]:
        """How the arguments of the command may be completed."""
        return self._command.completions(args) if command == self._command.command.name else []

    def run_command(self, name: str, args: Mapping[str, Any]) -> str:
        """Run the `permissions` command that a person typed."""
        if name != self._command.command.name:
            raise ToolError(unknown_name("command", name, [self._command.command.name]))
        return self._command.run(args)

    def _call(self, tool: Tool, args: Mapping[str, Any]) -> Call:
        return Call(tool.name, args, tool.is_approved(args), self._workspace, self._policy.shell_tools)

    def _ask(self, tool: Tool, call: Call, verdict: Verdict, context: ToolContext) -> Outcome:
        if not self._queue.can_ask:
            return Outcome(False, "no_channel", f"{verdict.reason}, but {NO_CHANNEL}")
        question = Question(self._request(tool, call, verdict, context), call)
        shown = call.fingerprint
        if not self._queue.add(question):
            return CLOSED
        self._judge_again(question)  # a grant may have come between the first look and the queue
        with context.stand_by("awaiting_permission"):
            outcome = self._wait(question, context)
        if outcome.granted and self._call(tool, call.args).fingerprint != shown:
            return Outcome(False, "changed", "its arguments changed while the question was open")
        return outcome

    def _wait(self, question: Question, context: ToolContext) -> Outcome:
        request = question.request
        seconds = request.expires_at - request.asked_at
        deadline = time.monotonic() + seconds
        forget = context.cancel.on_cancel(lambda: self._queue.end(question, _CANCELLED))
        try:
            self._tell(self.on_requested, request)
            self._queue.show(question)
            if not question.done.wait(max(0.0, deadline - time.monotonic())):
                late = Outcome(
                    False, "timeout", f"the question timed out: nobody answered within {round(seconds, 1):g} s"
                )
                self._queue.end(question, late)
        finally:
            forget()
            self._queue.end(question, _CANCELLED)  # an interrupt in this thread; otherwise it has ended already
            self._tell(self.on_resolved, request, question.outcome)
        assert question.outcome is not None
        return question.outcome

    def _settle(self, question: Question, decision: Decision) -> bool:
        """Apply an answer: to its question, then to what is remembered, then to the others that wait."""
        if decision.breadth == "usual":
            decision = replace(decision, breadth="call" if question.request.is_command else "tool")
        comment = f": {one_line(decision.comment)}" if decision.comment else ""
        said = "approved" if decision.allow is True else "denied"
        outcome = Outcome(decision.allow is True, f"user_{said}", f"a person {said} it{comment}")
        if not self._queue.end(question, outcome):
            return False
        if decision.scope != "once":
            self._grants.remember(question.call, question.request.agent_id, decision)
            if decision.scope == "always":
                remember_for_good(self._policy, question.call, decision)
            self._refresh()
        return True

    def _refresh(self) -> None:
        """Answer every waiting question that the policy and grants now decide."""
        with self._opening:  # read and write in one step: a stale "open" would let a denied call through
            self._open = self._policy.allows_all and self._grants.is_empty
        for question in self._queue.waiting():
            self._judge_again(question)

    def _judge_again(self, question: Question) -> None:
        verdict = self._policy.verdict(question.call, self._grants, question.request.agent_id)
        if verdict.action != "ask":
            self._queue.end(question, _outcome(verdict))

    def _request(self, tool: Tool, call: Call, verdict: Verdict, context: ToolContext) -> PermissionRequest:
        now = time.time()
        settings = self._policy.channel
        ttl = self._ttl or (settings.timeout if settings else None) or TTL_SECONDS
        path = str(getattr(context.session, "agent_path", None) or context.agent_id)
        *parents, name = path.split(_PATH_SIGN)
        spec = getattr(context.session, "spec", None)
        return PermissionRequest(
            id=uuid.uuid4().hex,
            agent_id=context.agent_id,
            agent_path=path,
            agent_name=name,
            profile=str(getattr(spec, "profile", None) or ""),
            parents=tuple(parents),
            tool=tool.name,
            plugin=tool.plugin,
            arguments=copy.deepcopy(dict(call.args)),
            display=describe(tool, call, context),
            reason=verdict.reason,
            is_command=call.command is not None,
            asked_at=now,
            expires_at=now + ttl,
        )

    def _tell(self, hook: Callable[..., object] | None, *facts: object) -> None:
        if hook is None:
            return
        try:
            hook(*facts)
        except Exception:  # a view that fails must not decide about a call
            log.warning("a permission hook failed", exc_info=True)

    def _warn(self) -> None:
        for warning in self._policy.warnings:
            log.warning("permissions: %s", warning)
        if self._policy.problem:
            log.warning("permissions: everything is denied: %s", self._policy.problem)


def _outcome(verdict: Verdict) -> Outcome:
    return Outcome(verdict.action == "allow", verdict.method, verdict.reason)
