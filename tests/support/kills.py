"""Kills a process again and again while it delegates, and checks after each kill what the store has of it.

One process imports everything and forks: each child is a process of its own, opens the store, goes on with what the
one before left, works at full speed and is killed at some random moment. What a child tells the outside is written
to a pipe at once, so that it can be held against what is stored.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import signal
import sqlite3
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from support.subagents import is_child, task_of

from shared import JaatoClient, PluginRegistry
from shared.history import problems
from shared.plugins.subagent import SubagentPlugin
from shared.providers.base import ModelRequest
from shared.providers.script import Reply, ScriptProvider, Step
from shared.store import Reader
from shared.store.conversations import last_conversation
from shared.store.records import AgentRecord
from shared.subagents.inbox import HEAD
from shared.types import Message, Role

FINAL = {"completed", "partial", "failed", "denied", "cancelled", "timed_out", "stalled", "interrupted"}
CONVERSATION = 12  # kills that one conversation lives through
FILE = 48  # kills that one store lives through
LINES = (0, 1, 1, 2, 3, 5, 8, 13, 21)  # that a child has told when its end is near: 0 while it opens the store
LONGEST = 0.03  # seconds that it has left then
SENT = "it reads this before its next model call"
AGENT = re.compile(r"subagent_[0-9a-f]{8}")


def answer_to(task: str) -> str:
    """What a subagent answers: long enough to take several pages, and known beforehand."""
    return f"{task}: " + hashlib.sha256(task.encode()).hexdigest() * (1 + len(task) * 7 % 60)


def letter_to(agent_id: str) -> str:
    """What the main model tells a subagent that works."""
    return f"dear {agent_id}"


class Teller:
    """Writes what a process tells the outside."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def tell(self, *words: str) -> None:
        """One line, in one write: a kill never leaves half of it."""
        os.write(self._descriptor, (" ".join(words) + "\n").encode())


class Cast:
    """The models of the tree: the main one delegates all the time, the others use a tool and answer."""

    def __init__(self, teller: Teller, round_: str) -> None:
        self._teller, self._round = teller, round_
        self._turns = 0  # in every other one nobody is waited for, so that letters find their readers at work

    def __call__(self, request: ModelRequest) -> Step:
        return self._child(request) if is_child(request) else self._main(request)

    def _child(self, request: ModelRequest) -> Step:
        if not request.messages[-1].results:
            return Reply("", (("set_shared_state", {"key": task_of(request), "value": len(request.messages)}),))
        return answer_to(task_of(request))

    def _main(self, request: ModelRequest) -> Step:
        self._hear(request.messages)
        said = sum(message.role is Role.MODEL for message in request.messages)
        self._turns += not request.messages[-1].results
        tasks = [f"{self._round}/{said}/{number}" for number in range(4)]
        alone = self._turns % 2 == 0
        calls = [("spawn_subagent", {"task": each, "background": alone or each != tasks[0]}) for each in tasks]
        if not request.messages[-1].results:
            return Reply("", tuple(calls))
        started = [answer["agent_id"] for answer in _answers(request.messages[-1]) if answer.get("background")]
        sent = [("send_to_subagent", {"agent_id": agent_id, "message": letter_to(agent_id)}) for agent_id in started]
        return Reply("", tuple(sent)) if sent else "noted"

    def _hear(self, messages: Any) -> None:
        """Tell what is new in a request: results of tools, and announcements."""
        for message in reversed(messages):
            if message.role is Role.MODEL:
                break
            for answer in _answers(message):
                if answer.get("status") == "completed":
                    self._teller.tell("result", answer["agent_id"])
                elif answer.get("message") == SENT:
                    self._teller.tell("sent", answer["agent_id"])
            if message.role is Role.USER and (message.text or "").startswith(HEAD):
                for agent_id in AGENT.findall(message.text or ""):
                    self._teller.tell("announced", agent_id)


class Watcher:
    """Tells of every run that is reported as completed."""

    def __init__(self, teller: Teller) -> None:
        self._teller = teller

    def on_agent_completed(self, *, agent_id: str, success: bool, **rest: Any) -> None:
        """A hook of the runtime."""
        if success:
            self._teller.tell("completed", agent_id)


def work(path: Path, teller: Teller, round_: str, *, fresh: bool, turns: int) -> None:
    """One process: take up the last conversation, or begin one, and delegate."""
    registry, plugin = PluginRegistry(), SubagentPlugin()
    registry.register_plugin(plugin)
    limits = {"max_children": 500, "max_total_spawns": 10_000, "max_concurrent": 6, "auto_discover_profiles": False}
    registry.expose_tool("subagent", limits)
    gc = {"type": "truncate", "max_turns": 12, "preserve_recent_turns": 3}  # histories are rewritten all the time
    client = JaatoClient(provider_name="script", store=path, workspace=path.parent, gc=gc)
    client.register_provider("script", ScriptProvider(Cast(teller, round_)))
    client.connect(model="m")
    client.configure_tools(registry, permissions="allow")
    client.get_runtime().set_ui_hooks(Watcher(teller))
    if not fresh and any(not each.is_live and each.messages for each in client.list_conversations()):
        client.resume_conversation()
    else:
        client.keep_conversation()
    teller.tell("begun", client.conversation_id or "")
    for _ in range(turns):
        client.send_message("go on")
    client.close()


def killed(path: Path, round_: str, dice: random.Random, *, fresh: bool) -> list[list[str]]:
    """Let a process work and kill it; returns what it told until then."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            work(path, Teller(writing), round_, fresh=fresh, turns=1000)
        except BaseException as error:
            os.write(writing, f"failed {type(error).__name__} {error}\n".encode())
        finally:
            os._exit(1)
    os.close(writing)
    with open(reading, encoding="utf-8") as pipe:
        told = [pipe.readline() for _ in range(dice.choice(LINES))]  # as far as it comes, however slow the machine
        time.sleep(dice.random() * LONGEST)
        os.kill(child, signal.SIGKILL)
        told += pipe
    os.waitpid(child, 0)
    return [line.split() for line in told if line.strip()]


class Audit:
    """Holds what processes told against what is stored."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen = 0
        self.completed = 0
        self.interrupted = 0
        self.letters = 0

    @property
    def counts(self) -> dict[str, int]:
        """How much of each was seen."""
        return {"completed": self.completed, "interrupted": self.interrupted, "letters": self.letters}

    def check(self, told: list[list[str]]) -> None:
        """After one kill: the database is sound, and what was told is true."""
        failures = [words for words in told if words[0] == "failed"]
        assert not failures, failures
        if not self._path.exists():
            return
        with sqlite3.connect(self._path) as db:
            assert db.execute("PRAGMA quick_check").fetchone() == ("ok",)
        db.close()
        with Reader(self._path) as reader:
            agents = {agent.agent_id: agent for agent in reader.agents() if not agent.is_main}
            for word, agent_id, *_ in told:
                if word in ("result", "completed"):
                    self._require_whole(reader, agents[agent_id])
                if word == "sent":
                    self._require_letter(reader, agents[agent_id])
                    self.letters += 1
                if word == "announced":
                    [run] = reader.runs(agents[agent_id].key)
                    assert run.told_at is not None, f"a model has read of {agent_id}, but that is not stored"
            self._check_new(reader, list(agents.values()))

    def _require_whole(self, reader: Reader, agent: AgentRecord) -> None:
        [run] = reader.runs(agent.key)
        assert run.status == "completed", f"{agent.agent_id} answered, but is stored as {run.status}"
        assert run.result is not None
        assert run.result["response"] == answer_to(run.message.text or ""), "the result is not whole"

    def _require_letter(self, reader: Reader, agent: AgentRecord) -> None:
        letter = letter_to(agent.agent_id)
        read = sum(each.message.text == letter for each in reader.transcript(agent.key))
        waits = sum(text == letter for _, text in reader.mail(agent.key))
        assert read + waits == 1, f"a letter to {agent.agent_id} was read {read} times and waits {waits} times"

    def _check_new(self, reader: Reader, agents: list[AgentRecord]) -> None:
        for agent in agents:
            if agent.key <= self._seen:
                continue
            [run] = reader.runs(agent.key)
            assert run.status in FINAL, f"{agent.agent_id} is {run.status}, but its process is gone"
            assert run.ended_at is not None
            self.completed += run.status == "completed"
            self.interrupted += run.status == "interrupted"
            if run.status == "completed":
                self._require_whole(reader, agent)
        self._seen = max([self._seen, *(agent.key for agent in agents)])

    def settle(self) -> None:
        """At the end: every run is known to its parent exactly once, by an announcement or by a tool's answer."""
        with Reader(self._path) as reader:
            for conversation in reader.conversations():
                agents = reader.agents(conversation.id)
                main = next(agent for agent in agents if agent.is_main)
                history = [each.message for each in reader.history(main.key)]
                assert not problems(history) or _only_the_end_is_open(history), problems(history)
                known = _known(each.message for each in reader.transcript(main.key))
                for agent in agents:
                    if agent.is_main:
                        continue
                    [run] = reader.runs(agent.key)
                    count = known[agent.agent_id]
                    expected = int(run.told_at is not None)
                    assert count == expected, f"{agent.agent_id} {run.status}: told {count} times, stored as {expected}"


def _only_the_end_is_open(history: list[Message]) -> bool:
    return all("at the end" in problem for problem in problems(history))


def _known(messages: Any) -> Counter[str]:
    """How often each run is told of in a parent's transcript."""
    known: Counter[str] = Counter()
    for message in messages:
        if message.role is Role.USER and (message.text or "").startswith(HEAD):
            known.update(set(AGENT.findall(message.text or "")))
        known.update([answer["agent_id"] for answer in _answers(message) if answer.get("complete")])
    return known


def _answers(message: Message) -> list[dict[str, Any]]:
    """The answers of tools in a message; calls whose outcome is unknown have none."""
    known = [result.result for result in message.results if result.error_kind != "unknown"]
    return [answer if isinstance(answer, dict) else json.loads(answer) for answer in known]


def finish(path: Path) -> None:
    """A last process for every conversation, which is not killed: what is left to announce is announced."""
    with Reader(path) as reader:
        left = [each.id for each in reader.conversations()]
        last = last_conversation(reader)
        assert last is not None
    for conversation in left:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            code = 1
            try:
                _announce_rest(path, conversation)
                code = 0
            finally:
                os._exit(code)
        os.close(writing)
        os.close(reading)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _announce_rest(path: Path, conversation: str) -> None:
    registry, plugin = PluginRegistry(), SubagentPlugin()
    registry.register_plugin(plugin)
    registry.expose_tool("subagent", {"auto_discover_profiles": False})
    client = JaatoClient(provider_name="script", store=path, workspace=path.parent)
    client.register_provider("script", ScriptProvider(lambda request: "noted"))
    client.connect(model="m")
    client.configure_tools(registry, permissions="allow")
    client.resume_conversation(conversation)
    store = client.get_runtime().store
    assert store is not None
    for _ in range(50):  # one digest has room for so many
        client.send_message("what is new?")
        if not store.reader.untold(conversation, "main"):
            break
    assert not store.reader.untold(conversation, "main"), "something is never announced"
    client.close()


def main(folder: Path, kills: int, seed: int) -> None:
    """Kill that many processes; writes what was seen."""
    dice, seen = random.Random(seed), Counter[str]()
    for first in range(0, kills, FILE):
        file = folder / f"runs{first}.db"
        audit = Audit(file)
        for number in range(first, min(first + FILE, kills)):
            audit.check(killed(file, f"r{number}", dice, fresh=number % CONVERSATION == 0))
        audit.settle()
        finish(file)
        audit.settle()
        seen.update(kills=number + 1 - first, **audit.counts)
    sys.stdout.write(json.dumps(seen))


def begin(words: list[str]) -> None:
    """As a program: folder, kills, seed."""
    main(Path(words[0]), int(words[1]), int(words[2]))
