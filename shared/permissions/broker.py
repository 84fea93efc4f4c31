"""PermissionBroker: the gate of a whole tree of agents, with one queue of questions."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from shared.cancel import CancelToken
from shared.errors import CancelledException, ToolDenied
from shared.executors.threads import workers
from shared.permissions.call import Call
from shared.permissions.channel import Channel
from shared.permissions.display import describe, one_line
from shared.permissions.grants import Grants
from shared.permissions.persist import remember_for_good
from shared.permissions.policy import Policy, Verdict
from shared.permissions.request import Decision, PermissionRequest
from shared.tools import Tool, ToolContext

log = logging.getLogger(__name__)

TTL_SECONDS = 300.0
LOG_ENTRIES = 1_000
NO_CHANNEL = (
    "nobody can be asked: set a policy with client.configure_tools(registry, permissions='allow' | 'ask' | 'deny' | "
    "{...} | path), or in a permissions.json"
)
_RETRY = "Do not try the same call again; go on without it or ask the user."

OnRequested = Callable[[PermissionRequest], None]
OnResolved = Callable[[PermissionRequest, "Outcome"], None]


class Outcome(NamedTuple):
    """How a question ended."""

    granted: bool
    method: str  # user_approved, user_denied, session_whitelist, timeout, channel_failed, cancelled, closed …
    reason: str


class LogEntry(NamedTuple):
    """One line of the execution log: who called what, and what became of it."""

    at: float
    agent_id: str
    tool: str
    granted: bool
    method: str
    reason: str


@dataclass(eq=False)
class _Waiting:
    """A question in the queue; the first outcome counts."""

    request: PermissionRequest
    call: Call
    done: threading.Event = field(default_factory=threading.Event)
    ended: CancelToken = field(default_factory=CancelToken)
    outcome: Outcome | None = None
    shown: bool = False


class PermissionBroker:
    """Checks calls against a policy and asks a person where it says so.

    One broker serves all agents of a process. `load` reads the policy again for `reload()`. Hooks run in the
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
    ) -> None:
        self.grants = Grants()
        self.on_requested = on_requested
        self.on_resolved = on_resolved
        self._channel = channel
        self._load = load
        self._workspace = workspace
        self._ttl = ttl_seconds
        self._lock = threading.Lock()
        self._pending: dict[str, _Waiting] = {}
        self._presenting = False
        self._closed = False
        self._log: deque[tuple[float, str, str, bool, str, str]] = deque(maxlen=LOG_ENTRIES)
        self._policy = policy
        self._open = policy.allows_all
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
        verdict = self._policy.verdict(call, self.grants, context.agent_id)
        if verdict.action == "ask":
            outcome = self._ask(tool, call, verdict, context)
        else:
            outcome = Outcome(verdict.action == "allow", verdict.method, verdict.reason)
        self._log.append((time.time(), context.agent_id, tool.name, *outcome))
        if outcome.method == "cancelled":
            raise CancelledException(context.cancel.reason or "cancelled")
        if not outcome.granted:
            raise ToolDenied(f"permission denied for {tool.name}: {outcome.reason}. {_RETRY}")

    def evaluate(self, tool: Tool, args: Mapping[str, Any], *, agent_id: str = "main") -> Verdict:
        """What the policy says about a call, without asking anyone."""
        return self._policy.verdict(self._call(tool, args), self.grants, agent_id)

    def pending(self) -> list[PermissionRequest]:
        """The questions that wait, oldest first."""
        with self._lock:
            return [waiting.request for waiting in self._pending.values()]

    def answer(self, request_id: str, decision: Decision | str) -> bool:
        """Answer a question; False if it does not wait any more."""
        made = Decision.parse(decision) if isinstance(decision, str) else decision
        with self._lock:
            waiting = self._pending.get(request_id)
        return waiting is not None and self._settle(waiting, made)

    def reload(self) -> Policy:
        """Read the policy again and judge waiting questions by it."""
        if self._load is not None:
            self._policy = self._load()
            self._warn()
        self.refresh()
        return self._policy

    def refresh(self) -> None:
        """Answer every waiting question that the policy and grants now decide."""
        self._open = self._policy.allows_all and self.grants.is_empty
        with self._lock:
            waiting_now = list(self._pending.values())
        for waiting in waiting_now:
            verdict = self._policy.verdict(waiting.call, self.grants, waiting.request.agent_id)
            if verdict.action != "ask":
                self._end(waiting, Outcome(verdict.action == "allow", verdict.method, verdict.reason))

    def execution_log(self) -> list[LogEntry]:
        """The last decisions, oldest first."""
        return [LogEntry(*entry) for entry in self._log.copy()]

    def clear_log(self) -> None:
        """Forget the log."""
        self._log.clear()

    def close(self) -> None:
        """Deny what waits and everything that would have to be asked from now on."""
        with self._lock:
            self._closed = True
            waiting_now = list(self._pending.values())
        for waiting in waiting_now:
            self._end(waiting, Outcome(False, "closed", "the approval queue was closed"))
        if self._channel is not None:
            self._channel.close()

    def _call(self, tool: Tool, args: Mapping[str, Any]) -> Call:
        return Call(tool.name, args, tool.auto_approved, self._workspace, self._policy.shell_tools)

    def _ask(self, tool: Tool, call: Call, verdict: Verdict, context: ToolContext) -> Outcome:
        if self._channel is None or not self._channel.available():
            return Outcome(False, "no_channel", f"{verdict.reason} and {NO_CHANNEL}")
        waiting = _Waiting(self._request(tool, call, verdict, context), call)
        before = call.fingerprint
        with self._lock:
            if self._closed:
                return Outcome(False, "closed", "the approval queue was closed")
            self._pending[waiting.request.id] = waiting
        outcome = self._wait(waiting, context)
        if outcome.granted and self._call(tool, call.args).fingerprint != before:
            return Outcome(False, "changed", "its arguments changed while the question was open")
        return outcome

    def _wait(self, waiting: _Waiting, context: ToolContext) -> Outcome:
        cancelled = Outcome(False, "cancelled", "cancelled while waiting for permission")
        forget = context.cancel.on_cancel(lambda: self._end(waiting, cancelled))
        try:
            self._tell(self.on_requested, waiting.request)
            self._present(waiting)
            if not waiting.done.wait(max(0.0, waiting.request.expires_at - time.time())):
                seconds = waiting.request.expires_at - waiting.request.asked_at
                self._end(waiting, Outcome(False, "timeout", f"the question timed out: no answer within {seconds:g} s"))
        finally:
            forget()
            self._end(waiting, cancelled)  # an interrupt in this thread; otherwise it has ended already
            assert waiting.outcome is not None
            self._tell(self.on_resolved, waiting.request, waiting.outcome)
        return waiting.outcome

    def _present(self, waiting: _Waiting) -> None:
        """Show the question on a thread of its own, because a channel may block for as long as it likes."""
        channel = self._channel
        assert channel is not None
        if not channel.one_at_a_time:
            workers.submit(lambda: self._put(channel, waiting))
            return
        with self._lock:
            if self._presenting:
                return
            self._presenting = True
        workers.submit(lambda: self._present_in_turn(channel))

    def _present_in_turn(self, channel: Channel) -> None:
        while True:
            with self._lock:
                waiting = next((each for each in self._pending.values() if not each.shown), None)
                if waiting is None:
                    self._presenting = False
                    return
                waiting.shown = True
            self._put(channel, waiting)

    def _put(self, channel: Channel, waiting: _Waiting) -> None:
        try:
            decision = channel.ask(waiting.request, waiting.ended)
            self._settle(waiting, decision)
        except BaseException as error:  # foreign code: whatever went wrong, the answer is no and the queue goes on
            if not waiting.ended.is_cancelled:
                log.warning("the %s channel failed", channel.name, exc_info=True)
            text = f"the {channel.name} channel failed: {one_line(str(error) or type(error).__name__)}"
            self._end(waiting, Outcome(False, "channel_failed", text))

    def _settle(self, waiting: _Waiting, decision: Decision) -> bool:
        """Apply an answer: to its question, then to what the policy remembers, then to the others that wait."""
        if decision.breadth == "usual":
            decision = replace(decision, breadth="call" if waiting.request.is_command else "tool")
        comment = f": {one_line(decision.comment)}" if decision.comment else ""
        said = "approved" if decision.allow else "denied"
        outcome = Outcome(decision.allow, f"user_{said}", f"a person {said} it{comment}")
        if not self._end(waiting, outcome):
            return False
        if decision.scope != "once":
            self.grants.remember(waiting.call, waiting.request.agent_id, decision)
            if decision.scope == "always":
                remember_for_good(self._policy, waiting.call, decision)
            self.refresh()
        return True

    def _end(self, waiting: _Waiting, outcome: Outcome) -> bool:
        """Give a question its one outcome; False if it had one."""
        with self._lock:
            if waiting.outcome is not None:
                return False
            waiting.outcome = outcome
            self._pending.pop(waiting.request.id, None)
        waiting.done.set()
        waiting.ended.cancel(outcome.reason)
        return True

    def _request(self, tool: Tool, call: Call, verdict: Verdict, context: ToolContext) -> PermissionRequest:
        now = time.time()
        settings = self._policy.channel
        ttl = self._ttl or (settings.timeout if settings else None) or TTL_SECONDS
        session: Any = context.session
        path = str(getattr(session, "agent_path", None) or context.agent_id)
        *parents, name = path.split(" › ")
        return PermissionRequest(
            id=uuid.uuid4().hex,
            agent_id=context.agent_id,
            agent_path=path,
            agent_name=str(getattr(session, "agent_name", None) or name),
            profile=str(getattr(session, "profile", None) or ""),
            parents=tuple(parents),
            tool=tool.name,
            plugin=tool.plugin,
            arguments=dict(call.args),
            display=describe(tool, call.args, call),
            reason=verdict.reason,
            is_command=call.command is not None,
            asked_at=now,
            expires_at=now + ttl,
        )

    def _tell(self, hook: Callable[..., None] | None, *facts: object) -> None:
        if hook is None:
            return
        try:
            hook(*facts)
        except Exception:  # a view that fails must not decide about a call
            log.warning("a permission hook failed", exc_info=True)

    def _warn(self) -> None:
        for warning in (*self._policy.warnings, *filter(None, [self._policy.problem])):
            log.warning("permissions: %s", warning)
