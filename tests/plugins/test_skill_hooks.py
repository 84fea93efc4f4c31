"""Programs that a trusted skill runs around the calls of the agent that uses it, and that they end with it."""

from __future__ import annotations

import importlib.util
import json
import os
import py_compile
import select
import threading
from pathlib import Path
from typing import Any

import pytest
from support.skill_talk import hooked, on, talking, told
from support.skills import write_skill
from support.tools import calls

from shared.errors import ToolError
from shared.plugins.subagent import SubagentProfile
from shared.skills import Skill, SkillDetails, SkillInfo
from shared.trust import TrustStore, survey

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    place = tmp_path / "project"
    place.mkdir()
    return place


def test_a_command_sees_the_call_and_refuses_with_exit_code_2(project: Path) -> None:
    log = hooked(project, on("PreToolUse", "Bash"))
    with talking(project) as talk:
        talk.call("cli", command="echo before")
        talk.call("skill", name="watchful")
        assert "no secrets here" in talk.call("cli", command="echo secret > stolen")
        assert not (project / "stolen").exists()
        assert "fine" in talk.call("cli", command="echo fine")
        talk.call("add", a=1)
        talk.client.execute_user_command("skills", "deactivate watchful")
        talk.call("cli", command="echo secret")
    first, second = told(log)
    assert (first["tool_name"], first["hook_event_name"], first["cwd"]) == ("Bash", "PreToolUse", str(project))
    assert first["tool_input"] == {"command": "echo secret > stolen"}
    assert second["tool_input"]["command"] == "echo fine"


@pytest.mark.parametrize("way", ["fork", "profile"])
def test_hooks_watch_a_subagent_that_runs_or_preloads_the_skill(project: Path, way: str) -> None:
    script = "import sys; sys.stderr.write('not you'); sys.exit(2)"
    hooked(project, on("PreToolUse", "add"), script=script, **({"context": "fork"} if way == "fork" else {}))
    with talking(project) as talk:
        if way == "fork":
            talk.call("skill", name="watchful")
        else:
            plugin: Any = talk.client.get_runtime().registry.get_plugin("subagent")  # type: ignore[union-attr]
            plugin.add_profile(SubagentProfile("worker", plugins=["lab"], skills=["watchful"]))
            talk.call("spawn_subagent", task="count", profile="worker")
        assert "not you" in talk.model.childs[-1]
        assert talk.call("add", a=1) == "2"


def test_an_untrusted_skill_never_runs_a_hook(project: Path) -> None:
    log = hooked(project, on("PreToolUse"))
    with talking(project, trusted=False) as talk:
        assert "set hooks" in talk.call("skill", name="watchful")
        talk.call("cli", command="echo secret")
    assert told(log) == []


def test_a_skill_of_the_user_may_and_one_that_was_installed_only_once_it_is_trusted(
    project: Path, home: Path, tmp_path: Path
) -> None:
    hooks = json.dumps(on("PreToolUse", "add", command="echo mine >&2; exit 2"))
    write_skill(home / "skills", "own", hooks=hooks)
    source = write_skill(tmp_path / "from", "fetched", hooks=hooks)
    with talking(project, trusted=False) as talk:
        talk.client.execute_user_command("install", str(source))
        talk.call("skill", name="fetched")
        assert talk.call("add", a=1) == "2"
        talk.client.execute_user_command("skills", "trust fetched")
        talk.call("skill", name="fetched")
        assert "mine" in talk.call("add", a=1)
        talk.plugin.deactivate("fetched")
        talk.call("skill", name="own")
        assert "mine" in talk.call("add", a=1)


def test_a_link_in_the_folder_of_a_skill_keeps_its_hooks_from_running(project: Path) -> None:
    log = hooked(project, on("PreToolUse", "add"))
    script = project / ".jaato/skills/watchful/scripts/check.py"
    script.rename(project / "elsewhere.py")
    script.symlink_to(project / "elsewhere.py")
    with talking(project) as talk:
        assert "holds a link" in talk.call("skill", name="watchful")
        assert talk.call("add", a=1) == "2"
    assert told(log) == []


def test_hooks_need_the_trust_that_holds_at_that_moment(project: Path) -> None:
    log = hooked(project, on("PreToolUse"))
    TrustStore().trust(survey(project))
    with talking(project, trusted=None) as talk:
        talk.call("skill", name="watchful")
        assert "no secrets" in talk.call("cli", command="echo secret")
        script = project / ".jaato/skills/watchful/scripts/check.py"
        script.write_text(script.read_text() + "\n# changed\n")
        assert "secret" in talk.call("cli", command="echo secret")
        assert "trust it with `jaato trust`" in talk.call("skill", name="watchful")
        talk.call("cli", command="echo secret")
    assert len(told(log)) == 1


def test_compiled_code_beside_a_hooks_script_is_never_run(project: Path, tmp_path: Path) -> None:
    """It is in no fingerprint, so whoever adds it after the trust must gain nothing."""
    hooked(project, on("PreToolUse", "add"), script="import sys, helper\nsys.stderr.write(helper.WORD)\nsys.exit(2)")
    scripts = project / ".jaato/skills/watchful/scripts"
    (scripts / "helper.py").write_text("WORD = 'trusted'")
    TrustStore().trust(survey(project))
    evil = tmp_path / "helper.py"
    evil.write_text("WORD = 'evil'")
    target = Path(importlib.util.cache_from_source(str(scripts / "helper.py")))
    target.parent.mkdir()
    py_compile.compile(str(evil), cfile=str(target), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    with talking(project, trusted=None) as talk:
        talk.call("skill", name="watchful")
        assert "trusted" in talk.call("add", a=1)


def test_answers_in_json_refuse_but_never_allow(project: Path) -> None:
    deny = {"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "by rule"}}
    for number, answer in enumerate((deny, {"decision": "block", "reason": "by rule"}, {"continue": False})):
        hooked(project, on("PreToolUse", "add"), script=f"print({json.dumps(answer)!r})", name=f"no{number}")
    allow = {"hookSpecificOutput": {"permissionDecision": "allow"}}
    hooked(project, on("PreToolUse", "add"), script=f"print({json.dumps(allow)!r})", name="yes")
    with talking(project) as talk:
        for number in range(3):
            talk.call("skill", name=f"no{number}")
            assert f"refused by a hook of the skill 'no{number}'" in talk.call("add", a=1)
            talk.plugin.deactivate(f"no{number}")
        talk.call("skill", name="yes")
        assert talk.call("add", a=1) == "2"
        write_skill(project / ".jaato/skills", "careful", disallowed_tools="add")
        talk.call("skill", name="careful")
        assert "not to be used" in talk.call("add", a=1)


def test_after_a_call_a_hook_adds_what_it_has_to_say(project: Path) -> None:
    script = "import json, sys; told = json.load(sys.stdin); sys.stderr.write(str(told['tool_response'])); sys.exit(2)"
    hooked(project, on("PostToolUse", "add"), script=script)
    with talking(project) as talk:
        talk.call("skill", name="watchful")
        assert talk.call("add", a=4) == "5\n\n[A hook of the skill 'watchful' objects: 5]"


def test_a_users_message_gets_what_a_hook_prints(project: Path) -> None:
    hooked(project, on("UserPromptSubmit"), script="print('remember the milk')")
    with talking(project) as talk:
        talk.call("skill", name="watchful")
        talk.client.send_message("hello")
        assert any("hello\n\nremember the milk" in (message.text or "") for message in talk.client.get_history())


def test_one_that_fails_or_takes_too_long_lets_the_call_pass(project: Path) -> None:
    hooked(project, on("PreToolUse", "add", command="exit 1"), name="broken")
    hooked(project, on("PreToolUse", "add", command="sleep 60", timeout=0.1), name="slow")
    hooked(project, on("PreToolUse", "add", command="no-such-program-at-all"), name="absent")
    with talking(project) as talk:
        for name in ("broken", "slow", "absent"):
            talk.call("skill", name=name)
        assert talk.call("add", a=1) == "2"


def test_a_cancel_stops_the_program_of_a_hook(project: Path) -> None:
    pipe = project / "pipe"
    os.mkfifo(pipe)
    hooked(project, on("PreToolUse", "add", command=f"echo $$ > {pipe}; exec sleep 600"))
    with talking(project) as talk:
        talk.call("skill", name="watchful")
        talk.model.replies = [calls(("add", {"a": 1})), "end"]
        turn = threading.Thread(target=lambda: talk.client.send_message("go"), daemon=True)
        turn.start()
        pid = int(pipe.read_text())
        watched = os.pidfd_open(pid)
        assert talk.client.stop()
        turn.join(20)
        assert not turn.is_alive()
        assert select.select([watched], [], [], 20)[0], "the program goes on"
        os.close(watched)


def test_another_conversation_begins_without_what_skills_had_set_up(project: Path) -> None:
    write_skill(project / ".jaato/skills", "careful", disallowed_tools="add")
    with talking(project) as talk:
        talk.call("skill", name="careful")
        registry = talk.client.get_runtime().registry
        assert registry is not None
        talk.client.configure_tools(registry, permissions="allow")
        assert talk.plugin.manager.active == []
        assert talk.call("add", a=1) == "2"
        talk.call("skill", name="careful")
        assert "not to be used" in talk.call("add", a=1)


def test_once_means_once_per_activation(project: Path) -> None:
    log = hooked(project, on("PreToolUse", "add", once=True))
    with talking(project) as talk:
        for _ in range(2):
            talk.call("skill", name="watchful")
            talk.call("add", a=1)
            talk.call("add", a=1)
    assert len(told(log)) == 2


def test_hooks_hear_of_subagents(project: Path) -> None:
    log = hooked(project, on("SubagentStop"))
    with talking(project) as talk:
        talk.call("skill", name="watchful")
        talk.call("spawn_subagent", task="think")
        talk.client.get_runtime().hooks.subagent_stop(agent_id="x", parent_id="another", status="completed")
        talk.client.get_runtime().hooks.subagent_stop(agent_id="y", parent_id="main", status="completed")
    heard = {each["agent_id"] for each in told(log)}
    assert "y" in heard
    assert "x" not in heard


@pytest.mark.parametrize(
    ("hooks", "said"),
    [
        ({"BeforeLunch": []}, "BeforeLunch"),
        ({"PreToolUse": "echo"}, "must be a list"),
        ({"PreToolUse": ["echo"]}, "must be an object"),
        ({"PreToolUse": [{"hooks": [{"type": "prompt", "prompt": "x"}]}]}, "only commands"),
        ({"PreToolUse": [{"hooks": [{"type": "command"}]}]}, "needs a 'command'"),
        ({"PreToolUse": [{"matcher": "[", "hooks": []}]}, "regular expression"),
        (on("PreToolUse", timeout="soon"), "number of seconds"),
    ],
)
def test_hooks_that_cannot_be_read_are_named_and_set_nothing(project: Path, hooks: Any, said: str) -> None:
    hooked(project, hooks)
    with talking(project) as talk:
        assert said in talk.call("skill", name="watchful")
        assert not talk.client.get_runtime().hooks.has("before_tool_call")


def test_a_skill_from_code_has_hooks_too(project: Path) -> None:
    hooks = on("PreToolUse", "add", command="echo stop >&2; exit 2")
    with talking(project) as talk:
        talk.plugin.manager.register(Skill(SkillInfo("coded", "In code", details=SkillDetails(hooks=hooks)), "Body."))
        talk.call("skill", name="coded")
        assert "stop" in talk.call("add", a=1)
        talk.plugin.manager.deregister("coded")
        assert talk.call("add", a=1) == "2"
        with pytest.raises(ToolError, match="active skill"):
            talk.client.execute_user_command("skills", "deactivate coded")
