"""`jaato runs`: the list, where it is read from, and what clears it."""

from __future__ import annotations

import json
import subprocess
import time
from dataclasses import replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from support.command import jaato
from support.run_worker import interrupted
from support.stores import add_agent, add_run, end_run, opened
from support.terminal import bare_environment, terminal

from shared.ledger import LedgerRow
from shared.store import Store, writes
from shared.types import TokenUsage

FILE = Path(".jaato") / "state" / "runs.db"
DAY = 86_400.0
HOSTILE = "\x1b[2J\x1b]0;owned\x07\u202e" + "n" * 90 + "\N{CJK UNIFIED IDEOGRAPH-4E2D}" * 30


def runs(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return jaato("runs", *words, cwd=folder, **variables)


def listed(folder: Path, *words: str, **variables: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(runs(folder, *words, "--json", **variables).stdout)
    return found


def names(folder: Path, *words: str, **variables: str) -> list[str]:
    return [row["agent_id"] for row in listed(folder, *words, **variables)]


def add(store: Store, agent_id: str, *, status: str | None = "completed", days: float = 0.0, **more: Any) -> None:
    """An agent whose run ended that long ago, or has not."""
    at = time.time() - days * DAY
    agent = add_agent(store, agent_id, at=at, **more)
    run = add_run(store, agent)
    if status is not None:
        end_run(store, run, at=at, status=status)
    usage = TokenUsage.of(12_000, 345)
    row = LedgerRow(agent_id, "script", "m", usage, cost_usd=Decimal("0.0125"), at=at)
    store.put(partial(writes.book, store.mint(), agent.key, row))


def test_nothing_was_run_yet(tmp_path: Path) -> None:
    done = runs(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("nothing was run yet")
    assert (tmp_path / FILE).exists() is False, "looking makes nothing"
    assert runs(tmp_path, "--json").stdout == "[]\n"
    assert runs(tmp_path, "prune", "--yes").returncode == 0
    assert not (tmp_path / FILE).exists()
    missing = runs(tmp_path, "show", "abc")
    assert missing.returncode == 2
    assert "nothing was run yet" in missing.stderr
    off = runs(tmp_path, JAATO_STORE="off")
    assert off.returncode == 0
    assert "switch it off" in off.stdout


def test_the_tree_of_each_conversation_newest_first(tmp_path: Path) -> None:
    with opened(tmp_path / FILE) as store:
        add(store, "subagent_0a", conversation="c_old", days=2)
        add(store, "subagent_1b", conversation="c_new", days=0.2)
        add(store, "subagent_2c", conversation="c_new", days=0.1)
        add(store, "subagent_3d", conversation="c_new", parent="subagent_1b", status="failed")
        add(store, "subagent_4e", conversation="c_new", parent="subagent_3d", status=None)
        store.commit()
        lines = runs(tmp_path).stdout.splitlines()
        assert [line.split("  ")[0] for line in lines if line.startswith("c_")] == ["c_new", "c_old"]
        tree = [line[:14].rstrip() for line in lines if line.lstrip()[:1] in "✓✗…●"]
        assert tree == ["✓ 1b", "  ✗ 3d", "    … 4e", "✓ 2c", "✓ 0a"]
        assert "12.3k" in lines[2]
        assert "$0.0125" in lines[2]
        live = [row for row in listed(tmp_path) if row["status"] == "queued"]
        assert [(row["agent_id"], row["parent_id"]) for row in live] == [("subagent_4e", "subagent_3d")]
        assert live[0]["owner_alive"]
        assert "a process is at it" in lines[1]
    assert "process" not in runs(tmp_path).stdout, "one that has ended is nothing to be told of"
    gone = listed(tmp_path, "--status", "interrupted")
    assert [(row["agent_id"], row["owner_alive"]) for row in gone] == [("subagent_4e", False)]
    assert (gone[0]["cost_usd"], gone[0]["token_usage"]["total_tokens"]) == (0.0125, 12_345)


def test_only_some(tmp_path: Path) -> None:
    with opened(tmp_path / FILE) as store:
        for number in range(13):
            add(store, f"subagent_{number:02}", conversation=f"c{number:02}", days=20 - number)
        add(store, "subagent_ff", conversation="c00", status="failed")
    shown = runs(tmp_path).stdout
    assert "… and 3 older conversations: --all" in shown
    assert len(names(tmp_path, "--all")) == 14
    assert names(tmp_path, "-C", "c03") == ["subagent_03"]
    assert names(tmp_path, "--status", "failed") == ["subagent_ff"], "wherever it is"
    assert len(names(tmp_path, "-s", "failed", "-s", "completed")) == 14
    assert runs(tmp_path, "--status", "live").stdout == "no run is live\n"
    assert "Did you mean 'c03'" in runs(tmp_path, "-C", "c3").stderr
    wrong = runs(tmp_path, "--status", "done")
    assert wrong.returncode == 2
    assert "'interrupted'" in wrong.stderr


def test_it_fits_whatever_the_names_are(tmp_path: Path) -> None:
    with opened(tmp_path / FILE) as store:
        parent: str | None = "main"
        for level in range(12):
            agent = replace(
                add_agent(store, f"old_{level}", conversation="unused"),
                key=store.mint(),
                agent_id=f"subagent_{level:08x}",
                name=HOSTILE,
                profile=HOSTILE,
                model=HOSTILE,
                parent_id=parent,
                conversation="c1",
            )
            store.put(partial(writes.add_conversation, "c1", store.owner, "/w"))
            store.put(partial(writes.add_agent, agent))
            end_run(store, add_run(store, agent), status="timed_out", reason=HOSTILE)
            parent = agent.agent_id
    for width in ("80", "60", "200"):
        done = runs(tmp_path, COLUMNS=width)
        assert done.stdout.count("timed_out") == 12
        assert max(cell_len(line) for line in done.stdout.splitlines()) <= int(width)
        assert not set(done.stdout) & {"\x1b", "\x07", "\u202e"}
    assert listed(tmp_path, "-C", "c1")[0]["name"] == HOSTILE, "programs get it as it is"


def test_a_damaged_tree_is_shown_all_the_same(tmp_path: Path) -> None:
    parents = {"a": "b", "b": "a", "c": "c", "d": "gone", "e": "d"}
    with opened(tmp_path / FILE) as store:
        for agent_id, parent in parents.items():
            add(store, f"subagent_{agent_id}", parent=f"subagent_{parent}")
    assert sorted(names(tmp_path)) == [f"subagent_{each}" for each in parents]
    assert runs(tmp_path, "show", "a").returncode == 0
    assert runs(tmp_path, "continue", "c", "go on").returncode == 2


def test_an_option_of_the_list_is_not_ignored(tmp_path: Path) -> None:
    done = runs(tmp_path, "--json", "show", "a")
    assert done.returncode == 2
    assert "come after its name" in done.stderr


def test_colours_in_a_terminal_and_none_in_a_pipe(tmp_path: Path) -> None:
    with opened(tmp_path / FILE) as store:
        add(store, "subagent_0a", status="failed")
    with terminal("runs", cwd=tmp_path, env=bare_environment(tmp_path), columns=80) as screen:
        assert screen.wait_exit() == 0
        assert "✗ 0a" in screen.text
        assert b"\x1b[31m" in screen.raw
    assert "\x1b" not in runs(tmp_path).stdout


@pytest.mark.parametrize("way", ["option", "late option", "variable", "settings"])
def test_the_store_may_be_elsewhere(tmp_path: Path, way: str) -> None:
    path = tmp_path / "else where" / "my.db"
    with opened(path) as store:
        add(store, "subagent_0a")
    words: list[str] = []
    variables: dict[str, str] = {}
    if way == "option":
        words = ["--store", str(path)]
    elif way == "late option":
        done = jaato("runs", "--store", str(path), "show", "0a", cwd=tmp_path)
        assert "a task" in done.stdout
        words = ["--store", "else where/my.db"]
    elif way == "variable":
        variables = {"JAATO_STORE": str(path)}
    else:
        (tmp_path / ".jaato").mkdir()
        (tmp_path / ".jaato" / "config.yaml").write_text(f"store: {path}\n")
    assert names(tmp_path, *words, **variables) == ["subagent_0a"]


def test_a_file_that_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_text("not a database, but long enough to look like one" * 40)
    for words in ([], ["show", "a"], ["prune", "--yes"]):
        done = runs(tmp_path, "--store", "x.db", *words)
        assert done.returncode == 2
        assert "not a database of runs" in done.stderr


def test_a_shell_completes_ids(tmp_path: Path) -> None:
    with opened(tmp_path / FILE) as store:
        add(store, "subagent_0a1b")
        add(store, "subagent_ff00")
    asked = {"_JAATO_COMPLETE": "bash_complete", "COMP_WORDS": "jaato runs show 0", "COMP_CWORD": "3"}
    assert jaato(cwd=tmp_path, **asked).stdout == "plain,0a1b\n"
    (tmp_path / FILE).write_text("broken" * 100)
    assert jaato(cwd=tmp_path, **asked).stdout.strip() == ""


# -- prune -----------------------------------------------------------------------------------------


def test_what_is_old_is_removed_after_a_look(tmp_path: Path) -> None:
    with opened(tmp_path / FILE) as store:
        add(store, "subagent_0a", days=40)
        add(store, "subagent_1b", days=10)
    assert runs(tmp_path, "prune", "--dry-run").stdout == "would remove 1 agent\n"
    refused = runs(tmp_path, "prune")
    assert refused.returncode == 2
    assert "--yes" in refused.stderr
    assert len(names(tmp_path)) == 2, "nobody said yes"
    assert runs(tmp_path, "prune", "--yes").stdout.startswith("removed 1 agent, freed ")
    assert names(tmp_path) == ["subagent_1b"]
    assert runs(tmp_path, "prune", "--yes").stdout == "nothing to remove\n"
    assert "1 agent, with them 1 whole conversation" in runs(tmp_path, "prune", "--older-than", "1w", "-y").stdout
    assert names(tmp_path) == []


def test_a_person_is_asked(tmp_path: Path) -> None:
    with opened(tmp_path / FILE) as store:
        add(store, "subagent_0a", days=40)
    for answer, left in (("n", ["subagent_0a"]), ("y", [])):
        with terminal("runs", "prune", cwd=tmp_path, env=bare_environment(tmp_path)) as screen:
            screen.wait_for("Remove 1 agent, with them 1 whole conversation for good?")
            screen.line(answer)
            assert screen.wait_exit() == (0 if answer == "y" else 130)
        assert names(tmp_path) == left


def test_only_those_of_a_status_are_removed(tmp_path: Path) -> None:
    with opened(tmp_path / FILE) as store:
        add(store, "subagent_0a", status="failed", days=1)
        add(store, "subagent_1b", status="completed", days=1)
    runs(tmp_path, "prune", "--older-than", "0", "--status", "failed", "--yes")
    assert names(tmp_path) == ["subagent_1b"]


def test_what_runs_stays(tmp_path: Path) -> None:
    with opened(tmp_path / FILE) as store:
        add(store, "subagent_0a", status=None, days=99)
        store.commit()
        assert runs(tmp_path, "prune", "--older-than", "0", "--yes").stdout == "nothing to remove\n"
        assert runs(tmp_path, "prune", "--older-than", "0", "-s", "live", "--yes").stdout == "nothing to remove\n"
        assert names(tmp_path) == ["subagent_0a"]


@pytest.mark.parametrize("span", ["soon", "-3d", "3", "d", "1e9d"])
def test_a_span_that_is_none(tmp_path: Path, span: str) -> None:
    done = runs(tmp_path, "prune", "--older-than", span)
    assert done.returncode == 2
    assert "such as 30d" in done.stderr


def test_a_run_that_was_killed_can_be_removed(tmp_path: Path) -> None:
    interrupted(tmp_path, "ann")
    runs(tmp_path, "prune", "--older-than", "0", "--status", "interrupted", "--yes")
    assert names(tmp_path) == []
