"""Delegation end to end over the wire: a parent on one vendor's service, its children on another's, both real SDKs."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest
from support.labs import ANTHROPIC, GEMINI, OPENAI, Dialect, on_the_wire
from support.tools import Lab
from support.wire import Answer, Request, WireServer
from support.wire import Reply as WireReply

from shared import JaatoClient, PluginRegistry
from shared.plugins.subagent import SubagentPlugin
from shared.providers.script import Reply
from shared.subagents.prompt import PREAMBLE
from shared.testing import check_history

PAIRS = pytest.mark.parametrize(
    ("parent", "child"),
    [(ANTHROPIC, GEMINI), (GEMINI, ANTHROPIC), (OPENAI, GEMINI), (ANTHROPIC, OPENAI)],
    ids=lambda dialect: dialect.name,
)
SECRET = "the parent's own business"
STATE = {"set_shared_state", "get_shared_state", "list_shared_state"}
CALL_TOKENS = WireReply().usage.input + WireReply().usage.output  # of every scripted reply
AGENT_ID = re.compile(r"subagent_[0-9a-f]{8}\b")

Act = Reply | Callable[["Heard"], Reply | Answer]


@dataclass(frozen=True)
class Heard:
    """A request as a service received it, whichever vendor's format it is in."""

    dialect: Dialect
    request: Request

    @property
    def text(self) -> str:
        """The whole body."""
        return json.dumps(self.request.json, ensure_ascii=False)

    @property
    def ids(self) -> list[str]:
        """The subagents it mentions, in that order."""
        return list(dict.fromkeys(AGENT_ID.findall(self.text)))

    @property
    def model(self) -> str:
        """The model that is asked."""
        body: dict[str, Any] = self.request.json
        return str(body.get("model") or self.request.path.split("/models/")[1].split(":")[0])

    @property
    def system(self) -> str:
        """The system prompt."""
        body: dict[str, Any] = self.request.json
        found = body.get("system") or body.get("systemInstruction") or body["messages"][0]
        return json.dumps(found, ensure_ascii=False)

    @property
    def tools(self) -> set[str]:
        """The names of the tools on offer."""
        found: set[str] = set()
        for each in self.request.json.get("tools", ()):
            for one in each.get("functionDeclarations", [each.get("function", each)]):
                found.add(one["name"])
        return found


@dataclass
class Service:
    """A loopback service that plays its acts in order; the last one repeats."""

    dialect: Dialect
    acts: list[Act]
    server: WireServer = field(init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.server = WireServer(self._answer)

    @property
    def heard(self) -> list[Heard]:
        """All requests so far."""
        return [Heard(self.dialect, request) for request in list(self.server.requests)]

    def _answer(self, request: Request) -> Answer:
        with self._lock:
            act = self.acts.pop(0) if len(self.acts) > 1 else self.acts[0]
        made = act(Heard(self.dialect, request)) if callable(act) else act
        return made if isinstance(made, Answer) else self.dialect.render(on_the_wire(made), request)


@dataclass
class Table:
    """A client of the parent's service whose profile `helper` works on the child's."""

    client: JaatoClient
    parent: Service
    child: Service

    def send(self, message: str = SECRET) -> str:
        """A turn of the parent; the history is valid after it, whatever happened."""
        answer = self.client.send_message(message)
        check_history(self.client.get_history())
        return answer

    @property
    def results(self) -> list[Any]:
        """What the parent's tool calls gave."""
        history = self.client.get_history()
        return [result.result for message in history for result in message.results]


@pytest.fixture
def laid() -> Iterator[Callable[..., Table]]:
    """Lays a table: parent and child, each a dialect and what its model says."""
    with ExitStack() as stack:

        def lay(parent: tuple[Dialect, list[Act]], child: tuple[Dialect, list[Act]], **config: Any) -> Table:
            services = [Service(dialect, list(acts)) for dialect, acts in (parent, child)]
            for service in services:
                stack.enter_context(service.server)
            client = stack.enter_context(JaatoClient(provider_name=parent[0].name))
            for service in services:
                client.register_provider(service.dialect.name, service.dialect.config(service.server))
            client.connect(None, None, parent[0].model)
            client.configure_tools(_registry(child[0], config), permissions="allow")
            return Table(client, *services)

        yield lay


def _registry(child: Dialect, config: dict[str, Any]) -> PluginRegistry:
    helper = {
        "plugins": ["lab"],
        "tools": ["add", *sorted(STATE)],
        "model": child.model,
        "provider": child.name,
        "system_instructions": "You are the helper.",
    }
    registry = PluginRegistry()
    registry.register_plugin(Lab(), expose=True)
    registry.register_plugin(SubagentPlugin())
    settings = {"auto_discover_profiles": False, "profiles": {"helper": helper}, **config}
    registry.expose_tool("subagent", settings)
    return registry


def _calls(*given: tuple[str, dict[str, Any]]) -> Reply:
    return Reply("", given)


def _spawn(task: str, **args: Any) -> tuple[str, dict[str, Any]]:
    return "spawn_subagent", {"task": task, "profile": "helper", **args}


def _to_first(tool: str, **args: Any) -> Act:
    """A call about the subagent that the conversation mentions first."""
    return lambda heard: _calls((tool, {"agent_id": heard.ids[0], **args}))


@PAIRS
def test_spawn(parent: Dialect, child: Dialect, laid: Callable[..., Table]) -> None:
    table = laid(
        (parent, [_calls(_spawn("Add one and two.", context="They are numbers.")), Reply("The helper says three.")]),
        (child, [_calls(("add", {"a": 1, "b": 2})), Reply("It is three.")]),
    )
    assert table.send() == "The helper says three."
    first, second = table.child.heard
    for heard in (first, second):
        assert heard.model == child.model
        assert "You are the helper." in heard.system
        assert PREAMBLE[:60] in heard.system
        assert heard.tools == {"add"} | STATE
        assert SECRET not in heard.text, "a child sees nothing of its parent's conversation"
    assert "Add one and two." in first.text
    assert first.text.index("They are numbers.") < first.text.index("Add one and two.")
    before, after = table.parent.heard
    assert before.model == parent.model
    assert {"spawn_subagent", "wait_for_subagents", "add"} <= before.tools
    assert "You are the helper." not in before.system
    assert "It is three." in after.text
    (result,) = table.results
    assert (result["success"], result["status"], result["response"]) == (True, "completed", "It is three.")
    assert (result["model"], result["provider"], result["tool_calls"]) == (child.model, child.name, 1)
    assert result["turns_used"] == 2


@PAIRS
def test_the_books_add_up_over_the_tree(parent: Dialect, child: Dialect, laid: Callable[..., Table]) -> None:
    table = laid(
        (
            parent,
            [_calls(_spawn("one"), _spawn("two", background=True)), _calls(("wait_for_subagents", {})), Reply(".")],
        ),
        (child, [Reply("done")]),
    )
    table.send()
    session, ledger = table.client.get_session(), table.client.get_runtime().ledger
    asked = len(table.parent.server.requests), len(table.child.server.requests)
    assert asked == (3, 2)
    assert session.account.own.calls == 3
    assert session.account.own.usage.total_tokens == 3 * CALL_TOKENS
    assert session.account.subtree.usage.total_tokens == 5 * CALL_TOKENS
    assert ledger.total.usage.total_tokens == 5 * CALL_TOKENS
    sync, _, waited = table.results
    children = [sync, *waited["results"]]
    assert [each["token_usage"]["total_tokens"] for each in children] == [CALL_TOKENS] * len(children)


@PAIRS
def test_background_and_wait(parent: Dialect, child: Dialect, laid: Callable[..., Table]) -> None:
    meeting = threading.Barrier(2, timeout=20)

    def met(heard: Heard) -> Reply:
        meeting.wait()  # both children are at work at the same time, or nobody gets on
        return Reply(f"Looked at the {'left' if 'the left' in heard.text else 'right'} half.")

    table = laid(
        (
            parent,
            [
                _calls(
                    _spawn("Look at the left half.", background=True),
                    _spawn("Look at the right half.", background=True),
                ),
                lambda heard: _calls(("wait_for_subagents", {"ids": heard.ids})),
                Reply("Both halves are fine."),
            ],
        ),
        (child, [met]),
    )
    assert table.send() == "Both halves are fine."
    left, right, waited = table.results
    assert left["background"]
    assert right["background"]
    assert waited["complete"]
    assert [each["response"] for each in waited["results"]] == ["Looked at the left half.", "Looked at the right half."]
    assert len(table.parent.heard) == 3, "waiting costs no model call"
    assert len(table.child.heard) == 2


@PAIRS
def test_an_unawaited_result_is_announced_once(parent: Dialect, child: Dialect, laid: Callable[..., Table]) -> None:
    table = laid(
        (parent, [_calls(_spawn("Take your time.", background=True)), Reply("Started."), Reply("I see.")]),
        (child, [Reply("Found the needle.")]),
    )
    ended = threading.Event()

    class Hooks:
        def on_agent_completed(self, **facts: Any) -> None:
            ended.set()

    table.client.get_runtime().set_ui_hooks(Hooks())
    assert table.send() == "Started."
    assert ended.wait(20)
    assert table.send("Anything new?") == "I see."
    assert table.send("And now?") == "I see."
    told = [heard.text.count("Found the needle.") for heard in table.parent.heard]
    assert told[-2:] == [1, 1], "at the next call of the parent, and never a second time"


@PAIRS
def test_continue(parent: Dialect, child: Dialect, laid: Callable[..., Table]) -> None:
    table = laid(
        (
            parent,
            [
                _calls(_spawn("Think of a number.")),
                _to_first("continue_subagent", message="Which one was it?"),
                Reply("It was seven."),
            ],
        ),
        (child, [Reply("I have one."), Reply("Seven.")]),
    )
    assert table.send() == "It was seven."
    spawned, continued = table.results
    assert continued["agent_id"] == spawned["agent_id"]
    assert (continued["status"], continued["response"]) == ("completed", "Seven.")
    second = table.child.heard[1].text
    places = [second.index(text) for text in ("Think of a number.", "I have one.", "Which one was it?")]
    assert places == sorted(places), "it remembers the conversation"
    assert continued["token_usage"]["total_tokens"] == CALL_TOKENS, "each run has its own bill"


def _halting(heard: Heard) -> Answer:
    """An answer that falls silent in the middle."""
    whole = heard.dialect.render(WireReply("A long report that is never finished"), heard.request)
    return whole.hang(len(whole.body) * 2 // 3)


@PAIRS
def test_cancel_of_a_child_in_a_silent_stream(parent: Dialect, child: Dialect, laid: Callable[..., Table]) -> None:
    spoken = threading.Event()

    class Hooks:
        def on_agent_output(self, **facts: Any) -> None:
            if facts["agent_id"] != "main" and facts["text"]:
                spoken.set()

    def cancel(heard: Heard) -> Reply:
        table.child.server.wait_hanging(1)
        assert spoken.wait(20), "the child's first words never arrived"
        return _calls(("cancel_subagent", {"agent_id": heard.ids[0], "reason": "not needed"}))

    table = laid(
        (
            parent,
            [
                _calls(_spawn("Write a long report.", background=True)),
                cancel,
                _to_first("get_subagent_result"),
                Reply("Stopped."),
            ],
        ),
        (child, [_halting]),
    )
    table.client.get_runtime().set_ui_hooks(Hooks())
    assert table.send() == "Stopped."
    table.child.server.wait_hangups(1)
    _, receipt, result = table.results
    (cancelled,) = receipt["cancelled"]
    assert (cancelled["status"], receipt["already_finished"]) == ("cancelled", [])
    assert (result["success"], result["status"], result["complete"]) == (False, "cancelled", True)
    assert "A long" in result["response"], "the text so far is kept"
    assert len(table.child.heard) == 1, "a cancelled call is not tried again"


@PAIRS
def test_stopping_the_parent_hangs_up_on_the_childs_service(
    parent: Dialect, child: Dialect, laid: Callable[..., Table]
) -> None:
    table = laid((parent, [_calls(_spawn("Write a long report.")), Reply("Fine.")]), (child, [_halting]))
    answers: list[str] = []
    thread = threading.Thread(target=lambda: answers.append(table.send()), daemon=True)
    thread.start()
    table.child.server.wait_hanging(1)
    assert table.client.stop()
    thread.join(20)
    assert not thread.is_alive()
    table.child.server.wait_hangups(1)
    assert answers[0].endswith("[cancelled]")
    assert table.send("Are you there?") == "Fine.", "the conversation goes on"


@PAIRS
def test_shared_state(parent: Dialect, child: Dialect, laid: Callable[..., Table]) -> None:
    table = laid(
        (
            parent,
            [
                _calls(_spawn("Count the files.", background=True)),
                _calls(("get_shared_state", {"key": "files", "wait_for_version": 1, "timeout_seconds": 20})),
                _calls(("set_shared_state", {"key": "go", "value": True, "expected_version": 0})),
                _calls(("wait_for_subagents", {})),
                Reply("Counted."),
            ],
        ),
        (
            child,
            [
                _calls(("set_shared_state", {"key": "files", "value": {"count": 42, "names": ["ä"]}})),
                _calls(("get_shared_state", {"key": "go", "wait_for_version": 1, "timeout_seconds": 20})),
                Reply("42 files."),
            ],
        ),
    )
    assert table.send() == "Counted."
    _, read, _, waited = table.results
    assert (read["value"], read["version"]) == ({"count": 42, "names": ["ä"]}, 1)
    assert [each["response"] for each in waited["results"]] == ["42 files."]
    assert '\\"value\\": true' in table.child.heard[-1].text or '"value": true' in table.child.heard[-1].text


@PAIRS
def test_a_child_whose_service_fails_for_good_is_no_success(
    parent: Dialect, child: Dialect, laid: Callable[..., Table]
) -> None:
    table = laid(
        (parent, [_calls(_spawn("Try it.")), Reply("It could not.")]),
        (child, [lambda heard: heard.dialect.faults["auth"]]),
    )
    assert table.send() == "It could not."
    (result,) = table.results
    assert (result["success"], result["status"]) == (False, "failed")
    assert result["error"]
    assert "test-key" not in table.parent.heard[-1].text


def test_three_vendors_in_one_tree(laid: Callable[..., Table]) -> None:
    """Anthropic asks Gemini, which asks an OpenAI-compatible service; each sees only its own part."""
    third = Service(OPENAI, [Reply("Deepest answer.")])
    profiles = {
        "middle": {"plugins": ["subagent", "lab"], "model": GEMINI.model, "provider": GEMINI.name},
        "deep": {"model": OPENAI.model, "provider": OPENAI.name},
    }
    table = laid(
        (ANTHROPIC, [_calls(_spawn("Ask further.", profile="middle")), Reply("Heard it.")]),
        (GEMINI, [_calls(_spawn("What is at the bottom?", profile="deep")), Reply("Passed on.")]),
        profiles=profiles,
        max_depth=2,
    )
    with third.server:
        table.client.register_provider(OPENAI.name, OPENAI.config(third.server))
        assert table.send() == "Heard it."
    (deep,) = third.heard
    assert deep.model == OPENAI.model
    assert "Ask further." not in deep.text
    assert deep.tools == STATE
    assert "Deepest answer." in table.child.heard[-1].text
    assert "Deepest answer." not in table.parent.heard[-1].text
    (result,) = table.results
    assert result["token_usage"]["total_tokens"] == 2 * CALL_TOKENS
    assert result["subtree_usage"]["total_tokens"] == 3 * CALL_TOKENS
    assert table.client.get_session().account.subtree.usage.total_tokens == 5 * CALL_TOKENS
