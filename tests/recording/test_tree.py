"""A tree of three levels on two vendors' wires, recorded, and replayed with the wires gone."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.labs import ANTHROPIC, OPENAI, Dialect, on_the_wire
from support.wire import Answer, Request, WireServer

from shared import JaatoClient, PluginRegistry
from shared.errors import ReplayMismatch
from shared.plugins.subagent import SubagentPlugin
from shared.providers.script import Reply
from shared.testing import check_history, record, replay

AGENT_ID = re.compile(r"subagent_[0-9a-f]{8}")
ROOT = "Plan the party."
PROFILES = {
    "lead": {"plugins": ["subagent"], "provider": OPENAI.name, "model": OPENAI.model, "description": "Leads."},
    "leaf": {"provider": ANTHROPIC.name, "model": ANTHROPIC.model, "description": "Does the work."},
}


def spawn(task: str, profile: str, name: str) -> tuple[str, dict[str, Any]]:
    return "spawn_subagent", {"task": task, "profile": profile, "name": name}


def think(body: Any) -> Reply:
    """One mind for all agents: who is asked follows from the conversation, how far it is from the results in it."""
    text = json.dumps(body)
    ids = list(dict.fromkeys(AGENT_ID.findall(text)))
    results = text.count('"tool_result"') + text.count('"role": "tool"')
    if ROOT in text:
        if not results:
            return Reply("Two leads.", (spawn("LEAD alpha", "lead", "alpha"), spawn("LEAD beta", "lead", "beta")))
        return Reply(f"Both are done: {', '.join(ids)}.")
    who = re.search(r"LEA[DF] (\w+)", text)
    assert who is not None
    if "LEAD" not in text:
        return Reply(f"{who[1]} has done the work", thought="Easy.")
    if results == 0:
        return Reply(calls=(spawn(f"LEAF {who[1]}", "leaf", f"leaf-{who[1]}"),))
    if results == 1:
        return Reply(calls=(("get_subagent_result", {"agent_id": ids[0]}),))
    return Reply(f"{who[1]} thanks {ids[0]}")


class Service:
    """A vendor's wire; `slow` is whose work takes longer than all the others'."""

    def __init__(self, dialect: Dialect, *, slow: str = "", fail_first: bool = False) -> None:
        self.dialect, self._slow, self._fail = dialect, slow, fail_first
        self.server = WireServer(self._answer)

    def _answer(self, request: Request) -> Answer:
        if self._fail:
            self._fail = False
            return self.dialect.faults["overloaded"]
        body = request.json
        answer = self.dialect.render(on_the_wire(think(body)), request)
        late = self._slow and self._slow in json.dumps(body) and ROOT not in json.dumps(body)
        return Answer(**{**vars(answer), "delay": 0.15 if late else 0.0})


@contextmanager
def tree(workspace: Path, *services: Service, **config: Any) -> Iterator[JaatoClient]:
    """A client of three levels; without services there is nobody to talk to, and no key."""
    registry = PluginRegistry()
    registry.register_plugin(SubagentPlugin())
    profiles = {name: dict(fields) for name, fields in PROFILES.items()}
    settings = {"auto_discover_profiles": False, "max_depth": 2, "profiles": profiles, **config}
    registry.expose_tool("subagent", settings)
    with JaatoClient(ANTHROPIC.name, workspace=workspace) as client:
        for service in services:
            client.register_provider(service.dialect.name, service.dialect.config(service.server))
        client.connect(model=ANTHROPIC.model)
        client.configure_tools(registry, permissions="allow")
        yield client


def recorded(path: Path, workspace: Path, *, slow: str = "alpha", fail_first: bool = False) -> tuple[str, list[Any]]:
    with ExitStack() as stack:
        services = [Service(ANTHROPIC, slow=slow, fail_first=fail_first), Service(OPENAI, slow=slow)]
        for service in services:
            stack.enter_context(service.server)
        with record(path), tree(workspace, *services) as client:
            answer = client.send_message(ROOT)
            check_history(client.get_history())
            return answer, results(client)


def results(client: JaatoClient) -> list[Any]:
    found = [result.result for message in client.get_history() for result in message.results]
    return [json.loads(each) if isinstance(each, str) else each for each in found]


def _into(pieces: list[str]) -> Callable[[str, str, str], None]:
    return lambda source, text, mode: pieces.append(text)


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "OPENAI_API_KEY",
        "ANTHROPIC_BASE_URL",
        "OPENAI_BASE_URL",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AI_RETRY_BASE_DELAY", "0.001")


@pytest.mark.parametrize("slow", ["alpha", "beta"])
def test_a_tree_of_three_levels_on_two_providers_runs_again_without_a_wire(tmp_path: Path, slow: str) -> None:
    (tmp_path / "first").mkdir()
    (tmp_path / "second").mkdir()
    tape = tmp_path / "tree.jsonl"
    answer, told = recorded(tape, tmp_path / "first", slow=slow)
    assert len(AGENT_ID.findall(answer)) == 4
    for pieces in ([], []):
        with replay(tape) as replayed, tree(tmp_path / "second") as client:
            again = client.send_message(ROOT, _into(pieces))
            check_history(client.get_history())
            found = results(client)
        assert replayed.unused == []
        assert AGENT_ID.sub("#", again) == AGENT_ID.sub("#", answer)
        assert again in "".join(pieces), "the stream speaks of the agents of this run"
        ids = [result["agent_id"] for result in found]
        assert [result["response"].split()[0] for result in found] == ["alpha", "beta"]
        assert AGENT_ID.findall(again)[0] == ids[0]
        assert not {*AGENT_ID.findall(again)} & {*AGENT_ID.findall(answer)}, "ids are those of this run"
        for one, other in zip(found, told, strict=True):
            for field in ("status", "turns_used", "tool_calls", "token_usage", "subtree_usage", "model", "provider"):
                assert one[field] == other[field]


def test_a_failed_attempt_is_part_of_the_recording(tmp_path: Path) -> None:
    tape = tmp_path / "tree.jsonl"
    answer, _ = recorded(tape, tmp_path, fail_first=True)
    assert '"Overloaded"' in tape.read_text()
    heard: list[str] = []
    with replay(tape) as replayed, tree(tmp_path) as client:
        client.set_retry_callback(lambda message, *_: heard.append(message))
        assert AGENT_ID.sub("#", client.send_message(ROOT)) == AGENT_ID.sub("#", answer)
    assert replayed.unused == []
    assert len(heard) == 1


def test_a_request_that_differs_fails_with_the_nearest_match_and_a_diff(tmp_path: Path) -> None:
    tape = tmp_path / "tree.jsonl"
    recorded(tape, tmp_path)
    with pytest.raises(ReplayMismatch) as caught, replay(tape), tree(tmp_path) as client:
        client.send_message("Plan the party. And a cake.")
    text = str(caught.value)
    assert "agent 'main' asked what was not recorded; nearest is exchange 1 of 'main'" in text
    assert "\n-  Plan the party.\n+  Plan the party. And a cake." in text


def test_a_difference_far_below_is_told_as_such(tmp_path: Path) -> None:
    tape = tmp_path / "tree.jsonl"
    recorded(tape, tmp_path)
    changed = {**PROFILES, "leaf": {**PROFILES["leaf"], "system_instructions": "Sing while you work."}}
    with pytest.raises(ReplayMismatch) as caught, replay(tape), tree(tmp_path, profiles=changed) as client:
        client.send_message(ROOT)
    assert re.match(r"agent 'main\W+(alpha|beta)\W+leaf-\1' asked what was not recorded", str(caught.value))
    assert "+  Sing while you work." in str(caught.value)


def test_the_file_is_the_owners_alone_and_holds_no_keys(tmp_path: Path) -> None:
    tape = tmp_path / "tree.jsonl"
    recorded(tape, tmp_path)
    assert tape.stat().st_mode & 0o777 == 0o600
    assert "test-key" not in tape.read_text()
