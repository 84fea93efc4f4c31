"""SubagentPlugin: the twelve tools by which a model delegates; thin, the engine does the work."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal, TypeVar

from shared.definitions.catalogue import ProfileCatalogue
from shared.definitions.profile import SubagentProfile
from shared.errors import BudgetExceeded, SubagentConfigError, SubagentError, VersionConflict
from shared.modelcall import RetryCallback
from shared.plugin import Executor, PermissionDisplayInfo, Plugin, UserCommand
from shared.plugins.subagent import answers
from shared.plugins.subagent.arguments import AgentId, Context, InlineConfig, OldAgentId, Seconds, StatusFilter, Task
from shared.plugins.subagent.dry_run import dry_run_report
from shared.runtime import JaatoRuntime
from shared.subagents.agent import Subagent
from shared.subagents.config import SubagentConfig
from shared.subagents.engine import Engine, SpawnCall
from shared.subagents.plan import Planner
from shared.subagents.rights import STATE_TOOLS
from shared.subagents.run import Run
from shared.subagents.seat import Caller
from shared.tools import Tool, ToolContext, tool

F = TypeVar("F", bound=Callable[..., Any])
Answer = dict[str, Any]

INSTRUCTIONS = """You can delegate with spawn_subagent: give a self-contained task, and a profile when one fits
(list_subagent_profiles). Independent tasks go in parallel: several calls in one reply, or background=true. Finished
background subagents are announced to you; wait_for_subagents waits without using model calls, so never poll."""


def _answering(fn: F) -> F:
    """Turn refusals into answers that the model can act on."""

    @functools.wraps(fn)
    def answer(*args: Any, **keywords: Any) -> Answer:
        try:
            found: Answer = fn(*args, **keywords)
            return found
        except VersionConflict as error:
            return {"success": False, "error": str(error), "version": error.current}
        except (SubagentError, BudgetExceeded) as error:
            return {"success": False, "error": str(error)}

    return answer  # type: ignore[return-value]


class SubagentPlugin(Plugin):
    """Spawn, continue, steer, wait for, cancel and close subagents, and share state among them."""

    name = "subagent"

    def __init__(self) -> None:
        super().__init__()
        self.settings = SubagentConfig()
        self._catalogue: ProfileCatalogue | None = None
        self._engine: Engine | None = None
        self._runtime: JaatoRuntime | None = None
        self._tools: list[Tool] | None = None

    # -- setting up ------------------------------------------------------------------------------

    def initialize(self, config: dict[str, Any] | None = None) -> None:
        """Take settings; see SubagentConfig."""
        self.settings = SubagentConfig.from_dict(config or {})
        self._catalogue = None
        if self._runtime is not None:
            self.attach(self._runtime)

    def attach(self, runtime: JaatoRuntime) -> None:
        """Work on this runtime."""
        if self._runtime is not runtime:
            self._runtime, self._catalogue = runtime, None
        planner = Planner(self.settings, self.catalogue)
        children = tuple(each for each in self.tools() if each.name in STATE_TOOLS)
        self._engine = Engine(runtime, planner, child_tools=children)

    def add_profile(self, profile: SubagentProfile) -> None:
        """Add or replace a profile from code; it beats every file of that name."""
        self.settings.add_profile(profile)
        if self._catalogue is not None:
            self._catalogue.add(profile)

    def set_ui_hooks(self, hooks: Any) -> Callable[[], None]:
        """Report every agent's life to an object with any of the `on_…` methods."""
        end: Callable[[], None] = self._attached().runtime.set_ui_hooks(hooks)
        return end

    def set_retry_callback(self, callback: RetryCallback | None) -> None:
        """Call back before a failed model call of any agent is tried again."""
        self._attached().runtime.set_retry_callback(callback)

    @property
    def catalogue(self) -> ProfileCatalogue:
        """The profiles, from code and from files."""
        if self._catalogue is None:
            runtime = self._runtime
            self._catalogue = ProfileCatalogue(
                runtime.workspace if runtime is not None else None,
                profiles_dir=self.settings.profiles_dir,
                extra_dirs=self.settings.extra_dirs,
                auto_discover=self.settings.auto_discover_profiles,
                trust_workspace=runtime.trust_workspace if runtime is not None else False,
            )
            for profile in self.settings.profiles.values():
                self._catalogue.add(profile)
        return self._catalogue

    def get_system_instructions(self) -> str | None:
        """How to delegate."""
        return INSTRUCTIONS

    def tools(self) -> list[Tool]:
        """The twelve tools; a trusted profile may spare the question before a spawn."""
        if self._tools is None:
            self._tools = [
                replace(each, approves=self._is_approved) if each.name == "spawn_subagent" else each
                for each in super().tools()
            ]
        return self._tools

    def get_executors(self) -> dict[str, Executor]:
        """The tools for host code, which acts for the main session; and the `profiles` command."""
        found = {each.name: functools.partial(_execute, each) for each in self.tools()}
        return {**found, "profiles": lambda args=None, **keywords: self.list_subagent_profiles()}

    def get_user_commands(self) -> list[UserCommand]:
        """`profiles` lists what can be delegated to."""
        return [UserCommand("profiles", "List available subagent profiles", share_with_model=True)]

    def format_permission_request(
        self, tool_name: str, arguments: dict[str, Any], channel_type: str
    ) -> PermissionDisplayInfo | None:
        """What a person sees before a subagent is spawned."""
        if tool_name != "spawn_subagent":
            return None
        profile = arguments.get("profile") or "no profile: your own tools"
        return PermissionDisplayInfo(f"spawn a subagent ({profile})", str(arguments.get("task", "")))

    # -- spawning --------------------------------------------------------------------------------

    @tool
    @_answering
    def spawn_subagent(
        self,
        context_: ToolContext,
        task: Task,
        profile: Annotated[str | None, "Name of a profile from list_subagent_profiles"] = None,
        name: Annotated[str | None, "A name of your own for this subagent", {"maxLength": 80}] = None,
        context: Annotated[Context | str | None, "What it should know besides the task"] = None,
        background: Annotated[bool, "Return at once; the result is announced to you later"] = False,
        inline_config: Annotated[InlineConfig | None, "Overrides; with a profile they may only narrow it"] = None,
        dry_run: Annotated[bool, "Start nothing; report model, tools and estimated cost"] = False,
    ) -> Answer:
        """Give a task to a subagent: a child session with its own history, model and tools.

        Without a profile it has your tools. It runs to its end and returns its result, or in the background.
        """
        engine, caller = self._called(context_)
        call = SpawnCall(task, profile, name, context, background, inline_config)
        if dry_run:
            return dry_run_report(engine, caller, call)
        run, fresh = engine.spawn(caller, call)
        if background:
            return answers.started_answer(run, fresh=fresh)
        return self._awaited(engine, caller, run)

    @tool
    @_answering
    def continue_subagent(
        self,
        context_: ToolContext,
        message: Annotated[str, "What to tell it"],
        agent_id: AgentId = None,
        subagent_id: OldAgentId = None,
        background: Annotated[bool, "Return at once; the result is announced to you later"] = False,
    ) -> Answer:
        """Send a follow-up message to a subagent that waits; it remembers the conversation."""
        engine, caller, agent = self._found(context_, agent_id, subagent_id)
        run = engine.resume(caller, agent, message, background=background)
        if background:
            return answers.started_answer(run, fresh=True)
        return self._awaited(engine, caller, run)

    @tool
    @_answering
    def send_to_subagent(
        self,
        context_: ToolContext,
        message: Annotated[str, "What to tell it", {"minLength": 1}],
        agent_id: AgentId = None,
        subagent_id: OldAgentId = None,
    ) -> Answer:
        """Steer a subagent that is running: it reads the message before its next model call."""
        _, _, agent = self._found(context_, agent_id, subagent_id)
        if not agent.is_live:
            raise SubagentConfigError(f"{agent.agent_id} is {agent.status.value}: use continue_subagent")
        agent.tell(message)
        return {
            "success": True,
            "agent_id": agent.agent_id,
            "status": agent.run.status.value,
            "message": "it reads this before its next model call",
        }

    @tool
    @_answering
    def close_subagent(self, context_: ToolContext, agent_id: AgentId = None, subagent_id: OldAgentId = None) -> Answer:
        """Let a subagent go: it is cancelled if it runs, and forgets its conversation. Its result stays readable."""
        engine, caller, agent = self._found(context_, agent_id, subagent_id)
        engine.close(caller, agent)
        return {
            "success": True,
            "agent_id": agent.agent_id,
            "status": agent.run.status.value,
            "message": f"{agent.agent_id} is closed",
        }

    @tool
    @_answering
    def cancel_subagent(
        self,
        context_: ToolContext,
        agent_id: AgentId = None,
        subagent_id: OldAgentId = None,
        mode: Annotated[
            Literal["hard", "soft"], "hard: stop now; soft: finish the current tool and hand over"
        ] = "hard",
        reason: Annotated[str | None, "Why, for the record"] = None,
    ) -> Answer:
        """Stop a subagent and everything below it."""
        engine, caller, agent = self._found(context_, agent_id, subagent_id)
        live, over = engine.cancel(caller, agent, soft=mode == "soft", reason=reason or "cancelled by its parent")
        for run in live:
            run.take()  # the receipt tells of it: no announcement follows
        return {**answers.receipt(live, over), "agent_id": agent.agent_id, "status": agent.run.status.value}

    # -- looking and waiting ---------------------------------------------------------------------

    @tool
    @_answering
    def get_subagent_result(
        self,
        context_: ToolContext,
        agent_id: AgentId = None,
        subagent_id: OldAgentId = None,
        wait: Annotated[bool, "Wait for the end"] = False,
        timeout_seconds: Seconds = None,
        offset: Annotated[int, "Read a long response from this character on", {"minimum": 0}] = 0,
    ) -> Answer:
        """The result of a subagent's newest run; it can be read any number of times."""
        engine, caller, agent = self._found(context_, agent_id, subagent_id)
        run = agent.run
        if wait:
            engine.wait(caller, [run], timeout=timeout_seconds)
        if run.result is None:
            return answers.running_answer(run)
        run.take()
        room = answers.share(caller.session, self.settings.result_tokens)
        return answers.result_answer(run.result, room=room, offset=offset)

    @tool
    @_answering
    def wait_for_subagents(
        self,
        context_: ToolContext,
        ids: Annotated[list[str] | None, "Ids or names; default: all your running subagents"] = None,
        mode: Annotated[Literal["all", "any"], "Wait for all of them, or for the first"] = "all",
        timeout_seconds: Seconds = None,
    ) -> Answer:
        """Wait for subagents without using model calls, and get their results."""
        engine, caller = self._called(context_)
        agents = (
            [caller.tree.find(caller.seat.id, each) for each in ids]
            if ids
            else caller.tree.live_children(caller.seat.id)
        )
        runs = [agent.run for agent in agents]
        in_time = engine.wait(caller, runs, mode=mode, timeout=timeout_seconds)
        ended = [run for run in runs if run.result is not None]
        for run in ended:
            run.take()
        room = answers.share(caller.session, self.settings.result_tokens, len(ended))
        return {
            "success": True,
            "complete": len(ended) == len(runs),
            "timed_out": not in_time,
            "results": [answers.result_answer(run.result, room=room) for run in ended if run.result is not None],
            "still_running": [answers.running_answer(run) for run in runs if run.result is None],
            "count": len(ended),
        }

    @tool(auto_approved=True)
    @_answering
    def list_active_subagents(self, context_: ToolContext, status: StatusFilter = None) -> Answer:
        """Your subagents that are queued, running, or waiting to be continued."""
        engine, caller = self._called(context_)
        active = [agent for agent in caller.tree.below(caller.seat.id) if not agent.status.is_final]
        found = [answers.listing(agent, engine) for agent in active if status is None or agent.status == status]
        return {"success": True, "active_sessions": found, "count": len(found)}

    @tool(auto_approved=True)
    def list_subagent_profiles(self) -> Answer:
        """The profiles you can give to spawn_subagent."""
        offered = self.catalogue.list(internal=False)
        return {
            "success": True,
            "profiles": [each.summary() for each in offered],
            "inline_allowed": self.settings.allow_inline,
            "inline_allowed_plugins": list(self.settings.inline_allowed_plugins),
            "problems": [str(problem) for problem in self.catalogue.problems()],
        }

    # -- shared state ----------------------------------------------------------------------------

    @tool
    @_answering
    def set_shared_state(
        self,
        context_: ToolContext,
        key: Annotated[str, "Name of the value", {"minLength": 1}],
        value: Annotated[Any, "Any JSON value"],
        expected_version: Annotated[
            int | None, "Store only if the key still has this version; 0: only if it is not there", {"minimum": 0}
        ] = None,
        ttl_seconds: Annotated[float | None, "Forget it after this time: a lease", {"exclusiveMinimum": 0}] = None,
    ) -> Answer:
        """Store a value that all agents of this conversation can read."""
        _, caller = self._called(context_)
        entry = caller.tree.state.set(key, value, expected_version=expected_version, ttl_seconds=ttl_seconds)
        return {"success": True, "key": key, "version": entry.version, "message": f"stored '{key}'"}

    @tool
    @_answering
    def get_shared_state(
        self,
        context_: ToolContext,
        key: Annotated[str, "Name of the value"],
        wait_for_version: Annotated[int | None, "Wait until the key has this version", {"minimum": 1}] = None,
        timeout_seconds: Seconds = None,
    ) -> Answer:
        """Read a shared value; null and version 0 if there is none."""
        _, caller = self._called(context_)
        state = caller.tree.state
        if wait_for_version is None:
            entry = state.get(key)
        else:
            with context_.stand_by("awaiting_child"):
                entry = state.wait_for(key, wait_for_version, timeout=timeout_seconds, cancel=context_.cancel)
        late = wait_for_version is not None and entry.version < wait_for_version
        return {
            "success": True,
            "key": key,
            "value": entry.value,
            "version": entry.version,
            **({"timed_out": True} if late else {}),
        }

    @tool(auto_approved=True)
    @_answering
    def list_shared_state(
        self, context_: ToolContext, prefix: Annotated[str, "Only keys that begin so"] = ""
    ) -> Answer:
        """The keys of all shared values."""
        _, caller = self._called(context_)
        keys = caller.tree.state.keys(prefix)
        return {"success": True, "keys": keys, "count": len(keys)}

    # -- inside ----------------------------------------------------------------------------------

    def _attached(self) -> Engine:
        if self._engine is None:
            raise SubagentConfigError("the subagent plugin has no runtime yet: call client.configure_tools() first")
        return self._engine

    def _called(self, context: ToolContext) -> tuple[Engine, Caller]:
        engine = self._attached()
        return engine, engine.caller(context)

    def _found(
        self, context: ToolContext, agent_id: str | None, subagent_id: str | None
    ) -> tuple[Engine, Caller, Subagent]:
        engine, caller = self._called(context)
        name = agent_id or subagent_id
        if not name:
            raise SubagentConfigError(
                "agent_id: expected the id or name of a subagent; list_active_subagents shows them"
            )
        return engine, caller, caller.tree.find(caller.seat.id, name)

    def _awaited(self, engine: Engine, caller: Caller, run: Run) -> Answer:
        engine.wait(caller, [run])
        assert run.result is not None
        run.take()
        return answers.result_answer(run.result, room=answers.share(caller.session, self.settings.result_tokens))

    def _is_approved(self, args: Mapping[str, Any]) -> bool:
        """Whether a profile that somebody vouched for spares the question before this spawn."""
        if args.get("inline_config"):
            return False
        profile = self.catalogue.find(str(args.get("profile") or ""))
        return profile is not None and profile.auto_approved and profile.source.trusted


def _execute(each: Tool, args: Mapping[str, Any] | None = None, /, **keywords: Any) -> Answer:
    """A tool as host code calls it: arguments are checked, and what is wrong is in the answer."""
    given = {**(args or {}), **keywords}
    if problems := each.validator.problems(given):
        return {"success": False, "error": f"bad arguments for {each.name}: {'; '.join(problems)}"}
    answer: Answer = each.as_executor()(given)
    return answer
