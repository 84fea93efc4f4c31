"""SessionsPlugin: five tools over the engine of subagents, with the names and limits of OpenClaw and Conduit."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from shared.errors import SubagentConfigError
from shared.plugins._dialect import DialectPlugin
from shared.plugins.sessions.answers import SessionStatus, about, entry, history_text, said_in, word
from shared.plugins.sessions.delivery import delivered
from shared.plugins.subagent.answering import Answer, answering
from shared.plugins.subagent.arguments import Task
from shared.plugins.subagent.pages import Room, fitting
from shared.subagents.agent import Subagent
from shared.subagents.engine import Engine, SpawnCall
from shared.subagents.plan import OWN_PLUGIN
from shared.subagents.retire import retire
from shared.subagents.run import Run
from shared.subagents.seat import Caller
from shared.toolbox import clip
from shared.tools import ToolContext, tool

if TYPE_CHECKING:
    from shared.runtime import JaatoRuntime

RunId = Annotated[str, "The run_id of a session, or its label"]
#: Settings of the engine, by what they are called here.
_LIMITS = {"max_depth": "max_spawn_depth", "max_children": "max_children", "session_ttl_minutes": "session_ttl_minutes"}
Seconds = Annotated[float | None, "Seconds", {"exclusiveMinimum": 0}]


class SessionsPlugin(DialectPlugin):
    """Sessions run in the background; their end is announced to the one who spawned them.

    The limits are those of the engine while the plugin `subagent` is not exposed; where it is, its own count.
    """

    name = "sessions"
    spawn_tool = ("sessions_spawn", "agent_id", frozenset({"model", "timeout"}))
    config_keys: ClassVar[Mapping[str, Any]] = {
        "max_spawn_depth": 2,
        "max_children": 5,
        "default_timeout": 300,
        "session_ttl_minutes": 60,
    }
    config_schema: ClassVar[Mapping[str, Any]] = {
        "max_spawn_depth": {"type": "integer", "minimum": 0},
        "max_children": {"type": "integer", "minimum": 1},
        "default_timeout": {"type": "number", "exclusiveMinimum": 0},
        "session_ttl_minutes": {"type": "number", "exclusiveMinimum": 0},
    }
    instructions = """You can hand work to other agents with sessions_spawn: it returns at once, and the end of a
session is announced to you, so never poll. sessions_send talks to a session and waits for its reply."""

    _said: frozenset[str] = frozenset()  # settings that the host gave itself

    def initialize(self, config: dict[str, Any] | None = None) -> None:
        """Take settings; what the host says here beats the settings files, which beat the defaults."""
        super().initialize(config)
        self._said = frozenset(config or {})

    def attach(self, runtime: JaatoRuntime) -> None:
        """Work on this runtime, and set the limits of its engine unless the host sets them itself."""
        super().attach(runtime)
        registry = runtime.registry
        if registry is None or registry.get_plugin(self.name) is not self or registry.is_exposed(OWN_PLUGIN):
            return
        written = runtime.settings.subagent_options(tuple(_LIMITS))
        names = {ours: name for ours, name in _LIMITS.items() if name in self._said or ours not in written}
        self.delegates.initialize({ours: self.config[name] for ours, name in names.items()})

    @tool
    @answering
    def sessions_spawn(
        self,
        context_: ToolContext,
        agent_id: Annotated[str, "The agent that does the work"],
        task: Task,
        label: Annotated[str | None, "A name of your own for the session", {"maxLength": 80}] = None,
        model: Annotated[str | None, "Another model than the agent's own"] = None,
        timeout: Seconds = None,
        cleanup: Annotated[Literal["keep", "delete"] | None, "Whether the session stays, to be talked to"] = None,
    ) -> Answer:
        """Start a session: an agent works on a task in the background. Returns its run_id."""
        engine = self.delegates.engine
        caller = engine.caller(context_)
        inline = {"model": model, "timeout_seconds": timeout or self._default_timeout(agent_id)}
        given = {key: value for key, value in inline.items() if value is not None}
        call = SpawnCall(task, agent_id, label, background=True, inline=given or None, cleanup=cleanup)
        run, fresh = engine.spawn(caller, call)
        if cleanup == "delete":
            retire(engine, caller, run.agent)
        told = f"{run.agent.agent_id} (agent: {agent_id}, label: {label})"
        return {
            "success": True,
            "run_id": run.agent.agent_id,
            "status": word(run),
            "message": f"Spawned: {told}" if fresh else f"An equal session is at work already: {told}",
        }

    @tool
    @answering
    def sessions_send(
        self,
        context_: ToolContext,
        run_id_or_label: RunId,
        message: Annotated[str, "What to tell it"],
        timeout: Seconds = None,
    ) -> Answer:
        """Send a message to a session and wait for its reply."""
        engine, caller, agent = self._found(context_, run_id_or_label)
        if not message.strip():
            raise SubagentConfigError("message: expected what to tell the session, got an empty text")
        until = time.monotonic() + (timeout or self.config["default_timeout"])
        run = delivered(engine, caller, agent, message, until)
        in_time = engine.wait(caller, [run], timeout=max(0.0, until - time.monotonic()))
        return self._reply(caller, run) if in_time else self._no_reply(run)

    @tool(auto_approved=True)
    @answering
    def sessions_list(
        self,
        context_: ToolContext,
        status_filter: Annotated[SessionStatus | None, "Only those that stand there"] = None,
    ) -> Answer:
        """Your sessions, with status, label, agent and running time."""
        engine = self.delegates.engine
        caller = engine.caller(context_)
        there = [agent for agent in caller.tree.below(caller.seat.id) if not agent.closed]
        found = [entry(agent, caller.tree) for agent in there if status_filter in (None, word(agent.run))]
        found.reverse()  # the newest first: those are kept if not all fit
        kept = found if context_.session is None else fitting(found, self._room(caller))
        more = {"not_shown": len(found) - len(kept)} if len(kept) < len(found) else {}
        return {"success": True, "sessions": kept, "count": len(found), **more}

    @tool
    @answering
    def sessions_history(self, context_: ToolContext, run_id: RunId) -> Answer:
        """The conversation of a session, 10,000 characters at most."""
        _, caller, agent = self._found(context_, run_id)
        return {"success": True, **about(agent.run), "history": history_text(said_in(agent, caller.tree))}

    @tool
    @answering
    def sessions_kill(self, context_: ToolContext, run_id: RunId) -> Answer:
        """Stop a session and everything it has spawned."""
        engine, caller, agent = self._found(context_, run_id)
        stopped, _ = engine.cancel(caller, agent, soft=False, reason="killed by its parent")
        for run in stopped:
            run.take()  # told by this answer: no announcement follows
        ids = [run.agent.agent_id for run in stopped]
        message = f"Killed: {', '.join(ids)}" if ids else "it had ended already: nothing changed"
        return {"success": True, **about(agent.run), "killed": ids, "message": message}

    # -- inside ----------------------------------------------------------------------------------

    def _found(self, context: ToolContext, name: str) -> tuple[Engine, Caller, Subagent]:
        engine = self.delegates.engine
        caller = engine.caller(context)
        agent = caller.tree.find(caller.seat.id, name)
        if agent.closed:
            raise SubagentConfigError(f"{agent.agent_id} was deleted when it had ended: spawn a new session")
        return engine, caller, agent

    def _default_timeout(self, agent_id: str) -> float | None:
        """For an agent that has no limit of its own; a host that allows no inline settings limits agents itself."""
        delegates = self.delegates
        profile = delegates.catalogue.find(agent_id)
        limited = profile is not None and profile.timeout_seconds is not None
        default: float = self.config["default_timeout"]
        return None if limited or not delegates.settings.allow_inline else default

    def _reply(self, caller: Caller, run: Run) -> Answer:
        result = run.result
        assert result is not None
        run.take()
        return {"success": result.success, **about(run), "reply": clip(result.response, self._room(caller))}

    @staticmethod
    def _no_reply(run: Run) -> Answer:
        message = "no reply in time; it goes on, and its end will be announced to you"
        return {"success": False, **about(run), "error": message}

    def _room(self, caller: Caller) -> int:
        return Room.of(caller.session, self.delegates.settings.result_tokens).all
