"""Assembly: from what a session is now to the bundle that the loop runs with."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shared import config
from shared.events import ContextCollected
from shared.gc.base import GCResult
from shared.gc.keeper import ContextKeeper
from shared.gc.loader import load_strategy
from shared.loop import Agent
from shared.modelcall import ModelCaller
from shared.toolbox import Toolbox
from shared.types import estimate_tokens

if TYPE_CHECKING:
    from shared.runtime import JaatoRuntime
    from shared.session import JaatoSession

log = logging.getLogger(__name__)

KEPT_TOOLBOXES = 256


class Assembly:
    """Puts provider, toolbox, system prompt and context keeper together; what sessions can share is made once."""

    def __init__(self, runtime: JaatoRuntime) -> None:
        self._runtime = runtime
        self._toolboxes: dict[tuple[Any, ...], Toolbox] = {}
        self._base: str | None = None

    def forget_tools(self) -> None:
        """Make toolboxes anew, for other permissions or hooks hold."""
        self._toolboxes.clear()

    def build(
        self, session: JaatoSession, *, model: str, provider_name: str, keeper: ContextKeeper | None = None
    ) -> Agent:
        """The bundle that the loop runs with, from what a session is now."""
        runtime, spec = self._runtime, session.spec
        provider = runtime.provider(provider_name, project=spec.project, location=spec.location)
        caller = ModelCaller(
            spec.agent_id,
            provider,
            model,
            runtime.governor(provider, model),
            session.account,
            runtime.ledger.prices,
            runtime.bus,
            session.budget,
            runtime.tell_retry,
            spec.agent_path,
        )
        toolbox = self._toolbox(session)
        system = self._system_prompt(session)
        return Agent(
            agent_id=spec.agent_id,
            system=system,
            caller=caller,
            toolbox=toolbox,
            keeper=keeper or self._keeper(session, caller),
            session=session,
            workspace=runtime.workspace,
            bus=runtime.bus,
            on_collected=self._collected(session),
            overhead=estimate_tokens(system) + toolbox.toolset.tokens,
            settings=spec.settings,
            max_turns=spec.max_turns,
            stream=session.stream,
        )

    def _toolbox(self, session: JaatoSession) -> Toolbox:
        """Toolboxes are shared by all sessions with the same plugins, tools and profile."""
        view, spec = session.view, session.spec
        extra = tuple(map(id, spec.extra_tools))
        key = (tuple(view.names), spec.tool_names, extra, spec.profile, self._runtime.tools_version)
        found = self._toolboxes.get(key) if view.shares_all else None
        if found is not None:
            return found
        tools = [tool for tool in view.tools() if spec.tool_names is None or tool.name in spec.tool_names]
        toolbox = Toolbox(
            [*tools, *spec.extra_tools],
            gate=self._runtime.broker,
            hooks=self._runtime.hooks,
            profile=spec.profile,
            is_lost=view.has_lost,
        )
        if view.shares_all:
            if len(self._toolboxes) > KEPT_TOOLBOXES:
                self._toolboxes.clear()
            self._toolboxes[key] = toolbox
        return toolbox

    def _system_prompt(self, session: JaatoSession) -> str:
        """The same for all first, what varies last, so that providers can cache the beginning."""
        if self._base is None:
            self._base = _base_instructions(self._runtime.workspace)
        own = session.spec.system_instructions or ""
        return "\n\n".join(text for text in (self._base, *session.view.instructions(), own.strip()) if text)

    def _keeper(self, session: JaatoSession, caller: ModelCaller) -> ContextKeeper:
        gc = session.spec.gc
        model = str(gc.plugin_config.get("model") or caller.model)

        def summarize(text: str) -> str:
            governor = self._runtime.governor(caller.provider, model)
            return session.generate(text, purpose="summary", caller=replace(caller, model=model, governor=governor))

        limit = caller.provider.traits.context_window(caller.model)
        return ContextKeeper(load_strategy(gc.type), gc, limit, summarize)

    def _collected(self, session: JaatoSession) -> Callable[[GCResult], None]:
        def tell(result: GCResult) -> None:
            session.note_gc(result)
            self._runtime.bus.emit(
                ContextCollected(
                    session.agent_id,
                    result.plugin_name,
                    result.trigger_reason.value,
                    result.tokens_before,
                    result.tokens_after,
                    result.notification,
                )
            )

        return tell


def _base_instructions(workspace: Path) -> str:
    """The host's own instructions: the project's file, else the user's."""
    for folder in (workspace / ".jaato", config.jaato_home()):
        path = folder / "system_instructions.md"
        if path.is_file():
            return path.read_text(encoding="utf-8").strip()
    return ""
