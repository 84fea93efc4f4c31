"""The tools for values that all agents of one conversation share."""

from __future__ import annotations

from typing import Annotated, Any

from shared.plugins.subagent.answering import Answer, answering
from shared.plugins.subagent.arguments import Seconds
from shared.plugins.subagent.delegation import Delegation
from shared.plugins.subagent.pages import Room, fitting
from shared.tools import ToolContext, tool


class StateTools(Delegation):
    """set_shared_state, get_shared_state and list_shared_state; children have them too."""

    @tool
    @answering
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
    @answering
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
    @answering
    def list_shared_state(
        self, context_: ToolContext, prefix: Annotated[str, "Only keys that begin so"] = ""
    ) -> Answer:
        """The keys of all shared values."""
        _, caller = self._called(context_)
        keys = caller.tree.state.keys(prefix)
        if context_.session is None:  # host code has no context that could overflow
            return {"success": True, "keys": keys, "count": len(keys)}
        kept = fitting(keys, Room.of(caller.session, self.settings.result_tokens).all)
        unshown = len(keys) - len(kept)
        note = f"{unshown} more begin with '{prefix}': give a longer prefix"
        more = {"not_shown": unshown, "message": note} if unshown else {}
        return {"success": True, "keys": kept, "count": len(keys), **more}
