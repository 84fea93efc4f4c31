"""Real answers of the subagent tools, from a scripted model, with what varies by itself replaced."""

from __future__ import annotations

import re
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from shared import JaatoClient, PluginRegistry
from shared.plugins.subagent import SubagentPlugin, SubagentProfile, SubagentResult
from shared.providers.base import ModelRequest
from shared.providers.script import Reply
from shared.testing import ScriptProvider

#: The fields of a result, as `get_subagent_result` and a spawn that waits give it.
RESULT_FIELDS: Mapping[str, str] = {
    "success": "true for `completed` only",
    "agent_id": "which subagent",
    "status": "one of the final statuses above",
    "reason": "why a `partial` run was cut off",
    "response": "what it said so far, whatever the status; a long one in pieces",
    "next_offset": "where the next piece begins: `get_subagent_result` with this `offset`",
    "structured": "the answer as a JSON value, where an `output_schema` was asked for",
    "findings": "what a profile with `emit_findings` reported",
    "turns_used": "model calls",
    "tool_calls": "tool calls that were run",
    "denied_calls": "tool calls that the policy or a person denied",
    "token_usage": "tokens of this run: prompt, output, read from and written to the cache, total",
    "cost_usd": "what this run cost, where the prices of the model are known",
    "subtree_usage": "tokens of this run and all below it",
    "duration_seconds": "from its start to its end",
    "model": "the model that answered",
    "provider": "and its provider",
    "finish_reason": "why the model stopped",
    "hops": "models that failed for good before, where there are `fallback_models`",
    "error": "what went wrong, in a sentence",
    "notes": "what else the caller should know, such as tools that are not to be had here",
    "complete": "true: the run has ended",
}
_NOT_TOLD = {"is_structured", "subagent_name"}  # for host code
_USAGE = {
    "prompt_tokens": 412,
    "output_tokens": 4,
    "cache_read_tokens": 0,
    "cache_write_tokens": 0,
    "total_tokens": 416,
}
_FIXED = {
    "duration_seconds": 1.204,
    "created_at": "2026-01-01T12:00:00+00:00",
    "last_activity": "2026-01-01T12:00:01+00:00",
    "token_usage": _USAGE,  # of a prompt that is worded anew from time to time
    "subtree_usage": _USAGE,
    "estimated_prefix_tokens": 412,
}
_ID = re.compile(r"subagent_[0-9a-f]+")

Answers = dict[str, dict[str, Any]]


def sample_answers() -> Answers:
    """For each tool: answers by the occasion on which they are given."""
    if unknown := {each.name for each in fields(SubagentResult)} - _NOT_TOLD - set(RESULT_FIELDS):
        raise SystemExit(
            f"docs/generate/sample_answers.py, RESULT_FIELDS: say what these mean: {', '.join(sorted(unknown))}"
        )
    at_work = threading.Event()

    def script(request: ModelRequest) -> Reply:
        if "slowly" not in str(request.messages[0]):
            return Reply("Forty-two.")
        at_work.set()
        return Reply("never", delay=600)

    plugin = SubagentPlugin()
    registry = PluginRegistry()
    registry.register_plugin(plugin, config={"max_concurrent": 1, "auto_discover_profiles": False}, expose=True)
    with tempfile.TemporaryDirectory() as folder, JaatoClient(provider_name="script", workspace=folder) as client:
        client.register_provider("script", ScriptProvider(script))
        client.connect()
        client.configure_tools(registry, permissions="allow")
        plugin.add_profile(SubagentProfile("sage", "Knows the answer", max_turns=2))
        return _Normal().of(_answers(plugin.get_executors(), at_work))


def _answers(call: Mapping[str, Any], at_work: threading.Event) -> Answers:
    """A small story, so that every tool has something to tell."""
    found: Answers = {name: {} for name in call}
    spawn = found["spawn_subagent"]
    spawn["A spawn that waits gives the result"] = done = call["spawn_subagent"](
        {"task": "What is the answer?", "profile": "sage"}
    )
    spawn["`dry_run`"] = call["spawn_subagent"]({"task": "Another", "profile": "sage", "dry_run": True})
    sage = {"agent_id": done["agent_id"]}
    again = call["continue_subagent"]({**sage, "message": "Are you sure?"})
    assert again.keys() == done.keys()
    found["continue_subagent"]["The result of the new run, or the answer to a background spawn"] = {}
    slow = {"agent_id": call["spawn_subagent"]({"task": "Think slowly.", "background": True})["agent_id"]}
    at_work.wait()
    spawn["`background`"] = call["spawn_subagent"]({"task": "Wait for a place.", "background": True, "name": "second"})
    found["send_to_subagent"]["Answer"] = call["send_to_subagent"]({**slow, "message": "Hurry."})
    found["list_active_subagents"]["Answer"] = call["list_active_subagents"]({"status": "running"})
    result = found["get_subagent_result"]
    result["While it runs"] = call["get_subagent_result"](slow)
    result["Of one that is not known"] = call["get_subagent_result"]({"agent_id": "third"})
    found["wait_for_subagents"]["When `timeout_seconds` were not enough"] = call["wait_for_subagents"](
        {"ids": [slow["agent_id"]], "timeout_seconds": 0}
    )
    found["cancel_subagent"]["The receipt"] = call["cancel_subagent"](slow)
    found["close_subagent"]["Answer"] = call["close_subagent"](sage)
    found["list_subagent_profiles"]["Answer"] = call["list_subagent_profiles"]({})
    _shared_state(found, call)
    return found


def _shared_state(found: Answers, call: Mapping[str, Any]) -> None:
    plan = {"key": "plan", "value": {"steps": 3}}
    stored = found["set_shared_state"]
    stored["Answer"] = call["set_shared_state"](plan)
    stored["If `expected_version` is not the version any more"] = call["set_shared_state"](
        {**plan, "expected_version": 0}
    )
    found["get_shared_state"]["Answer"] = call["get_shared_state"]({"key": "plan"})
    found["list_shared_state"]["Answer"] = call["list_shared_state"]({})


class _Normal:
    """The same ids, times and durations in every run."""

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}

    def of(self, value: Any) -> Any:
        """A value with what varies replaced, keys and order kept."""
        if isinstance(value, dict):
            return {key: _FIXED.get(key, self.of(inner)) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.of(each) for each in value]
        return _ID.sub(self._id, value) if isinstance(value, str) else value

    def _id(self, match: re.Match[str]) -> str:
        return self._ids.setdefault(match[0], f"subagent_{len(self._ids) + 1:08x}")
