"""The twelve tools: parameters, answers, approvals and errors."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from support.subagents import (
    PATIENCE,
    Errands,
    Hold,
    Play,
    Stage,
    answers_in,
    calling,
    spawning,
    staged,
    task_of,
    user_texts,
)
from support.tools import Lab

from shared.events import Event
from shared.providers.base import ModelRequest
from shared.providers.script import Reply, Step
from shared.subagents.prompt import PREAMBLE

PARAMETERS = {
    "spawn_subagent": ({"task"}, {"profile", "name", "context", "background", "inline_config", "dry_run"}),
    "continue_subagent": ({"message"}, {"agent_id", "subagent_id", "name", "background"}),
    "send_to_subagent": ({"message"}, {"agent_id", "subagent_id", "name"}),
    "close_subagent": (set(), {"agent_id", "subagent_id", "name"}),
    "cancel_subagent": (set(), {"agent_id", "subagent_id", "name", "mode", "reason"}),
    "get_subagent_result": (set(), {"agent_id", "subagent_id", "name", "wait", "timeout_seconds", "offset"}),
    "wait_for_subagents": (set(), {"ids", "mode", "timeout_seconds"}),
    "list_active_subagents": (set(), {"status"}),
    "list_subagent_profiles": (set(), set()),
    "set_shared_state": ({"key", "value"}, {"expected_version", "ttl_seconds"}),
    "get_shared_state": ({"key"}, {"wait_for_version", "timeout_seconds"}),
    "list_shared_state": (set(), {"prefix"}),
}
INLINE = {
    *("plugins", "system_instructions", "max_turns", "model", "provider", "gc", "output_schema"),
    *("timeout_seconds", "budget"),
}
READING = {"list_active_subagents", "list_subagent_profiles", "list_shared_state"}
RESULT_FIELDS = {
    *("success", "agent_id", "status", "response", "turns_used", "tool_calls", "token_usage", "subtree_usage"),
    *("duration_seconds", "model", "provider", "finish_reason", "complete"),
}
USAGE_FIELDS = {"prompt_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "total_tokens"}
BY_ID = ("continue_subagent", "send_to_subagent", "close_subagent", "cancel_subagent", "get_subagent_result")


def arguments_for(tool: str) -> dict[str, Any]:
    """What a tool needs besides the id."""
    return {"message": "hello"} if "message" in PARAMETERS[tool][0] else {}


# -- what is offered ---------------------------------------------------------------------------------


def test_all_twelve_tools_with_their_parameters() -> None:
    with staged() as stage:
        found = {schema.name: schema.parameters for schema in stage.plugin.get_tool_schemas()}
        assert list(found) == list(PARAMETERS), "twelve tools in one order"
        for name, (required, optional) in PARAMETERS.items():
            assert set(found[name].get("required", ())) == required, name
            assert set(found[name].get("properties", {})) == required | optional, name
        inline = str(found["spawn_subagent"]["properties"]["inline_config"])
        assert all(f"'{key}'" in inline for key in INLINE)


def test_only_reading_tools_are_approved_in_advance() -> None:
    with staged() as stage:
        assert set(stage.plugin.get_auto_approved_tools()) == READING


@pytest.mark.parametrize("tool", sorted(set(PARAMETERS) - READING))
def test_under_a_policy_of_deny_nothing_else_runs(tool: str) -> None:
    needed = {"task": "x", "message": "x", "key": "k", "value": 1}
    args = {name: needed[name] for name in PARAMETERS[tool][0]}
    with staged(permissions="deny") as stage:
        [answer] = stage.by_model((tool, args))
        assert "denied" in str(answer).lower()
        assert stage.play.child_requests == []


def test_reading_tools_need_no_answer_from_a_person() -> None:
    with staged(permissions={"defaultPolicy": "ask", "channel": {"type": "queue"}}) as stage:
        answers = stage.by_model(*((tool, {}) for tool in sorted(READING)))
        assert [answer["success"] for answer in answers] == [True] * 3


@pytest.mark.parametrize("policy", ["allow", "ask", "deny"])
def test_profiles_command_works_under_any_policy_and_is_shared(policy: str) -> None:
    config = {"profiles": {"helper": {"description": "helps with everything"}}}
    with staged(Play("noted"), config=config, permissions=policy) as stage:
        assert "profiles" in [command.name for command in stage.client.get_user_commands()]
        output, shared = stage.client.execute_user_command("profiles")
        assert shared
        assert [each["name"] for each in output["profiles"]] == ["helper"]
        stage.ask("What can you delegate to?")
        told = "\n".join(user_texts(stage.play.parent_requests[-1]))
        assert "helps with everything" in told


def test_a_trusted_profile_spares_the_question_but_not_with_overrides() -> None:
    profile = {"description": "quick", "auto_approved": True}
    with staged("ok", config={"profiles": {"quick": profile, "slow": {}}}, permissions="deny") as stage:
        denied = stage.by_model(
            ("spawn_subagent", {"task": "1", "profile": "slow"}),
            ("spawn_subagent", {"task": "2", "profile": "quick", "inline_config": {"max_turns": 1}}),
            ("spawn_subagent", {"task": "3"}),
        )
        assert all("denied" in str(each).lower() for each in denied)
    with staged("ok", config={"profiles": {"quick": profile}}, permissions={"defaultPolicy": "ask"}) as stage:
        [allowed] = stage.by_model(("spawn_subagent", {"task": "1", "profile": "quick"}))
        assert allowed["success"] is True


def test_what_a_person_sees_before_a_spawn() -> None:
    with staged() as stage:
        config = {"max_turns": 3, "model": "big"}
        shown = stage.plugin.format_permission_request(
            "spawn_subagent", {"task": "Tidy up", "profile": "cleaner", "inline_config": config}, "console"
        )
        assert shown is not None
        assert "cleaner" in shown.summary
        assert all(text in shown.details for text in ("Tidy up", "max_turns", "big"))


# -- spawn -------------------------------------------------------------------------------------------


def test_a_sync_spawn_answers_with_the_whole_result() -> None:
    with staged([calling(("add", {"a": 1}), text="Let me add."), "It is two."], Lab()) as stage:
        answer = stage.spawn("add", name="adder")
        assert set(answer) >= RESULT_FIELDS
        assert set(answer["token_usage"]) == set(answer["subtree_usage"]) == USAGE_FIELDS
        assert (answer["success"], answer["status"], answer["response"]) == (True, "completed", "It is two.")
        assert (answer["turns_used"], answer["tool_calls"], answer["finish_reason"]) == (2, 1, "stop")
        assert answer["token_usage"]["total_tokens"] == answer["subtree_usage"]["total_tokens"] > 0
        assert not {"reason", "structured", "error", "next_offset", "hops"} & set(answer)


def test_a_background_spawn_answers_at_once() -> None:
    hold = Hold()
    with staged(hold) as stage:
        answer = stage.spawn("later", background=True)
        assert set(answer) == {"success", "background", "agent_id", "status", "message"}
        assert answer["status"] in ("queued", "running")
        hold.release()
        assert stage.result(answer["agent_id"])["status"] == "completed"


def test_a_queued_spawn_says_its_position() -> None:
    hold = Hold()
    with staged(hold, config={"max_concurrent": 1}) as stage:
        first = stage.launch("first")
        hold.wait_entered()
        second, third = stage.spawn("second", background=True), stage.spawn("third", background=True)
        assert [each["status"] for each in (second, third)] == ["queued", "queued"]
        assert [each["queue_position"] for each in (second, third)] == [1, 2]
        waiting = stage.call("get_subagent_result", agent_id=third["agent_id"])
        assert (waiting["status"], waiting["phase"], waiting["queue_position"]) == ("queued", "queued", 2)
        listed = {each["agent_id"]: each for each in stage.call("list_active_subagents")["active_sessions"]}
        assert "queue_position" not in listed[first]
        assert listed[second["agent_id"]]["queue_position"] == 1
        hold.release()
        assert stage.result(third["agent_id"])["success"]


def test_a_duplicate_gets_the_live_one_unless_its_name_differs() -> None:
    hold = Hold()
    with staged(hold) as stage:
        first = stage.launch("the same", context="here")
        again = stage.spawn("the same", context="here", background=True)
        assert (again["agent_id"], again["duplicate"]) == (first, True)
        assert stage.launch("the same", context="there") != first
        assert stage.launch("the same", context="here", name="second") != first
        hold.release()
        assert stage.result(first)["success"]
        assert stage.launch("the same", context="here") != first, "only a live one counts"


def test_context_as_text_and_as_object() -> None:
    with staged() as stage:
        stage.spawn("Go", context="All in one text")
        stage.spawn("Go", context={"files": ["a.py", "b.py"], "findings": ["slow", "wrong"], "notes": "be kind"})
        first, second = (request.messages[0].text or "" for request in stage.play.child_requests)
        assert first == "<context>\nAll in one text\n</context>\n\n<task>\nGo\n</task>"
        assert "Files:\n- a.py\n- b.py" in second
        assert "Findings:\n- slow\n- wrong" in second
        assert "Notes:\nbe kind" in second
        assert second.endswith("<task>\nGo\n</task>")
        stage.spawn("Alone")
        assert stage.play.child_requests[-1].messages[0].text == "Alone"


def test_instructions_stand_once_in_the_system_prompt_only() -> None:
    with staged() as stage:
        marked = "Speak like a pirate."
        stage.spawn("Go", context="c", inline_config={"system_instructions": marked})
        [request] = stage.play.child_requests
        assert request.system.count(marked) == request.system.count(PREAMBLE) == 1
        assert marked not in "".join(user_texts(request))
        assert "Go" not in request.system


def test_a_dry_run_starts_nothing() -> None:
    events: list[Event] = []
    profile = {"model": "m", "plugins": ["lab"], "max_turns": 7, "tools": ["add", "crash"]}
    with staged("ok", Lab(), config={"profiles": {"it": profile}, "max_total_spawns": 1}) as stage:
        bus = stage.client.get_runtime().bus
        bus.subscribe(events.append)
        before = set(threading.enumerate())
        report = stage.spawn("a task", profile="it", inline_config={"max_turns": 3}, dry_run=True)
        assert (report["success"], report["dry_run"], report["profile"]) == (True, True, "it")
        assert (report["model"], report["model_from"]) == ("m", "profile")
        assert (report["provider"], report["provider_from"]) == ("script", "caller")
        assert (report["tools"], report["plugins"], report["max_turns"]) == (["add", "crash"], ["lab"], 3)
        bus.flush(PATIENCE)
        assert events == []
        assert stage.play.child_requests == []
        assert stage.call("list_active_subagents")["count"] == 0
        assert {each for each in set(threading.enumerate()) - before if "jaato" not in each.name} == set()
        assert stage.spawn("a task", profile="it")["success"], "a dry run is not counted as a spawn"
        prefix = stage.play.child_requests[0].prompt_tokens
        assert abs(report["estimated_prefix_tokens"] - prefix) < prefix * 0.2


def test_a_dry_run_refuses_what_a_spawn_would_refuse() -> None:
    with staged() as stage:
        assert "profile" in stage.spawn("x", profile="nobody", dry_run=True)["error"]
        assert "task" in stage.spawn(" ", dry_run=True)["error"]


# -- bad arguments -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "named"),
    [
        ({}, ["task", "missing"]),
        ({"task": ""}, ["task", "empty"]),
        ({"task": " \n\t"}, ["task", "empty"]),
        ({"task": 7}, ["task", "string"]),
        ({"task": "x", "background": "yes"}, ["background", "boolean"]),
        ({"task": "x", "inline_config": {"max_turns": 0}}, ["max_turns"]),
        ({"task": "x", "inline_config": {"max_turns": "5"}}, ["max_turns", "integer"]),
        ({"task": "x", "inline_config": {"maxturns": 5}}, ["maxturns", "max_turns"]),
        ({"task": "x", "inline_config": {"plugins": "cli"}}, ["plugins", "array"]),
        ({"task": "x", "inline_config": {"plugins": ["lba"]}}, ["lba", "lab"]),
        ({"task": "x", "inline_config": {"budget": {"total_tokens": 0}}}, ["total_tokens"]),
        ({"task": "x", "inline_config": {"output_schema": {"type": "nonsense"}}}, ["output_schema"]),
        ({"task": "x", "inline_config": {"gc": {"type": "nonsense"}}}, ["nonsense", "truncate"]),
        ({"task": "x", "inline_config": {"provider": "antropic"}}, ["antropic", "anthropic"]),
        ({"task": "x", "context": {"file": ["a"]}}, ["file", "files"]),
        ({"task": "x", "context": 5}, ["context"]),
        ({"task": "x", "profile": "helpr"}, ["helpr", "helper"]),
        ({"task": "x", "profle": "helper"}, ["profle", "profile"]),
        ({"task": "x", "name": "n" * 81}, ["name"]),
    ],
)
@pytest.mark.parametrize("by_model", [False, True], ids=["host", "model"])
def test_bad_arguments_name_the_field_and_start_nothing(args: dict[str, Any], named: list[str], by_model: bool) -> None:
    with staged("ok", Lab(), config={"profiles": {"helper": {}}}) as stage:
        answer = stage.by_model(("spawn_subagent", args))[0] if by_model else stage.call("spawn_subagent", **args)
        text = answer if isinstance(answer, str) else answer["error"]
        assert all(word in text for word in named), text
        assert "\n" not in text
        assert stage.play.child_requests == []
        assert stage.call("list_active_subagents")["count"] == 0


def test_refusals_are_errors_for_the_model_and_for_views() -> None:
    ended: list[Any] = []

    class Hooks:
        def on_tool_call_end(self, **given: Any) -> None:
            ended.append((given["tool_name"], given["success"]))

    with staged() as stage:
        stage.client.set_ui_hooks(Hooks())
        stage.by_model(("get_subagent_result", {"agent_id": "nobody"}))
        assert ended == [("get_subagent_result", False)]
        [result] = [result for message in stage.client.get_history() for result in message.results]
        assert result.is_error


def test_shared_state_refusals_are_answers_too() -> None:
    with staged() as stage:
        assert "key" in stage.call("set_shared_state", key="k" * 300, value=1)["error"]
        stage.call("set_shared_state", key="k", value=1)
        conflict = stage.call("set_shared_state", key="k", value=2, expected_version=7)
        assert (conflict["success"], conflict["version"]) == (False, 1)
        assert "version 1" in conflict["error"]


def test_host_calls_with_something_else_than_a_dict() -> None:
    with staged() as stage:
        assert "dict" in stage.executors["spawn_subagent"]("a task")["error"]


# -- who is meant ------------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["agent_id", "subagent_id", "name"])
@pytest.mark.parametrize("by", ["id", "name"])
def test_every_way_to_name_a_subagent(field: str, by: str) -> None:
    hold = Hold()
    with staged(hold) as stage:
        agent_id = stage.launch("x", name="scout")
        means = {field: agent_id if by == "id" else "scout"}
        hold.wait_entered()
        assert stage.call("send_to_subagent", message="hi", **means)["agent_id"] == agent_id
        hold.release()
        assert stage.call("get_subagent_result", wait=True, **means)["agent_id"] == agent_id
        assert stage.call("wait_for_subagents", ids=[means[field]])["results"][0]["agent_id"] == agent_id
        assert stage.call("continue_subagent", message="more", **means)["agent_id"] == agent_id
        assert stage.call("cancel_subagent", **means)["agent_id"] == agent_id
        assert stage.call("close_subagent", **means)["agent_id"] == agent_id


@pytest.mark.parametrize("tool", BY_ID)
def test_missing_unknown_and_ambiguous_ids(tool: str) -> None:
    with staged() as stage:
        rest = arguments_for(tool)
        assert "agent_id" in stage.call(tool, **rest)["error"]
        assert "none yet" in stage.call(tool, agent_id="x", **rest)["error"]
        first, second = (stage.spawn(task, name="twin")["agent_id"] for task in ("a", "b"))
        unknown = stage.call(tool, agent_id="subagent_00000000", **rest)
        assert unknown["success"] is False
        assert first in unknown["error"]
        assert second in unknown["error"]
        ambiguous = stage.call(tool, agent_id="twin", **rest)
        assert ambiguous["success"] is False
        assert first in ambiguous["error"]
        assert second in ambiguous["error"]
        both = stage.call(tool, agent_id=first, subagent_id=second, **rest)
        assert both["success"] is False
        assert "different" in both["error"]


def test_a_name_is_free_again_when_its_agent_is_closed() -> None:
    with staged() as stage:
        first = stage.spawn("a", name="scout")["agent_id"]
        stage.call("close_subagent", agent_id="scout")
        second = stage.spawn("b", name="scout")["agent_id"]
        assert stage.call("get_subagent_result", agent_id="scout")["agent_id"] == second
        assert stage.call("get_subagent_result", agent_id=first)["agent_id"] == first


# -- results, waiting, listing -----------------------------------------------------------------------


def test_results_can_be_read_again_and_again() -> None:
    with staged() as stage:
        agent_id = stage.launch()
        first = stage.result(agent_id)
        assert first["complete"] is True
        assert [stage.call("get_subagent_result", agent_id=agent_id) for _ in range(5)] == [first] * 5
        stage.call("close_subagent", agent_id=agent_id)
        assert stage.call("get_subagent_result", agent_id=agent_id) == first


def test_reading_a_running_subagent() -> None:
    hold = Hold("done")

    def child(request: ModelRequest) -> Step:
        return hold(request) if request.messages[-1].results else calling(("add", {"a": 1}), text="Adding first.")

    with staged(child, Lab()) as stage:
        agent_id = stage.launch()
        hold.wait_entered()
        answer = stage.call("get_subagent_result", agent_id=agent_id)
        assert (answer["success"], answer["status"], answer["complete"]) == (True, "running", False)
        assert (answer["phase"], answer["turn_count"], answer["text_so_far"]) == ("model", 1, "Adding first.")
        late = stage.call("get_subagent_result", agent_id=agent_id, wait=True, timeout_seconds=0.01)
        assert late["complete"] is False
        hold.release()
        assert stage.result(agent_id)["response"] == "done"


def test_waiting_for_all_for_any_and_with_a_time_limit() -> None:
    slow = Hold("slow")

    def child(request: ModelRequest) -> Step:
        return slow(request) if task_of(request) == "slow" else "quick"

    with staged(child) as stage:
        ids = [stage.launch("slow"), stage.launch("quick")]
        some = stage.call("wait_for_subagents", ids=ids, mode="any")
        assert (some["success"], some["complete"], some["timed_out"], some["count"]) == (True, False, False, 1)
        assert [each["response"] for each in some["results"]] == ["quick"]
        assert [each["agent_id"] for each in some["still_running"]] == ids[:1]
        late = stage.call("wait_for_subagents", ids=ids, timeout_seconds=0.01)
        assert (late["complete"], late["timed_out"], late["count"]) == (False, True, 1)
        slow.release()
        everything = stage.call("wait_for_subagents", ids=[*ids, ids[0]])
        assert (everything["complete"], everything["timed_out"], everything["count"]) == (True, False, 2)
        assert [each["response"] for each in everything["results"]] == ["slow", "quick"]
        assert "unknown" not in stage.call("wait_for_subagents", ids=ids)
        assert "ghost" in stage.call("wait_for_subagents", ids=["ghost"])["error"]


def test_waiting_without_ids_means_all_that_one_has_not_heard_of() -> None:
    hold = Hold("slow")

    def child(request: ModelRequest) -> Step:
        return hold(request) if task_of(request) == "slow" else "quick"

    with staged(child) as stage:
        nobody = stage.call("wait_for_subagents")
        assert (nobody["success"], nobody["complete"], nobody["results"]) == (True, True, [])
        stage.spawn("answered at once")
        read, unread, slow = stage.launch("read"), stage.launch("unread"), stage.launch("slow")
        stage.result(read)
        stage.call("wait_for_subagents", ids=[slow, read], mode="any")
        hold.wait_entered()
        hold.release()
        answer = stage.call("wait_for_subagents")
        assert {each["agent_id"] for each in answer["results"]} == {unread, slow}
        assert stage.call("wait_for_subagents")["results"] == []


def test_waiting_costs_no_model_call_and_nothing_is_announced_twice() -> None:
    hold = Hold("worth waiting for")

    def parent(request: ModelRequest) -> Step:
        turns = len(answers_in(request))
        if turns == 0:
            return spawning("x", background=True)
        if turns == 1:
            hold.release()
            return calling(("wait_for_subagents", {}))
        return str(answers_in(request)[-1]["results"][0]["response"])

    with staged(Play(parent, hold)) as stage:
        assert stage.ask() == "worth waiting for"
        assert len(stage.play.parent_requests) == 3
        assert len(stage.play.child_requests) == 1
        stage.client.get_session()
        assert all(len(user_texts(request)) == 1 for request in stage.play.parent_requests), "no digest besides"


def test_listing_active_subagents() -> None:
    hold = Hold()
    fields = {
        *("agent_id", "name", "profile", "parent_id", "type", "status", "phase", "can_cancel", "turn_count"),
        *("max_turns", "created_at", "last_activity", "token_usage"),
    }

    def child(request: ModelRequest) -> Step:
        return hold(request) if task_of(request) == "long" else "short"

    with staged(child, config={"profiles": {"p": {"max_turns": 4}}, "max_concurrent": 1}) as stage:
        idle = stage.spawn("short", name="idle")["agent_id"]
        running = stage.launch("long", profile="p")
        hold.wait_entered()
        queued = stage.launch("long", name="next")
        closed = stage.spawn("short", dry_run=True)
        assert closed["success"]
        listed = stage.call("list_active_subagents")
        assert (listed["success"], listed["count"]) == (True, 3)
        found = {each["agent_id"]: each for each in listed["active_sessions"]}
        assert list(found) == [idle, running, queued], "oldest first"
        assert all(fields <= set(each) for each in found.values())
        kinds = {key: (each["type"], each["status"], each["can_cancel"]) for key, each in found.items()}
        assert kinds == {
            idle: ("interactive", "waiting", False),
            running: ("background", "running", True),
            queued: ("background", "queued", True),
        }
        assert (found[idle]["turn_count"], found[idle]["last_status"]) == (1, "completed")
        assert (found[running]["profile"], found[running]["max_turns"], found[running]["name"]) == ("p", 4, "p")
        assert {each["parent_id"] for each in found.values()} == {"main"}
        assert all(set(each["token_usage"]) == USAGE_FIELDS for each in found.values())
        for status, agent_id in (("waiting", idle), ("running", running), ("queued", queued)):
            only = stage.call("list_active_subagents", status=status)["active_sessions"]
            assert [each["agent_id"] for each in only] == [agent_id]
        assert "status" in stage.call("list_active_subagents", status="dead")["error"]
        hold.release()
        stage.call("wait_for_subagents")
        stage.call("close_subagent", agent_id=idle)
        remaining = stage.call("list_active_subagents")["active_sessions"]
        assert [each["agent_id"] for each in remaining] == [running, queued]


def test_listing_profiles(tmp_path: Path) -> None:
    folder = tmp_path / ".jaato/profiles"
    folder.mkdir(parents=True)
    (folder / "broken.json").write_text("{")
    (folder / "hidden.yaml").write_text("visibility: internal\n")
    config = {
        "auto_discover_profiles": True,
        "allow_inline": False,
        "inline_allowed_plugins": ["cli"],
        "profiles": {"full": {"description": "d", "plugins": ["cli"], "model": "m", "provider": "script"}, "bare": {}},
    }
    with staged(config=config, workspace=tmp_path) as stage:
        listed = stage.call("list_subagent_profiles")
        assert listed["success"] is True
        assert (listed["inline_allowed"], listed["inline_allowed_plugins"]) == (False, ["cli"])
        assert any("broken.json" in problem for problem in listed["problems"])
        found = {each["name"]: each for each in listed["profiles"]}
        assert "hidden" not in found
        assert set(found["bare"]) == {"name", "description", "plugins", "max_turns", "auto_approved", "source"}
        assert (found["full"]["model"], found["full"]["provider"], found["full"]["source"]) == ("m", "script", "code")
        assert "allow_inline" in stage.spawn("x", inline_config={"max_turns": 1})["error"]


# -- continue, steer, close, cancel ------------------------------------------------------------------


def test_continue_keeps_the_conversation() -> None:
    with staged(lambda request: f"answer {len(user_texts(request))}") as stage:
        agent_id = stage.spawn("first")["agent_id"]
        second = stage.call("continue_subagent", agent_id=agent_id, message="second")
        assert (second["agent_id"], second["response"], second["turns_used"]) == (agent_id, "answer 2", 1)
        assert user_texts(stage.play.child_requests[-1]) == ["first", "second"]
        later = stage.call("continue_subagent", agent_id=agent_id, message="third", background=True)
        assert (later["background"], later["agent_id"]) == (True, agent_id)
        assert stage.result(agent_id)["response"] == "answer 3"
        assert "message" in stage.call("continue_subagent", agent_id=agent_id, message=" ")["error"]


def test_continue_is_for_those_that_wait() -> None:
    hold = Hold()
    with staged(hold) as stage:
        agent_id = stage.launch()
        hold.wait_entered()
        refused = stage.call("continue_subagent", agent_id=agent_id, message="more")
        assert "send_to_subagent" in refused["error"]
        hold.release()
        stage.result(agent_id)
        stage.call("close_subagent", agent_id=agent_id)
        refused = stage.call("continue_subagent", agent_id=agent_id, message="more")
        assert "closed" in refused["error"]
        assert len(stage.play.child_requests) == 1


def test_steering_reaches_a_running_child_before_its_next_model_call() -> None:
    hold = Hold(calling(("add", {"a": 1})))

    def child(request: ModelRequest) -> Step:
        return f"heard {user_texts(request)[1:]}" if request.messages[1:] else hold(request)

    with staged(child, Lab()) as stage:
        agent_id = stage.launch("work")
        hold.wait_entered()
        for message in ("also look left", "and right"):
            answer = stage.call("send_to_subagent", agent_id=agent_id, message=message)
            assert (answer["success"], answer["status"]) == (True, "running")
        hold.release()
        assert stage.result(agent_id)["response"] == "heard ['also look left', 'and right']"


def test_steering_during_the_last_answer_is_still_heard() -> None:
    hold = Hold("my answer")

    def child(request: ModelRequest) -> Step:
        return hold(request) if len(user_texts(request)) == 1 else "my better answer"

    with staged(child) as stage:
        agent_id = stage.launch("work")
        hold.wait_entered()
        assert stage.call("send_to_subagent", agent_id=agent_id, message="make it better")["success"]
        hold.release()
        result = stage.result(agent_id)
        assert (result["response"], result["turns_used"]) == ("my better answer", 2)


def test_steering_does_not_lift_max_turns() -> None:
    hold = Hold("only one")
    with staged(hold) as stage:
        agent_id = stage.launch("work", inline_config={"max_turns": 1})
        hold.wait_entered()
        stage.call("send_to_subagent", agent_id=agent_id, message="more")
        hold.release()
        assert stage.result(agent_id)["turns_used"] == 1
        assert len(stage.play.child_requests) == 1


def test_steering_a_finished_child_points_to_continue() -> None:
    with staged() as stage:
        agent_id = stage.spawn()["agent_id"]
        answer = stage.call("send_to_subagent", agent_id=agent_id, message="hello?")
        assert answer["success"] is False
        assert "continue_subagent" in answer["error"]
        stage.call("continue_subagent", agent_id=agent_id, message="again")
        assert "hello?" not in user_texts(stage.play.child_requests[-1])


def test_closing_cancels_and_keeps_the_result() -> None:
    with staged(Reply("never", delay=600)) as stage:
        agent_id = stage.launch()
        closed = stage.call("close_subagent", agent_id=agent_id)
        assert (closed["success"], closed["agent_id"], closed["status"]) == (True, agent_id, "cancelled")
        assert stage.call("get_subagent_result", agent_id=agent_id)["status"] == "cancelled"
        assert stage.call("list_active_subagents")["count"] == 0
        assert stage.call("close_subagent", agent_id=agent_id)["success"], "closing again changes nothing"


def test_cancelling_hard_soft_and_what_has_finished() -> None:
    lab = Lab()
    with staged([calling(("wait", {}), text="Waiting now.")], lab) as stage:
        agent_id = stage.launch()
        assert lab.entered.acquire(timeout=PATIENCE)
        answer = stage.call("cancel_subagent", agent_id=agent_id, reason="changed my mind")
        assert (answer["success"], answer["agent_id"], answer["status"]) == (True, agent_id, "cancelled")
        assert answer["cancelled"] == [{"agent_id": agent_id, "status": "cancelled", "partial": "Waiting now."}]
        result = stage.result(agent_id)
        assert (result["success"], result["response"]) == (False, "Waiting now.")
        assert "changed my mind" in result["error"]
        again = stage.call("cancel_subagent", agent_id=agent_id)
        assert (again["success"], again["cancelled"]) == (True, [])
        assert again["already_finished"] == [{"agent_id": agent_id, "status": "cancelled"}]
        assert "nothing" in again["message"]
        assert "mode" in stage.call("cancel_subagent", agent_id=agent_id, mode="gently")["error"]


def test_a_soft_cancel_hands_over_and_is_announced() -> None:
    hold = Hold(calling(("add", {"a": 1})))

    def child(request: ModelRequest) -> Step:
        return "Here is what I have." if request.tool_choice == "none" else hold(request)

    with staged(Play("noted", child), Lab()) as stage:
        agent_id = stage.launch()
        hold.wait_entered()
        answer = stage.call("cancel_subagent", agent_id=agent_id, mode="soft")
        assert answer["cancelled"][0]["agent_id"] == agent_id
        hold.release()
        stage.call("wait_for_subagents", ids=[agent_id])
        result = stage.result(agent_id)
        assert (result["status"], result["response"]) == ("cancelled", "Here is what I have.")


def test_two_parents_do_not_see_each_others_children() -> None:
    """Who calls is the session, not the plugin: a second main session has a tree of its own."""
    with staged(Play(Errands(), "ok")) as stage:
        mine = stage.spawn("mine")["agent_id"]
        other = stage.client.get_runtime().create_session("script-model")
        assert isinstance(stage.play.parent, Errands)
        stage.play.parent.orders = [("get_subagent_result", {"agent_id": mine}), ("list_active_subagents", {})]
        other.send_message("look")
        assert "no subagent" in stage.play.parent.answers[0]["error"]
        assert stage.play.parent.answers[1]["count"] == 0
        other.close()


def test_children_have_the_shared_state_tools_and_no_spawn_tools() -> None:
    with staged() as stage:
        stage.spawn()
        offered = [schema.name for schema in stage.play.child_requests[0].tools.schemas]
        assert offered == ["set_shared_state", "get_shared_state", "list_shared_state"]


def test_the_stage_itself(tmp_path: Path) -> None:
    """The parent is told how to delegate."""
    with staged("ok") as stage:
        assert isinstance(stage, Stage)
        stage.by_model(("list_active_subagents", {}))
        assert "spawn_subagent" in stage.play.parent_requests[0].system
