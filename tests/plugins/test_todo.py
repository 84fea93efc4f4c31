from __future__ import annotations

import dataclasses
import threading
from pathlib import Path

import pytest
from support.plugin_calls import Caller

from shared.errors import ConfigError
from shared.plugins.todo import create_plugin
from shared.plugins.todo.plan import Plan
from shared.plugins.todo.plugin import TodoPlugin


@pytest.fixture
def plugin() -> TodoPlugin:
    made = create_plugin()
    made.initialize()
    return made


@pytest.fixture
def todo(plugin: TodoPlugin, tmp_path: Path) -> Caller:
    return Caller(plugin, tmp_path)


def statuses(plan: dict[str, object]) -> list[str]:
    return [step["status"] for step in plan["steps"]]  # type: ignore[attr-defined]


def test_a_plan_from_beginning_to_end(todo: Caller) -> None:
    plan = todo.ok("create_plan", title="Ship it", steps=["build", "test"])
    assert plan["steps"][0] == {"step": 1, "description": "build", "status": "pending"}
    todo.ok("update_step", step=1, status="completed", note="fast")
    assert todo.ok("add_step", description="lint", after=0)["steps"][0]["description"] == "lint"
    assert todo.ok("add_step", description="tag")["steps"][3]["description"] == "tag"
    assert todo.ok("get_plan")["steps"][1] == {
        "step": 2,
        "description": "build",
        "status": "completed",
        "note": "fast",
    }
    error = todo.error("complete_plan", summary="done")
    assert "1 (lint); 3 (test); 4 (tag)" in error
    for step, status in ((1, "skipped"), (3, "failed"), (4, "in_progress"), (4, "completed")):
        todo.ok("update_step", step=step, status=status)
    ended = todo.ok("complete_plan", summary="done")
    assert (ended["status"], ended["summary"]) == ("completed", "done")
    assert statuses(ended) == ["skipped", "completed", "failed", "completed"]
    assert "is completed: make a new one" in todo.error("update_step", step=1, status="pending")


def test_a_plan_that_fails_skips_what_is_open(todo: Caller) -> None:
    todo.ok("create_plan", title="t", steps=["a", "b"])
    todo.ok("update_step", step=1, status="failed")
    assert statuses(todo.ok("complete_plan", status="failed")) == ["failed", "skipped"]


def test_a_note_stays_until_it_is_replaced(todo: Caller) -> None:
    todo.ok("create_plan", title="t", steps=["a"])
    todo.ok("update_step", step=1, status="in_progress", note="half")
    assert todo.ok("update_step", step=1, status="completed")["steps"][0]["note"] == "half"
    assert "note" not in todo.ok("update_step", step=1, status="completed", note="")["steps"][0]


def test_bad_calls_change_nothing(todo: Caller) -> None:
    assert "create_plan" in todo.error("update_step", step=1, status="completed")
    assert todo.ok("get_plan") == {"title": None, "steps": []}
    todo.ok("create_plan", title="t", steps=["a", "b"])
    before = todo.ok("get_plan")
    assert "steps 1 to 2" in todo.error("update_step", step=3, status="completed")
    assert "one of 'pending'" in todo.error("update_step", step=1, status="finished")
    assert "steps 1 to 2" in todo.error("add_step", description="x", after=3)
    for args in ({"title": "", "steps": ["a"]}, {"title": "t", "steps": []}, {"title": "t", "steps": [""]}):
        todo.error("create_plan", **args)
    todo.error("create_plan", title="t", steps=["x"] * 101)
    assert todo.ok("get_plan") == before


def test_a_plan_cannot_grow_without_end(todo: Caller) -> None:
    todo.ok("create_plan", title="t", steps=["x"] * 100)
    assert "at most 100" in todo.error("add_step", description="one more")


def test_each_agent_has_its_own_plan(todo: Caller, plugin: TodoPlugin, tmp_path: Path) -> None:
    child = Caller(plugin, tmp_path, agent_id="child-1")
    todo.ok("create_plan", title="parent's", steps=["a"])
    child.ok("create_plan", title="child's", steps=["b"])
    child.ok("update_step", step=1, status="completed")
    assert statuses(todo.ok("get_plan")) == ["pending"]
    assert child.ok("get_plan")["title"] == "child's"


def test_a_new_plan_says_what_it_replaces(todo: Caller) -> None:
    todo.ok("create_plan", title="first", steps=["a"])
    assert todo.ok("create_plan", title="second", steps=["a"])["replaced"] == "first"
    todo.ok("update_step", step=1, status="completed")
    todo.ok("complete_plan")
    assert "replaced" not in todo.ok("create_plan", title="third", steps=["a"])


def test_watchers_get_immutable_snapshots(todo: Caller, plugin: TodoPlugin) -> None:
    seen: list[Plan] = []
    stop = plugin.on_change(seen.append)
    todo.ok("create_plan", title="t", steps=["a"])
    todo.ok("update_step", step=1, status="in_progress")
    todo.error("update_step", step=9, status="in_progress")
    todo.ok("create_plan", title="u", steps=["a"])
    stop()
    todo.ok("update_step", step=1, status="completed")
    assert [(plan.agent_id, plan.title, plan.version) for plan in seen] == [
        ("main", "t", 1),
        ("main", "t", 2),
        ("main", "u", 3),
    ]
    assert seen[0].steps[0].status == "pending"
    with pytest.raises(dataclasses.FrozenInstanceError):
        seen[0].title = "x"  # type: ignore[misc]


def test_a_watcher_may_call_back_into_the_plugin_or_fail(todo: Caller, plugin: TodoPlugin) -> None:
    seen: list[str] = []

    def broken(plan: Plan) -> None:
        raise RuntimeError("no view")

    plugin.on_change(broken)
    plugin.on_change(lambda plan: seen.append(todo.ok("get_plan")["title"]))
    todo.ok("create_plan", title="t", steps=["a"])
    assert seen == ["t"]


def test_steps_updated_by_many_threads_are_all_kept(todo: Caller, plugin: TodoPlugin) -> None:
    versions: list[int] = []
    plugin.on_change(lambda plan: versions.append(plan.version))
    todo.ok("create_plan", title="t", steps=[f"s{n}" for n in range(64)])
    start = threading.Barrier(8)

    def work(first: int) -> None:
        start.wait(30)
        for step in range(first, 65, 8):
            todo.ok("update_step", step=step, status="completed", note=str(step))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    plan = todo.ok("get_plan")
    assert statuses(plan) == ["completed"] * 64
    assert [step["note"] for step in plan["steps"]] == [str(n) for n in range(1, 65)]
    assert sorted(versions) == list(range(1, 66))


def test_the_plan_command(todo: Caller, plugin: TodoPlugin, tmp_path: Path) -> None:
    [command] = plugin.get_user_commands()
    show = plugin.get_executors()["plan"]
    assert (command.name, command.share_with_model) == ("plan", False)
    assert show({}) == "There is no plan."
    todo.ok("create_plan", title="Ship", steps=["build", "test"])
    todo.ok("update_step", step=1, status="completed", note="ok")
    Caller(plugin, tmp_path, agent_id="kid").ok("create_plan", title="Help", steps=["x"])
    assert show({}).split("\n")[:3] == [
        "Ship (main): active, 1 of 2 steps done",
        "  [x] 1. build (ok)",
        "  [ ] 2. test",
    ]
    assert show({"agent": "kid"}).startswith("Help (kid)")
    assert show({"agent": "nobody"}) == "Agent 'nobody' has no plan."
    assert [each.value for each in plugin.get_command_completions("plan", ["k"])] == ["kid"]


def test_shutdown_forgets_and_settings_are_checked(todo: Caller, plugin: TodoPlugin) -> None:
    todo.ok("create_plan", title="t", steps=["a"])
    plugin.shutdown()
    assert todo.ok("get_plan")["title"] is None
    with pytest.raises(ConfigError, match="unknown setting 'file'"):
        plugin.initialize({"file": "x"})
    plugin.initialize({"agent_name": "kid"})


def test_schemas(plugin: TodoPlugin) -> None:
    schemas = {schema.name: list(schema.parameters["properties"]) for schema in plugin.get_tool_schemas()}
    assert schemas == {
        "create_plan": ["title", "steps"],
        "update_step": ["step", "status", "note"],
        "add_step": ["description", "after"],
        "complete_plan": ["summary", "status"],
        "get_plan": [],
    }
    assert plugin.get_auto_approved_tools() == list(schemas)
