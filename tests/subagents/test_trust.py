"""Files that nobody vouched for, and agents made from them: never more than their caller has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.rights import STATE, by_task, desk, live, refused, request_of, tools_of, write_profile
from support.subagents import Stage, answers_in, calling, last_answer, spawning, staged
from support.tools import Lab


@pytest.fixture(autouse=True)
def _own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAATO_HOME", str(tmp_path_factory.mktemp("home")))


def _registry(stage: Stage) -> Any:
    return stage.client.get_runtime().registry


def test_an_untrusted_profile_has_no_more_than_its_caller(tmp_path: Path) -> None:
    hidden = desk()
    write_profile(tmp_path, "guest", plugins=["lab", "desk"])
    with staged(None, Lab(), config={"auto_discover_profiles": True}, workspace=tmp_path) as stage:
        _registry(stage).register_plugin(hidden)
        refused(stage.spawn(profile="guest"), "'desk'", "not trusted")
        assert not live(hidden)
    with staged(
        None, Lab(), config={"auto_discover_profiles": True}, workspace=tmp_path, trust_workspace=True
    ) as stage:
        _registry(stage).register_plugin(desk())
        stage.spawn("work", profile="guest")
        assert {"add", "look"} <= tools_of(stage.play, "work")


def test_an_untrusted_profile_cannot_look_like_another_agent_to_the_person_who_is_asked(tmp_path: Path) -> None:
    name = "boss \u203a trusted"
    write_profile(tmp_path, "guest", name=name, plugins=["lab"])
    with staged(None, Lab(), config={"auto_discover_profiles": True}, workspace=tmp_path) as stage:
        refused(stage.spawn(profile=name), "name", "\u203a")
        assert stage.spawn("work", profile=name, name="plain")["success"]


def test_an_untrusted_profile_changes_harmless_settings_only(tmp_path: Path) -> None:
    write_profile(tmp_path, "few", plugins=["desk"], plugin_configs={"desk": {"lines": 2}})
    write_profile(tmp_path, "low", plugins=["desk"], plugin_configs={"desk": {"lines": 2, "drawer": "low"}})
    look = [calling(("look", {})), "ok"]
    with staged(look, desk(), config={"auto_discover_profiles": True}, workspace=tmp_path) as stage:
        refused(stage.spawn(profile="low"), "'drawer'", "not trusted")
        assert stage.spawn("few", profile="few")["success"]
        assert last_answer(request_of(stage.play, "few")) == "the top drawer, 2 lines"


def test_harmless_settings_do_not_undo_those_that_the_caller_has(tmp_path: Path) -> None:
    write_profile(tmp_path, "few", plugins=["desk"], plugin_configs={"desk": {"lines": 2}})
    profiles = {"mid": {"plugins": ["subagent", "desk"], "plugin_configs": {"desk": {"drawer": "toy", "lines": 5}}}}
    look = [calling(("look", {})), "ok"]
    child = by_task({"mid": [spawning("few", profile="few"), spawning("plain"), "ok"], "few": look, "plain": look})
    config = {"auto_discover_profiles": True, "profiles": profiles, "max_depth": 2}
    with staged(child, desk(), config=config, workspace=tmp_path) as stage:
        stage.spawn("mid", profile="mid")
        assert last_answer(request_of(stage.play, "few")) == "the toy drawer, 2 lines"
        assert last_answer(request_of(stage.play, "plain")) == "the toy drawer, 5 lines"


def test_variables_are_those_the_host_allows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SECRET_KEY", "s3cret")
    monkeypatch.setenv("ALLOWED", "open ${SECRET_KEY}")
    drawer = "${SECRET_KEY} ${ALLOWED} ${cwd} $SECRET_KEY ${*} ${PATH}"
    profiles = {"p": {"plugins": ["desk"], "plugin_configs": {"desk": {"drawer": drawer}}}}
    config = {"profiles": profiles, "allowed_variables": ["ALLOWED", "cwd", "*"]}
    with staged([calling(("look", {})), "ok"], desk(), config=config, workspace=tmp_path) as stage:
        stage.spawn("work", profile="p")
        seen = str(last_answer(request_of(stage.play, "work")))
        assert "s3cret" not in seen
        assert f"${{SECRET_KEY}} open ${{SECRET_KEY}} {tmp_path} $SECRET_KEY ${{*}} ${{PATH}}" in seen


def test_an_untrusted_file_does_not_get_the_tools_of_an_agent_by_taking_its_name(tmp_path: Path) -> None:
    write_profile(tmp_path, "archivist", plugins=["desk"])
    with staged(None, desk(), config={"auto_discover_profiles": True}, workspace=tmp_path) as stage:
        assert stage.spawn("work", profile="archivist")["success"]
        assert tools_of(stage.play, "work") == {"look", "scribble"} | STATE
    with staged(
        None, desk(), config={"auto_discover_profiles": True}, workspace=tmp_path, trust_workspace=True
    ) as stage:
        stage.spawn("work", profile="archivist")
        assert "shred" in tools_of(stage.play, "work")


def test_an_untrusted_agent_gets_nothing_through_a_trusted_profile(tmp_path: Path) -> None:
    """The confused deputy: what a project file may not have, it may not have somebody else do."""
    hidden = desk()
    write_profile(tmp_path, "guest", plugins=["subagent", "lab"], disallowed_tools=["crash"])
    profiles = {
        "strong": {"plugins": ["lab"]},
        "hidden": {"plugins": ["desk"]},
        "boss": {"plugins": ["subagent", "lab"]},
    }
    child = by_task(
        {
            "guest": [spawning("strong", profile="strong"), spawning("x", profile="hidden"), _boss, "ok"],
            "strong": "ok",
            "boss": [spawning("below the boss", profile="strong"), spawning("x", profile="hidden"), "ok"],
            "below the boss": "ok",
        }
    )
    config = {"auto_discover_profiles": True, "profiles": profiles, "max_depth": 4}
    with staged(child, Lab(), config=config, workspace=tmp_path) as stage:
        _registry(stage).register_plugin(hidden)
        assert stage.spawn("guest", profile="guest")["status"] == "completed"
        for task in ("strong", "boss", "below the boss"):
            assert "crash" not in tools_of(stage.play, task), task
            assert "add" in tools_of(stage.play, task), task
        for task, place in (("guest", 1), ("boss", 1)):
            refused(answers_in(request_of(stage.play, task))[place], "'desk'", "caller")
        assert not live(hidden)
        assert stage.spawn("strong", profile="strong")["success"]
        assert "crash" in tools_of(stage.play, "strong"), "the main agent itself may use all of it"


def _boss(request: Any) -> Any:
    return spawning("boss", profile="boss")


def test_an_untrusted_agent_cannot_loosen_a_plugin_through_a_trusted_profile(tmp_path: Path) -> None:
    write_profile(tmp_path, "guest", plugins=["subagent", "desk"])
    profiles = {"loose": {"plugins": ["desk"], "plugin_configs": {"desk": {"drawer": "secret"}}}}
    child = by_task({"guest": [spawning("x", profile="loose"), "ok"], "x": "ok"})
    config = {"auto_discover_profiles": True, "profiles": profiles, "max_depth": 3}
    desks = desk()
    with staged(child, desks, config=config, workspace=tmp_path) as stage:
        stage.spawn("guest", profile="guest")
        refused(last_answer(request_of(stage.play, "guest")), "'drawer'", "bounded")
        assert live(desks) == [desks]
