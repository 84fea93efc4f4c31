"""Every example that the subagent plugin's own description gives, as written there: by a model and by host code."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.labs import ANTHROPIC, GEMINI, WireLab
from support.subagents import PATIENCE, Errands, Hold, Play, Stage, calling, is_child, staged, task_of

from shared import JaatoClient, JaatoRuntime, PluginRegistry, ProviderConfig
from shared.errors import ServerFailed
from shared.events import ContextCollected, Event
from shared.plugins.subagent import SubagentPlugin, SubagentProfile
from shared.providers.base import ModelRequest
from shared.providers.script import Reply, ScriptProvider, Step

Call = Callable[..., Any]


def host(stage: Stage) -> Call:
    return stage.call


def model(stage: Stage) -> Call:
    return lambda tool, **args: stage.by_model((tool, args))[0]


@pytest.fixture(params=[host, model], ids=["host", "model"])
def via(request: pytest.FixtureRequest) -> Callable[[Stage], Call]:
    chosen: Callable[[Stage], Call] = request.param
    return chosen


@pytest.fixture(autouse=True)
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAATO_HOME", str(tmp_path / "home"))
    for name in ("PROJECT_ID", "LOCATION", "MODEL_NAME"):
        monkeypatch.delenv(name, raising=False)


def tools_of(stage: Stage) -> list[str]:
    """The tools that the newest child was offered."""
    return [schema.name for schema in stage.play.child_requests[-1].tools.schemas]


# -- usage -------------------------------------------------------------------------------------------


def test_basic_usage_inherits_plugins(via: Callable[[Stage], Call], tmp_path: Path) -> None:
    with staged("It is a small tree.", expose=("cli", "file_edit"), workspace=tmp_path) as stage:
        answer = via(stage)("spawn_subagent", task="Analyze the codebase structure and summarize it")
        assert answer["success"] is True
        assert answer["status"] == "completed"
        assert answer["response"] == "It is a small tree."
        offered = tools_of(stage)
        assert {"cli", "read_file", "set_shared_state"} <= set(offered)
        assert "spawn_subagent" not in offered
        assert task_of(stage.play.child_requests[0]) == "Analyze the codebase structure and summarize it"


def test_override_max_turns_only(via: Callable[[Stage], Call], tmp_path: Path) -> None:
    with staged([calling(("cli", {"command": "true"}))], expose=("cli",), workspace=tmp_path) as stage:
        answer = via(stage)("spawn_subagent", task="Quick file check", inline_config={"max_turns": 5})
        assert (answer["status"], answer["reason"], answer["success"]) == ("partial", "max_turns", False)
        assert len(stage.play.child_requests) == answer["turns_used"] == 5
        assert "cli" in tools_of(stage)


def test_override_system_instructions_only(via: Callable[[Stage], Call], tmp_path: Path) -> None:
    with staged("ok", expose=("cli",), workspace=tmp_path) as stage:
        instructions = "Be concise and factual"
        answer = via(stage)(
            "spawn_subagent", task="Research this topic", inline_config={"system_instructions": instructions}
        )
        assert answer["success"]
        [request] = stage.play.child_requests
        assert request.system.count(instructions) == 1
        assert all(instructions not in (message.text or "") for message in request.messages)
        assert "cli" in tools_of(stage)


def test_override_plugins(via: Callable[[Stage], Call], tmp_path: Path) -> None:
    with staged("ok", expose=("cli", "file_edit"), workspace=tmp_path) as stage:
        answer = via(stage)("spawn_subagent", task="Run shell commands only", inline_config={"plugins": ["cli"]})
        assert answer["success"]
        assert "cli" in tools_of(stage)
        assert "read_file" not in tools_of(stage)


def test_with_predefined_profile(via: Callable[[Stage], Call], tmp_path: Path) -> None:
    profile = {"description": "Subagent for code analysis", "plugins": ["cli"], "max_turns": 10}
    with staged("ok", expose=("cli",), config={"profiles": {"code_assistant": profile}}, workspace=tmp_path) as stage:
        answer = via(stage)("spawn_subagent", task="Analyze the code", profile="code_assistant")
        assert answer["success"]
        assert "cli" in tools_of(stage)
        assert stage.call("list_active_subagents")["active_sessions"][0]["profile"] == "code_assistant"


def test_with_context(via: Callable[[Stage], Call]) -> None:
    with staged("fixed") as stage:
        context = "The user reported a NullPointerException in UserService.java line 42"
        assert via(stage)("spawn_subagent", task="Fix the bug we discussed", context=context)["success"]
        first = stage.play.child_requests[0].messages[0].text or ""
        assert first.index(context) < first.index("Fix the bug we discussed")
        assert task_of(stage.play.child_requests[0]) == "Fix the bug we discussed"


# -- profiles in files -------------------------------------------------------------------------------

CODE_ASSISTANT = {
    "name": "code_assistant",
    "description": "Subagent for code analysis and review",
    "plugins": ["cli", "file_edit"],
    "system_instructions": "You are a code review specialist.",
    "max_turns": 10,
    "auto_approved": False,
}
SKILL_ADD_RETRY = {
    "name": "skill-add-retry",
    "description": "Add retry pattern to Java services",
    "plugins": ["cli", "file_edit", "references"],
    "plugin_configs": {
        "references": {
            "preselected": ["adr-001-resilience-patterns", "eri-002-retry"],
            "exclude_tools": ["selectReferences"],
        }
    },
    "system_instructions": "Implement retry pattern following the pre-selected references.",
    "max_turns": 15,
}
GC_PROFILE = {
    "name": "long-running-agent",
    "description": "Agent for extended tasks requiring context management",
    "plugins": ["cli", "file_edit"],
    "gc": {
        "type": "hybrid",
        "threshold_percent": 80.0,
        "preserve_recent_turns": 5,
        "notify_on_gc": True,
        "summarize_middle_turns": 10,
    },
    "max_turns": 50,
}
GEMINI_RESEARCH = {
    "name": "gemini_research_agent",
    "description": "Research agent using Google Gemini for cost efficiency",
    "plugins": ["web_search", "references"],
    "model": "gemini-2.5-flash",
    "provider": "google_genai",
    "system_instructions": "You are a research specialist.",
    "max_turns": 15,
}
DISCOVERING = {"auto_discover_profiles": True, "profiles_dir": ".jaato/profiles"}


def write_profiles(workspace: Path, *profiles: dict[str, Any]) -> None:
    folder = workspace / ".jaato/profiles"
    folder.mkdir(parents=True)
    for profile in profiles:
        (folder / f"{profile['name']}.json").write_text(json.dumps(profile))


def test_profile_auto_discovery(via: Callable[[Stage], Call], tmp_path: Path) -> None:
    write_profiles(tmp_path, CODE_ASSISTANT)
    (tmp_path / ".jaato/profiles/research_agent.yaml").write_text("description: Reads\nplugins: [cli]\n")
    with staged("ok", expose=("cli", "file_edit"), config=DISCOVERING, workspace=tmp_path) as stage:
        call = via(stage)
        listed = {each["name"]: each for each in call("list_subagent_profiles")["profiles"]}
        assert {"code_assistant", "research_agent"} <= set(listed)
        assert listed["code_assistant"]["plugins"] == ["cli", "file_edit"]
        assert call("spawn_subagent", task="Review", profile="code_assistant")["success"]
        assert "You are a code review specialist." in stage.play.child_requests[-1].system


def test_profile_auto_discovery_can_be_switched_off(tmp_path: Path) -> None:
    write_profiles(tmp_path, CODE_ASSISTANT)
    with staged("ok", config={"auto_discover_profiles": False}, workspace=tmp_path) as stage:
        assert stage.call("list_subagent_profiles")["profiles"] == []
        assert "code_assistant" in stage.spawn("Review", profile="code_assistant")["error"]


def test_explicit_profiles_beat_discovered_ones(tmp_path: Path) -> None:
    write_profiles(tmp_path, CODE_ASSISTANT)
    config = {**DISCOVERING, "profiles": {"code_assistant": {"description": "from code", "plugins": []}}}
    with staged("ok", config=config, workspace=tmp_path) as stage:
        listed = {each["name"]: each for each in stage.call("list_subagent_profiles")["profiles"]}
        assert listed["code_assistant"]["description"] == "from code"


def test_profile_with_plugin_configs(via: Callable[[Stage], Call], tmp_path: Path) -> None:
    write_profiles(tmp_path, SKILL_ADD_RETRY)
    sources = [
        {"id": "adr-001-resilience-patterns", "type": "inline", "content": "Use exponential backoff."},
        {"id": "eri-002-retry", "type": "inline", "content": "Retry three times."},
    ]
    (tmp_path / ".jaato/references.json").write_text(json.dumps({"sources": sources}))
    exposed = ("cli", "file_edit", "references")
    with staged("ok", expose=exposed, config=DISCOVERING, workspace=tmp_path, trust_workspace=True) as stage:
        before = stage.client.get_session().tool_names
        assert via(stage)("spawn_subagent", task="Add retries", profile="skill-add-retry")["success"]
        request = stage.play.child_requests[-1]
        assert "Use exponential backoff." in request.system
        assert "Retry three times." in request.system
        assert "Implement retry pattern following the pre-selected references." in request.system
        assert "selectReferences" not in tools_of(stage)
        assert "listReferences" in tools_of(stage)
        assert stage.client.get_session().tool_names == before
        assert "selectReferences" in before, "the parent's live plugin is left as it was"


def test_profile_with_garbage_collection(via: Callable[[Stage], Call], tmp_path: Path) -> None:
    write_profiles(tmp_path, GC_PROFILE)
    long = "x" * 3000
    acts: list[Step] = [calling(("cli", {"command": f"echo {long}"}))] * 20
    script = iter([*acts, "done"])
    collected: list[Event] = []

    def child(request: ModelRequest) -> Step:
        return next(script) if request.tools.schemas else "a summary"

    with staged(
        child,
        expose=("cli", "file_edit"),
        config=DISCOVERING,
        workspace=tmp_path,
        trust_workspace=True,
        context_window=12_000,
    ) as stage:
        runtime = stage.client.get_runtime()
        runtime.bus.subscribe(collected.append, interest=frozenset({ContextCollected}))
        answer = via(stage)("spawn_subagent", task="A long task", profile="long-running-agent")
        runtime.bus.flush(PATIENCE)
        assert (answer["status"], answer["turns_used"]) == ("completed", 21)
        assert all(request.prompt_tokens < 12_000 for request in stage.play.child_requests)
        assert {event.agent_id for event in collected} == {answer["agent_id"]}, "only the child collects"
        assert {event.strategy for event in collected if isinstance(event, ContextCollected)} == {"hybrid"}


# -- setting up --------------------------------------------------------------------------------------


def test_plugin_initialization_with_every_option(via: Callable[[Stage], Call], tmp_path: Path) -> None:
    config: dict[str, Any] = {
        "project": "my-gcp-project",
        "location": "us-central1",
        "default_model": None,
        "default_provider": None,
        "profiles": {
            "code_assistant": {"description": "Subagent for code analysis", "plugins": ["cli"], "max_turns": 10},
            "gemini_research": {
                "description": "Research using Gemini",
                "plugins": ["web_search"],
                "model": "gemini-2.5-flash",
                "provider": "google_genai",
                "max_turns": 15,
            },
        },
        "allow_inline": True,
        "inline_allowed_plugins": [],
        "auto_discover_profiles": True,
        "profiles_dir": ".jaato/profiles",
    }
    gemini = ScriptProvider(lambda request: f"{request.model} says hello", name="google_genai")
    with staged("ok", expose=("cli",), config=config, workspace=tmp_path, providers={"google_genai": gemini}) as stage:
        call = via(stage)
        inherited = call("spawn_subagent", task="Look", profile="code_assistant")
        assert (inherited["model"], inherited["provider"]) == ("script-model", "script")
        explicit = call("spawn_subagent", task="Search", profile="gemini_research")
        assert explicit["response"] == "gemini-2.5-flash says hello"
        assert (explicit["model"], explicit["provider"]) == ("gemini-2.5-flash", "google_genai")
        listed = call("list_subagent_profiles")
        assert listed["inline_allowed"] is True
        assert listed["inline_allowed_plugins"] == []


def test_initialize_before_the_client_exists() -> None:
    plugin = SubagentPlugin()
    plugin.initialize({"auto_discover_profiles": False, "profiles": {"one": {"description": "first"}}})
    assert [each["name"] for each in plugin.get_executors()["list_subagent_profiles"]({})["profiles"]] == ["one"]
    refused = plugin.get_executors()["spawn_subagent"]({"task": "too early"})
    assert refused["success"] is False
    assert "configure_tools" in refused["error"]


def test_add_profile_that_inherits_and_one_with_a_provider(via: Callable[[Stage], Call], tmp_path: Path) -> None:
    gemini = ScriptProvider(lambda request: "from Gemini", name="google_genai")
    exposed = ("cli", "todo", "file_edit")
    with staged(
        "from the parent's model", expose=exposed, workspace=tmp_path, providers={"google_genai": gemini}
    ) as stage:
        stage.plugin.add_profile(
            SubagentProfile(
                name="simple_agent",
                description="Inherits parent model and provider",
                plugins=["cli", "todo"],
                system_instructions="You are a specialized assistant.",
                max_turns=20,
                auto_approved=False,
            )
        )
        stage.plugin.add_profile(
            SubagentProfile(
                name="gemini_agent",
                description="Uses Google Gemini regardless of parent provider",
                plugins=["cli", "file_edit"],
                model="gemini-2.5-flash",
                provider="google_genai",
                system_instructions="You are a code generation specialist.",
                max_turns=15,
            )
        )
        call = via(stage)
        assert call("spawn_subagent", task="one", profile="simple_agent")["response"] == "from the parent's model"
        other = call("spawn_subagent", task="two", profile="gemini_agent")
        assert (other["response"], other["provider"]) == ("from Gemini", "google_genai")


def test_added_profiles_outlive_an_initialisation() -> None:
    plugin = SubagentPlugin()
    plugin.add_profile(SubagentProfile(name="early", description="added before the plugin is exposed"))
    registry = PluginRegistry()
    registry.register_plugin(plugin)
    registry.expose_tool("subagent", {"auto_discover_profiles": False})
    assert [each["name"] for each in plugin.get_executors()["list_subagent_profiles"]({})["profiles"]] == ["early"]


def test_connection_inheritance() -> None:
    """The client's project, location, model and exposed plugins reach the children."""
    with staged("ok", expose=("cli",)) as stage:
        session = stage.client.get_session()
        report = stage.spawn("anything", dry_run=True)
        assert (report["model"], report["model_from"]) == (session.model_name, "caller")
        assert (report["provider"], report["provider_from"]) == (session.provider_name, "caller")
        assert report["plugins"] == ["cli"]


# -- running -----------------------------------------------------------------------------------------


def test_parallel_execution(via: Callable[[Stage], Call]) -> None:
    hold = Hold("analysed")
    with staged(hold) as stage:
        call = via(stage)
        first = call("spawn_subagent", task="Analyze the API module", background=True)
        assert first["success"] is True
        assert first["background"] is True
        assert first["agent_id"].startswith("subagent_")
        assert first["status"] in ("queued", "running")
        for task in ("Review authentication code", "Check database queries", "Analyze error handling"):
            call("spawn_subagent", task=task, background=True)
        hold.wait_entered(4)
        listed = call("list_active_subagents")
        assert listed["count"] == 4
        assert {each["status"] for each in listed["active_sessions"]} == {"running"}
        running = call("get_subagent_result", agent_id=first["agent_id"])
        assert (running["success"], running["status"], running["complete"]) == (True, "running", False)
        hold.release()
        done = call("get_subagent_result", agent_id=first["agent_id"], wait=True)
        assert (done["success"], done["status"], done["response"]) == (True, "completed", "analysed")


def test_cross_provider_support(tmp_path: Path) -> None:
    """A Claude parent and a Gemini child, each on its own wire format."""
    from contextlib import ExitStack

    spawn = calling(("spawn_subagent", {"task": "Write it", "profile": "gemini_coder"}))
    with ExitStack() as stack:
        parent = WireLab(ANTHROPIC, stack).answering(spawn, Reply("The child wrote it."))
        child = WireLab(GEMINI, stack).answering(Reply("def f(): ..."))
        registry = PluginRegistry()
        registry.discover()
        registry.expose_tool("cli")
        registry.expose_tool("file_edit")
        profile = {
            "description": "Code generation using Gemini",
            "model": "gemini-2.5-flash",
            "provider": "google_genai",
            "plugins": ["cli", "file_edit"],
        }
        registry.expose_tool("subagent", {"auto_discover_profiles": False, "profiles": {"gemini_coder": profile}})
        client = JaatoClient(provider_name="anthropic", workspace=tmp_path)
        client.register_provider("anthropic", parent)
        client.register_provider("google_genai", child)
        client.connect(model=ANTHROPIC.model)
        client.configure_tools(registry, permissions="allow")
        stack.callback(client.close)
        assert client.send_message("Delegate it") == "The child wrote it."
        [result] = [result for message in client.get_history() for result in message.results]
        assert result.result["response"] == "def f(): ..."
        assert (result.result["model"], result.result["provider"]) == ("gemini-2.5-flash", "google_genai")


@pytest.mark.parametrize(
    ("profile", "defaults", "expected", "levels"),
    [
        (("m1", "p1"), ("m2", "p2"), ("m1", "p1"), ("profile", "profile")),
        ((None, None), (None, None), ("script-model", "script"), ("caller", "caller")),
        ((None, None), ("m2", "p2"), ("m2", "p2"), ("config", "config")),
        (("m1", None), (None, "p2"), ("m1", "p2"), ("profile", "config")),
        ((None, "p1"), (None, None), ("script-model", "p1"), ("caller", "profile")),
    ],
)
def test_inheritance_rules(
    profile: tuple[str | None, str | None],
    defaults: tuple[str | None, str | None],
    expected: tuple[str, str],
    levels: tuple[str, str],
) -> None:
    providers = {name: ScriptProvider(["fine"], name=name) for name in ("p1", "p2")}
    config = {
        "default_model": defaults[0],
        "default_provider": defaults[1],
        "profiles": {"it": {"model": profile[0], "provider": profile[1]}},
    }
    with staged("fine", config=config, providers=providers) as stage:
        report = stage.spawn("a task", profile="it", dry_run=True)
        assert (report["model"], report["provider"]) == expected
        assert (report["model_from"], report["provider_from"]) == levels
        answer = stage.spawn("a task", profile="it")
        assert (answer["model"], answer["provider"], answer["response"]) == (*expected, "fine")


def test_provider_registration() -> None:
    runtime = JaatoRuntime(provider_name="anthropic")
    runtime.connect("my-gcp-project", "us-central1")
    runtime.register_provider("google_genai", ProviderConfig(project="my-gcp-project", location="us-central1"))
    runtime.register_provider("anthropic", ScriptProvider(Play(), name="anthropic"))
    plugin = SubagentPlugin()
    registry = PluginRegistry()
    registry.register_plugin(plugin, expose=True, config={"auto_discover_profiles": False})
    runtime.configure_plugins(registry, permissions="allow")
    session = runtime.create_session("claude")
    runtime.set_main_session(session)
    try:
        answer = plugin.get_executors()["spawn_subagent"]({"task": "no client is needed"})
        assert (answer["response"], answer["provider"]) == ("the child's answer", "anthropic")
    finally:
        session.close()
        runtime.close()


# -- cancellation ------------------------------------------------------------------------------------


def test_manual_cancellation(via: Callable[[Stage], Call]) -> None:
    with staged(Reply("never", delay=600)) as stage:
        call = via(stage)
        agent_id = call("spawn_subagent", task="something long", background=True)["agent_id"]
        answer = call("cancel_subagent", agent_id=agent_id)
        assert answer["success"] is True
        assert answer["message"] == f"Cancellation requested for {agent_id}"
        assert [each["agent_id"] for each in answer["cancelled"]] == [agent_id]
        assert call("get_subagent_result", agent_id=agent_id, wait=True)["status"] == "cancelled"


def test_parent_cancellation_propagates() -> None:
    entered = threading.Semaphore(0)

    def child(request: ModelRequest) -> Step:
        entered.release()
        return Reply("never", delay=600)

    play = Play(Errands(), child)
    with staged(play) as stage:
        assert isinstance(play.parent, Errands)
        play.parent.orders = [("spawn_subagent", {"task": "one"}), ("spawn_subagent", {"task": "two"})]
        turn = threading.Thread(target=stage.client.send_message, args=("go",))
        turn.start()
        assert all(entered.acquire(timeout=PATIENCE) for _ in range(2))
        assert stage.client.stop()
        turn.join(PATIENCE)
        assert not turn.is_alive()
        listed = stage.call("list_active_subagents")["active_sessions"]
        assert [each["last_status"] for each in listed] == ["cancelled"] * 2


# -- callbacks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("early", [True, False], ids=["before configure_tools", "after"])
def test_retry_callback_propagation(early: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AI_RETRY_BASE_DELAY", "0.001")
    heard: list[tuple[str, int, int, float]] = []
    failing = threading.Semaphore(1)

    def child(request: ModelRequest) -> Step:
        return ServerFailed("the service hiccups") if failing.acquire(blocking=False) else "well again"

    plugin = SubagentPlugin()
    if early:
        plugin.set_retry_callback(lambda *given: heard.append(given))
    registry = PluginRegistry()
    registry.register_plugin(plugin, expose=True, config={"auto_discover_profiles": False})
    client = JaatoClient(provider_name="script")
    client.register_provider("script", ScriptProvider(Play(child=child)))
    client.connect()
    client.configure_tools(registry, permissions="allow")
    if not early:
        plugin.set_retry_callback(lambda *given: heard.append(given))
    try:
        assert plugin.get_executors()["spawn_subagent"]({"task": "try"})["response"] == "well again"
    finally:
        client.close()
    [(message, attempt, most, delay)] = heard
    assert "the service hiccups" in message
    assert 1 == attempt < most
    assert delay >= 0


@pytest.mark.parametrize("early", [True, False], ids=["before configure_tools", "after"])
def test_ui_hooks_propagation(early: bool) -> None:
    class Hooks:
        def __init__(self) -> None:
            self.seen: list[tuple[str, str]] = []

        def on_agent_created(self, agent_id: str, **_: Any) -> None:
            self.seen.append(("created", agent_id))

        def on_agent_completed(self, agent_id: str, **_: Any) -> None:
            self.seen.append(("completed", agent_id))

    hooks, plugin = Hooks(), SubagentPlugin()
    if early:
        plugin.set_ui_hooks(hooks)
    registry = PluginRegistry()
    registry.register_plugin(plugin, expose=True, config={"auto_discover_profiles": False})
    client = JaatoClient(provider_name="script")
    client.register_provider("script", ScriptProvider(Play()))
    client.connect()
    client.configure_tools(registry, permissions="allow")
    if not early:
        plugin.set_ui_hooks(hooks)
    agent_id = plugin.get_executors()["spawn_subagent"]({"task": "be seen"})["agent_id"]
    client.close()
    assert hooks.seen == [("created", agent_id), ("completed", agent_id)]


# -- shared state ------------------------------------------------------------------------------------


def test_shared_state(via: Callable[[Stage], Call]) -> None:
    with staged() as stage:
        call = via(stage)
        value = {"files_checked": 42, "issues": []}
        assert call("set_shared_state", key="analysis_results", value=value)["success"] is True
        found = call("get_shared_state", key="analysis_results")
        assert (found["success"], found["value"]) == (True, value)
        call("set_shared_state", key="other_key", value=1)
        assert call("list_shared_state") == {"success": True, "keys": ["analysis_results", "other_key"], "count": 2}
        missing = call("get_shared_state", key="nonexistent")
        assert (missing["success"], missing["value"], missing["version"]) == (True, None, 0)


def test_shared_state_between_parent_and_child() -> None:
    def child(request: ModelRequest) -> Step:
        if not request.messages[-1].results:
            return calling(("get_shared_state", {"key": "plan"}), ("set_shared_state", {"key": "done", "value": True}))
        return str(request.messages[-1].results[0].result["value"])

    with staged(child) as stage:
        stage.call("set_shared_state", key="plan", value="north first")
        assert stage.spawn("follow the plan")["response"] == "north first"
        assert stage.call("get_shared_state", key="done")["value"] is True


# -- with a client -----------------------------------------------------------------------------------


def test_integration_with_jaato_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JAATO_PROVIDER", "script")
    tools: list[list[str]] = []

    def script(request: ModelRequest) -> Step:
        if is_child(request):
            tools.append([schema.name for schema in request.tools.schemas])
            return "It is fine."
        if request.messages[-1].results:
            return f"The subagent says: {request.messages[-1].results[0].result['response']}"
        return calling(("spawn_subagent", {"task": "analyze the code"}))

    registry = PluginRegistry()
    registry.discover()
    registry.expose_tool("cli")
    registry.expose_tool("mcp")
    registry.expose_tool("subagent")

    client = JaatoClient()
    client.register_provider("script", ScriptProvider(script))
    client.connect("my-project", "us-central1", "a-model")
    client.configure_tools(registry, permissions="allow")
    try:
        response = client.send_message("Spawn a subagent to analyze the code")
    finally:
        client.close()
    assert response == "The subagent says: It is fine."
    assert "cli" in tools[0]
    assert "spawn_subagent" not in tools[0]
