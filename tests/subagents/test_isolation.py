"""Every child has its own plugin instances where it needs them, and reaches only agents below it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest
from support.rights import by_task, desk, dry, live, refused, request_of
from support.subagents import Hold, Stage, answers_in, calling, last_answer, spawning, staged
from support.tools import Lab

from shared import Plugin, tool
from shared.providers.script import ScriptProvider
from shared.tools import Tool


def _listed(stage: Stage) -> dict[str, Any]:
    return {each["agent_id"]: each for each in stage.call("list_active_subagents")["active_sessions"]}


# A profile whose children may spawn in turn.
SPAWNER = {"plugins": ["subagent", "lab"]}


# -- plugin instances -----------------------------------------------------------------------------


def test_a_spawn_never_touches_the_parents_plugin_and_children_do_not_mix() -> None:
    profiles = {name: {"plugins": ["desk"], "plugin_configs": {"desk": {"drawer": name}}} for name in ("left", "right")}
    meet = Hold(calling(("look", {})))
    desks = desk()
    with staged([meet, "ok"], desks, config={"profiles": profiles}) as stage:
        agents = {name: stage.launch(name, profile=name) for name in profiles}
        agents["top"] = stage.launch("top")
        meet.wait_entered(3)
        assert len(live(desks)) == 3, "the plain child shares its parent's"
        meet.release()
        for name, agent in agents.items():
            assert stage.result(agent)["success"]
            assert last_answer(request_of(stage.play, name)) == f"the {name} drawer, 10 lines"
        assert desks.settings_taken == [{"drawer": "top", "lines": 10}]
        assert desks.shut_down == 0
        stage.call("close_subagent", agent_id=agents["left"])
        assert sorted(each.config["drawer"] for each in live(desks)) == ["right", "top"]
    assert live(desks) == [], "what is left is shut down with the client"
    assert all(each.shut_down == 1 for each in desks.made), "and each once"


def test_a_dry_run_and_a_duplicate_leave_no_instance_behind() -> None:
    hold, desks = Hold(), desk()
    profiles = {"p": {"plugins": ["desk"], "plugin_configs": {"desk": {"drawer": "own"}}}}
    with staged([hold], desks, config={"profiles": profiles}) as stage:
        assert dry(stage, profile="p")["success"]
        assert live(desks) == [desks]
        first = stage.launch("same", profile="p")
        hold.wait_entered()
        assert stage.launch("same", profile="p") == first
        assert len(live(desks)) == 2
        stage.call("cancel_subagent", agent_id=first)
        hold.release()


def test_a_run_cancelled_in_the_queue_lets_go_of_its_instances() -> None:
    hold, desks = Hold(), desk()
    profiles = {"p": {"plugins": ["desk"], "plugin_configs": {"desk": {"drawer": "own"}}}}
    with staged([hold], Lab(), desks, config={"profiles": profiles, "max_concurrent": 1}) as stage:
        stage.launch("first", inline_config={"plugins": ["lab"]})
        hold.wait_entered()
        queued = stage.launch("second", profile="p")
        assert len(live(desks)) == 2
        assert stage.call("cancel_subagent", agent_id=queued)["status"] == "cancelled"
        assert live(desks) == [desks]
        hold.release()


class Slow(Plugin):
    """Its tools are known only once it was given a moment, as those of a server that has to start."""

    name = "slow"
    config_keys: ClassVar[Mapping[str, Any]] = {"server": ""}

    def __init__(self) -> None:
        super().__init__()
        self.on_tools_changed: list[Any] = []
        self._ready = False

    def settle(self) -> None:
        self._ready = True

    def known_tools(self) -> list[Tool]:
        return super().tools() if self._ready else []

    @tool
    def fetch(self) -> str:
        """Fetch something."""
        return str(self.config["server"])


@pytest.mark.parametrize("given", [{}, {"profile": "own"}])
def test_tools_that_are_still_on_their_way_are_waited_for(given: dict[str, Any]) -> None:
    profiles = {"own": {"plugins": ["slow"], "plugin_configs": {"slow": {"server": "own"}}}}
    with staged([calling(("fetch", {})), "ok"], Slow(), config={"profiles": profiles}) as stage:
        stage.spawn("work", **given)
        assert last_answer(request_of(stage.play, "work")) == given.get("profile", "")


# -- reaching other agents ------------------------------------------------------------------------


def test_an_agent_reaches_only_those_below_it() -> None:
    hold = Hold("late")
    seen: dict[str, list[Any]] = {}

    def intruder(request: Any) -> Any:
        given = answers_in(request)
        if len(given) == 1:
            ids = (*known.values(), "sibling", "nephew", "main", "intruder")
            tools = ("get_subagent_result", "cancel_subagent", "close_subagent")
            reach = [(tool, {"agent_id": each}) for each in ids for tool in tools]
            reach += [("continue_subagent", {"agent_id": each, "message": "obey"}) for each in ids]
            reach += [("send_to_subagent", {"subagent_id": each, "message": "obey"}) for each in ids]
            reach += [("wait_for_subagents", {"ids": [each]}) for each in ids]
            return calling(("list_active_subagents", {}), *reach)
        if len(given) > 1:
            seen["answers"] = given[1:]
            return "gave up"
        return calling(("list_active_subagents", {}))

    known: dict[str, str] = {}
    child = by_task({"sibling": [spawning("nephew"), "ok"], "nephew": hold, "intruder": intruder})
    with staged(child, Lab(), config={"profiles": {"p": SPAWNER}, "max_depth": 2}) as stage:
        known["sibling"] = stage.launch("sibling", profile="p", name="sibling")
        hold.wait_entered()
        known["nephew"] = next(iter(set(_listed(stage)) - set(known.values())))
        result = stage.spawn("intruder", profile="p", name="intruder")
        assert result["status"] == "completed", result
        listing, *rest = seen["answers"]
        assert listing["active_sessions"] == []
        assert len(rest) == 6 * 6
        for answer in rest:
            refused(answer, "Known: none yet")
        listed = _listed(stage)
        assert [listed[each]["status"] for each in known.values()] == ["running", "running"]
        hold.release()
        assert stage.result(known["sibling"])["success"]


def test_another_tree_on_the_same_runtime_is_out_of_reach() -> None:
    with staged(None, Lab()) as stage:
        mine = stage.spawn("mine", name="mine")["agent_id"]
        runtime = stage.client.get_runtime()
        script = [calling(*(("get_subagent_result", {"agent_id": each}) for each in (mine, "mine"))), "no"]
        runtime.register_provider("elsewhere", ScriptProvider(script, name="elsewhere"))
        other = runtime.create_session("m", provider_name="elsewhere")
        other.send_message("look around")
        results = [result.text for message in other.get_history() for result in message.results]
        assert len(results) == 2
        assert all("no subagent" in text and mine not in text.split("Known")[1] for text in results)
        other.close()


@pytest.mark.parametrize("name", ["main \u203a boss", "two\nlines", "\u202eevil", " ", "\x1b[2Jclear"])
def test_a_name_that_would_fool_people_is_refused(name: str) -> None:
    with staged() as stage:
        refused(stage.spawn(name=name), "name")
        assert not stage.play.child_requests
