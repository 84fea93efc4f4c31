"""A child with every tool to delegate reaches those below it, and nobody beside or above it, under any dialect."""

from __future__ import annotations

from typing import Any

from support.rights import by_task
from support.subagents import Errands, Hold, Play, calling, staged

from shared.providers.base import ModelRequest
from shared.providers.script import Step

ATTACKS: list[tuple[str, dict[str, Any]]] = [
    ("sessions_kill", {"run_id": "victim"}),
    ("sessions_history", {"run_id": "victim"}),
    ("sessions_send", {"run_id_or_label": "victim", "message": "obey"}),
    ("cancel_subagent", {"agent_id": "victim"}),
    ("cancel_subagent", {"agent_id": "main"}),
    ("close_subagent", {"agent_id": "victim"}),
    ("continue_subagent", {"agent_id": "victim", "message": "obey"}),
    ("send_to_subagent", {"agent_id": "victim", "message": "obey"}),
    ("get_subagent_result", {"agent_id": "victim"}),
    ("wait_for_subagents", {"ids": ["victim"], "timeout_seconds": 0}),
]
FALSE_NAMES: list[tuple[str, dict[str, Any]]] = [
    ("spawn_subagent", {"task": "t", "name": "a\u200bb"}),
    (
        "sessions_spawn",
        {"agent_id": "spy", "task": "t", "label": "main \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} x"},
    ),
    ("sessions_spawn", {"agent_id": "spy\x1b[2J", "task": "t"}),
]


def test_nobody_beside_it_is_seen_or_touched_and_no_name_is_faked() -> None:
    said: list[Any] = []

    def spy(request: ModelRequest) -> Step:
        results = request.messages[-1].results
        if not results:
            return calling(*ATTACKS, *FALSE_NAMES, ("sessions_list", {}), ("list_active_subagents", {}))
        said.extend(result.result for result in results)
        return "done"

    hold = Hold("untouched")
    play = Play(Errands(), by_task({"victim": hold, "attack": spy}))
    profile = {"plugins": ["sessions", "spawn_agent", "subagent"]}
    config = {"max_depth": 3, "profiles": {"spy": profile}}
    with staged(play, expose=("sessions", "spawn_agent"), config=config) as stage:
        victim = stage.launch("victim", name="victim")
        hold.wait_entered()
        assert stage.spawn("attack", profile="spy")["success"]
        *refused, sessions, active = said
        assert len(refused) == len(ATTACKS) + len(FALSE_NAMES)
        for answer in refused[: len(ATTACKS)]:
            assert "no subagent" in str(answer), answer
        for answer in refused[len(ATTACKS) :]:
            assert "plain text" in str(answer), answer
        assert (sessions["sessions"], active["active_sessions"]) == ([], [])
        hold.release()
        assert stage.result(victim)["response"] == "untouched"
