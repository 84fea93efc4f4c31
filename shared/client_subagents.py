"""What a client offers for delegation by host code; made on first use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

if TYPE_CHECKING:
    from shared.definitions.profile import SubagentProfile
    from shared.runtime import JaatoRuntime
    from shared.session import JaatoSession
    from shared.subagents.definition import Config
    from shared.subagents.handle import DelegationHandle
    from shared.subagents.manager import Options, SubagentManager
    from shared.subagents.result import SubagentResult


class SubagentFront:
    """The methods of a SubagentManager for the main session, under the names that hosts expect."""

    _subagents: Sequence[Config] = ()
    _subagent_manager: SubagentManager | None = None

    if TYPE_CHECKING:

        def get_runtime(self) -> JaatoRuntime: ...
        def get_session(self) -> JaatoSession: ...

    @property
    def subagent_manager(self) -> SubagentManager:
        """Delegation for the main session."""
        if self._subagent_manager is None:
            from shared.subagents.manager import SubagentManager

            made = SubagentManager(self, self._subagents)
            vars(self).setdefault("_subagent_manager", made)  # of two threads at once the first counts
        assert self._subagent_manager is not None
        return self._subagent_manager

    def register_subagent(self, config: Config) -> SubagentProfile:
        """Add or replace a subagent: a SubagentProfile, or a dict of its fields."""
        return self.subagent_manager.register(config)

    def list_subagents(self) -> list[SubagentProfile]:
        """All subagents that a task can be delegated to, by name."""
        return self.subagent_manager.list()

    async def delegate(
        self, config_name: str | None, task: str, *, timeout: float | None = None, **options: Unpack[Options]
    ) -> SubagentResult:
        """Hand a task to a subagent and await its result."""
        return await self.subagent_manager.delegate(config_name, task, timeout=timeout, **options)

    def delegate_sync(
        self, config_name: str | None, task: str, *, timeout: float | None = None, **options: Unpack[Options]
    ) -> SubagentResult:
        """Hand a task to a subagent and wait for its result."""
        return self.subagent_manager.delegate_sync(config_name, task, timeout=timeout, **options)

    async def delegate_async(self, config_name: str | None, task: str, **options: Unpack[Options]) -> DelegationHandle:
        """Hand a task to a subagent and go on; the handle has its result later."""
        return await self.subagent_manager.delegate_async(config_name, task, **options)

    def _introduce_subagents(self) -> None:
        """Make what was registered known to the plugins in use, so that the model can delegate to it too."""
        if self._subagents or self._subagent_manager is not None:
            self.subagent_manager.refresh()
