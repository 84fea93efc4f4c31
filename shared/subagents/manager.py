"""SubagentManager: delegation for host code; a thin front over the engine."""

from __future__ import annotations

import builtins
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypedDict, Unpack

from shared.cancel import CancelToken
from shared.definitions.profile import SubagentProfile
from shared.errors import SkillError, SubagentConfigError, SubagentNotFoundError, unknown_name
from shared.on_demand import registry_of
from shared.runtime import JaatoRuntime
from shared.skills.manager import SkillManager
from shared.skills.preload import preload
from shared.subagents.awaiting import off_loop
from shared.subagents.definition import Config, Definition
from shared.subagents.delegates import Delegates, delegates_of
from shared.subagents.delegations import Delegations
from shared.subagents.engine import Engine, SpawnCall
from shared.subagents.given_history import Given, given_history
from shared.subagents.handle import DelegationHandle
from shared.subagents.parent import Parent, runtime_of, session_of
from shared.subagents.result import SubagentResult
from shared.subagents.retire import retire
from shared.subagents.run import Run
from shared.subagents.seat import Caller
from shared.tools import ToolContext
from shared.types import TokenUsage

NO_PROFILE = "subagent"  # under which the usage of tasks without a profile is counted
ABANDONED = "nobody waits for it any more"
Start = Callable[[CancelToken | None], DelegationHandle]


class Options(TypedDict, total=False):
    """What may be said besides the task: what the subagent should know, what was said before, and what stops it.

    An `agent_name` is the host's own; left out, each delegation gets one that no other has. Two of one name, profile
    and task at the same time are one, as they are for a model.
    """

    agent_name: str | None
    context: str | Mapping[str, Any] | None
    context_messages: Sequence[Given] | None
    cancel: CancelToken | None


class SubagentManager:
    """Hands tasks to subagents for a client, a runtime or a session; everything is made on first use.

    Coroutines do not hold up their event loop; the other methods are for plain code. Profiles from files
    can be delegated to as well as those registered here. `config_name` None is a subagent with the parent's tools.
    """

    def __init__(
        self, parent: Parent, configs: Sequence[Config] | None = None, skill_manager: SkillManager | None = None
    ) -> None:
        self._parent, self._skills = parent, skill_manager
        self._given = {each.profile.name: each for each in map(Definition.of, configs or ())}
        self._delegations = Delegations()
        self._applied: object = None  # for which plugins everything that was registered is in place

    # -- which there are -------------------------------------------------------------------------

    def register(self, config: Config) -> SubagentProfile:
        """Add or replace a subagent; raises SubagentConfigError with all that is wrong."""
        definition = Definition.of(config)
        self._given[definition.profile.name], self._applied = definition, None
        if self._runtime.registry is not None:
            self.refresh()
        return definition.profile

    def deregister(self, name: str) -> None:
        """Take a subagent back that was registered; what it works on goes on."""
        given, removed = self._given.pop(name, None), False
        if self._runtime.registry is not None:
            removed = self._delegates().remove_profile(name)
        if given is None and not removed:
            raise SubagentNotFoundError(unknown_name("registered subagent", name, self._given))

    def get(self, name: str) -> SubagentProfile | None:
        """The subagent of that name, registered or from a file; None if there is none."""
        return self._delegates().catalogue.find(name)

    def list(self) -> builtins.list[SubagentProfile]:
        """All subagents that a task can be delegated to, by name."""
        return builtins.list(self._delegates().catalogue.list())

    def refresh(self) -> None:
        """Make what was registered known to the plugins that the runtime has now."""
        self._delegates()

    # -- delegation ------------------------------------------------------------------------------

    async def delegate(
        self, config_name: str | None, task: str, *, timeout: float | None = None, **options: Unpack[Options]
    ) -> SubagentResult:
        """Hand over a task and await its result; a subagent that nobody awaits any more is cancelled."""
        return await _collected(await self.delegate_async(config_name, task, **options), timeout)

    def delegate_sync(
        self, config_name: str | None, task: str, *, timeout: float | None = None, **options: Unpack[Options]
    ) -> SubagentResult:
        """Hand over a task and wait for its result; one that is given up (time, Ctrl+C) is cancelled."""
        call, cancel = _call(config_name, task, **options)
        stop = _below(cancel)
        try:
            return self._start(call, config_name, stop).wait(timeout)
        except BaseException:  # whatever ends the starting or waiting, nobody else knows of the subagent
            stop.cancel(ABANDONED)
            raise

    async def delegate_async(self, config_name: str | None, task: str, **options: Unpack[Options]) -> DelegationHandle:
        """Hand over a task and go on; the handle has its result later."""
        call, cancel = _call(config_name, task, **options)
        return await _started(partial(self._start, call, config_name), cancel)

    def spawn(self, config_name: str | None, task: str, **options: Unpack[Options]) -> DelegationHandle:
        """The same as `delegate_async` for plain code."""
        call, cancel = _call(config_name, task, **options)
        return self._start(call, config_name, cancel)

    async def spawn_dynamic(
        self, config: Config, task: str, *, timeout: float | None = None, **options: Unpack[Options]
    ) -> SubagentResult:
        """Hand over a task to a subagent that exists for this task only, and await its result."""
        definition = Definition.of(config)
        call, cancel = _call(definition.profile.name, task, **options)
        return await _collected(await _started(partial(self._start_dynamic, call, definition), cancel), timeout)

    # -- looking ---------------------------------------------------------------------------------

    def get_active_delegations(self) -> builtins.list[DelegationHandle]:
        """Handles of the tasks that are still worked on, oldest first."""
        return self._delegations.open()

    def get_usage_breakdown(self) -> dict[str, TokenUsage]:
        """Tokens used for what was delegated here, by name of the subagent, with all below it."""
        return self._delegations.usage()

    # -- inside ----------------------------------------------------------------------------------

    @property
    def _runtime(self) -> JaatoRuntime:
        return runtime_of(self._parent)

    def _delegates(self) -> Delegates:
        """The engine and the profiles of the runtime, with those that were registered here."""
        delegates, version = delegates_of(self._runtime), self._runtime.tools_version
        if self._applied != (delegates, version):  # tools that a definition names may have come since
            for definition in [*self._given.values()]:
                delegates.add_profile(self._settled(definition))
            self._applied = (delegates, version)
        return delegates

    def _settled(self, definition: Definition) -> SubagentProfile:
        """A profile as the planner takes it; its skills come from the manager that was given, if any."""
        profile, registry = definition.profile, registry_of(self._runtime)
        if self._skills is None or not profile.skills:
            return definition.settled(registry)
        loaded = preload(self._skills, profile.skills)
        text = "\n\n".join(each for each in (profile.system_instructions, loaded.text) if each)
        profile = replace(profile, skills=(), system_instructions=text)
        return Definition(profile, (*definition.functions, *loaded.tools), definition.key or "skills").settled(registry)

    def _start(self, call: SpawnCall, subagent_name: str | None, cancel: CancelToken | None = None) -> DelegationHandle:
        delegates = self._delegates()
        pooled = _is_pooled(delegates, call.profile) and call.name is None
        caller, unlink = self._caller(delegates, cancel)
        try:
            run = _spawned(delegates.engine, caller, call, pooled=pooled)
        except BaseException as error:  # nothing was started; should Ctrl+C have come in the midst of it, it stops
            unlink()
            caller.cancel.cancel(ABANDONED)
            if isinstance(error, SubagentConfigError) and isinstance(error.__cause__, SkillError):
                raise error.__cause__ from None
            raise
        name = subagent_name or NO_PROFILE
        handle = DelegationHandle(delegates.engine, caller, run, subagent_name=name, task=call.task)
        self._delegations.add(handle)
        handle.on_complete(unlink)
        if not pooled:
            retire(delegates.engine, caller, run.agent)
        return handle

    def _start_dynamic(
        self, call: SpawnCall, definition: Definition, cancel: CancelToken | None = None
    ) -> DelegationHandle:
        """Start under a name that nobody else has; the engine knows the profile no longer than that takes."""
        delegates = self._delegates()
        profile = replace(self._settled(definition), name=_own_name(call), visibility="internal")
        delegates.catalogue.add(profile)
        try:
            return self._start(
                replace(call, profile=profile.name, name=call.name or profile.name), definition.profile.name, cancel
            )
        finally:
            delegates.catalogue.remove(profile.name)

    def _caller(self, delegates: Delegates, cancel: CancelToken | None) -> tuple[Caller, Callable[[], object]]:
        """Who asks, with a token of its own below the parent's; and a way to unlink it from the host's."""
        session = session_of(self._parent)
        turn = session.turn if session is not self._runtime.main_session else None
        token = (turn.cancel if turn is not None else session.cancel_token).child()
        caller = delegates.engine.caller(ToolContext(session.agent_id, token, session=session))
        if cancel is None:
            return caller, _nothing
        return caller, cancel.on_cancel(lambda: token.cancel(cancel.reason))


def _call(
    config_name: str | None,
    task: str,
    *,
    agent_name: str | None = None,
    context: str | Mapping[str, Any] | None = None,
    context_messages: Sequence[Given] | None = None,
    cancel: CancelToken | None = None,
) -> tuple[SpawnCall, CancelToken | None]:
    """What is asked of the engine, and what stops it."""
    if not isinstance(task, str) or not task.strip():
        raise SubagentConfigError("task: expected what the subagent should do, got an empty text")
    return SpawnCall(task, config_name, agent_name, context, history=given_history(context_messages)), cancel


def _is_pooled(delegates: Delegates, name: str | None) -> bool:
    """Whether a profile's agents are kept for later tasks; raises SubagentNotFoundError for one that does not exist."""
    profile = delegates.catalogue.find(name) if name is not None else None
    if name is not None and profile is None:
        known = [each.name for each in delegates.catalogue.list()]
        raise SubagentNotFoundError(unknown_name("subagent", name, known))
    return profile is not None and profile.reuse


def _spawned(engine: Engine, caller: Caller, call: SpawnCall, *, pooled: bool) -> Run:
    """A run of its own, by an agent of the pool where there is one; an equal task that is live is another's.

    Under a name of its own, unless the host gave one, no two delegations are ever the same one.
    """
    if pooled:
        run, fresh = engine.spawn(caller, call)
        if fresh:
            return run
    return engine.spawn(caller, replace(call, name=call.name or _own_name(call)))[0]


def _own_name(call: SpawnCall) -> str:
    return f"{(call.profile or NO_PROFILE)[:70]}-{secrets.token_hex(4)}"


async def _started(start: Start, cancel: CancelToken | None) -> DelegationHandle:
    """Start on a thread; if the waiting is given up meanwhile, what was started is stopped."""
    stop = _below(cancel)
    try:
        return await off_loop(partial(start, stop))
    except BaseException:  # also the cancel of the task that waits here
        stop.cancel(ABANDONED)
        raise


async def _collected(handle: DelegationHandle, timeout: float | None) -> SubagentResult:
    try:
        return await handle.awaited(timeout)
    except BaseException:  # whatever ends the waiting, nobody else knows of the subagent
        handle.cancel(ABANDONED)
        raise


def _below(cancel: CancelToken | None) -> CancelToken:
    return cancel.child() if cancel is not None else CancelToken()


def _nothing() -> None:
    return None
