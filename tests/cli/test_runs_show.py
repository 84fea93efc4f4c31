"""`jaato runs show`: one run, for people and for programs."""

from __future__ import annotations

import json
import subprocess
from functools import partial
from pathlib import Path

from support.command import jaato
from support.crashes import crash
from support.run_worker import interrupted
from support.stores import TASK, add_agent, add_run, end_run, opened

from shared.store import Store, writes
from shared.store.records import AgentRecord
from shared.types import Attachment, FunctionCall, Message, Part, Role, ToolResult

FILE = Path(".jaato") / "state" / "runs.db"
HOSTILE = "safe \x1b[2J\x1b]0;owned\x07\u202eevil\x9b31m \ud800"


def show(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return jaato("runs", "show", *words, cwd=folder)


def say(store: Store, agent: AgentRecord, message: Message) -> None:
    store.put(partial(writes.say, store.mint(), agent.key, message, agent.created_at, (), ()))


def tell(store: Store, agent_id: str, answer: str, *, tool_says: str = "42 lines") -> AgentRecord:
    """An agent that called a tool and answered."""
    agent = add_agent(store, agent_id)
    run = add_run(store, agent)
    call = FunctionCall("call-1", "count", {"path": "a.txt", "note": "x" * 300})
    picture = Attachment("image/png", b"0" * 2048)
    say(store, agent, TASK)
    say(store, agent, Message(Role.MODEL, (Part(thought="hm"), Part(text="I count."), Part(function_call=call))))
    result = ToolResult("call-1", "count", tool_says, attachments=(picture,))
    say(store, agent, Message(Role.TOOL, (Part(function_response=result),)))
    say(store, agent, Message.from_text(Role.MODEL, answer))
    end_run(store, run, response=answer, turns_used=2)
    return agent


def test_task_transcript_and_result_stand_once(tmp_path: Path) -> None:
    with opened(tmp_path / FILE) as store:
        tell(store, "subagent_0a", "It has 42 lines, I say.")
    shown = show(tmp_path, "0a").stdout
    for text in (
        "a task",
        "hm",
        "I count.",
        "→ count",
        "✓ count",
        "42 lines\n",
        "image/png, 2,048 bytes",
        "42 lines, I",
    ):
        assert shown.count(text) == 1, text
    assert shown.index("Task") < shown.index("Transcript") < shown.index("Result")
    assert "✓ completed" in shown


def test_long_pieces_are_cut_unless_all_is_wanted(tmp_path: Path) -> None:
    long = "\n".join(f"line {number}" for number in range(200)) + "\nthe end"
    with opened(tmp_path / FILE) as store:
        tell(store, "subagent_0a", "done", tool_says=long)
    shown = show(tmp_path, "0a").stdout
    assert "line 11\n" in shown
    assert "the end" not in shown
    assert "more characters: --full" in shown
    assert "x" * 300 not in shown
    full = show(tmp_path, "0a", "--full").stdout
    assert "the end" in full
    assert "x" * 300 in full
    assert "--full" not in full


def test_nothing_in_it_reaches_the_terminal(tmp_path: Path) -> None:
    with opened(tmp_path / FILE) as store:
        tell(store, "subagent_0a", HOSTILE, tool_says=HOSTILE)
    for words in ((), ("--full",), ("--json",)):
        shown = show(tmp_path, "0a", *words).stdout
        assert "safe" in shown
        assert not set(shown) & {"\x1b", "\x07", "\u202e", "\x9b"}
    story = json.loads(show(tmp_path, "0a", "--json").stdout)
    assert story["runs"][0]["result"]["response"] == HOSTILE, "programs get it as it is"


def test_everything_for_programs(tmp_path: Path) -> None:
    with opened(tmp_path / FILE) as store:
        tell(store, "subagent_0a", "done")
        add_agent(store, "subagent_1b", parent="subagent_0a")
    story = json.loads(show(tmp_path, "subagent_0a", "--json").stdout)
    assert (story["status"], story["children"], story["owner_alive"]) == ("completed", ["subagent_1b"], False)
    [run] = story["runs"]
    assert (run["task"], run["result"]["response"]) == ("a task", "done")
    user, model, tool, _ = story["transcript"]
    assert (user["role"], model["calls"][0]["name"]) == ("user", "count")
    assert tool["results"][0]["result"] == "42 lines"
    assert tool["results"][0]["attachments"] == [{"mime_type": "image/png", "bytes": 2048}]


def test_a_run_that_was_cut_off_at_a_tool(tmp_path: Path) -> None:
    crash("at_a_tool", tmp_path / "runs.db")
    shown = show(tmp_path, "sawyer", "--store", "runs.db").stdout
    assert "✗ interrupted" in shown
    assert "its process is gone" in shown
    assert "oak is 3 m long" in shown
    assert "? saw: outcome unknown" in shown


def test_a_conversation_by_its_id(tmp_path: Path) -> None:
    interrupted(tmp_path, "ann", "bob")
    story = json.loads(show(tmp_path, "ann", "--json").stdout)
    main = show(tmp_path, story["conversation"])
    assert "none: this is the main agent" in main.stdout
    assert "2 agents below it" in main.stdout
    assert show(tmp_path, "main").returncode == 0, "there is only one"


def test_which_one_is_meant(tmp_path: Path) -> None:
    with opened(tmp_path / FILE) as store:
        for number in range(3):
            tell(store, f"subagent_{number}abc", "done")
        add_agent(store, "main", parent=None)
        add_agent(store, "main", parent=None, conversation="c2")
    assert "subagent_1abc" in show(tmp_path, "1a").stdout
    unknown = show(tmp_path, "zzz")
    assert unknown.returncode == 2
    assert "The newest: 2abc, 1abc, 0abc" in unknown.stderr
    several = show(tmp_path, "main")
    assert several.returncode == 2
    assert "use the conversation's id" in several.stderr
    assert show(tmp_path, "").returncode == 2
