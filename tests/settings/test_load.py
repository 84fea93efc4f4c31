"""Settings come from files, environment and code; the strongest place wins, and each value knows its origin."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.settings_files import Desk
from support.settings_files import desk as made_desk

from shared.errors import ConfigError
from shared.settings import load_settings


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    return made_desk(tmp_path, monkeypatch)


def test_without_files_every_value_is_the_default(desk: Desk) -> None:
    settings = desk.load()
    assert (settings.provider, settings.model, settings.get("max_concurrent")) == ("google_genai", None, 8)
    assert {value.origin.kind for _, value in settings.rows()} == {"default"}
    assert settings.files == ()


def test_project_over_user_overlay_over_both_environment_over_files_and_code_over_all(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def model() -> tuple[str | None, str]:
        found = load_settings(desk.workspace, code=code)
        return found.model, str(found.origin("model"))

    code: dict[str, str] = {}
    desk.user("# mine\nmodel: of-user\n")
    assert model() == ("of-user", f"user {desk.home}/config.yaml:2")
    desk.project("\n\nmodel: of-project\n")
    assert model() == ("of-project", f"project {desk.project_file}:3")
    desk.overlay.write_text("model: of-overlay\n")
    monkeypatch.setenv("JAATO_CONFIG", str(desk.overlay))
    assert model() == ("of-overlay", f"overlay {desk.overlay}:1")
    monkeypatch.setenv("MODEL_NAME", "of-environment")
    assert model() == ("of-environment", "environment MODEL_NAME")
    code["model"] = "of-code"
    assert model() == ("of-code", "code")


def test_objects_merge_entry_by_entry_and_lists_are_replaced(desk: Desk) -> None:
    desk.user("retry: {attempts: 2, base_delay: 0.5}\nagent_dirs: [claude]\nplugins: {cli: {timeout_seconds: 3}}\n")
    desk.project("retry:\n  base_delay: 9\nagent_dirs: [pi]\nplugins: [cli, todo]\n")
    settings = desk.load()
    assert settings.get("retry") == {"attempts": 2, "base_delay": 9}
    assert str(settings.origin("retry.attempts")) == f"user {desk.home}/config.yaml:1"
    assert str(settings.origin("retry.base_delay")) == f"project {desk.project_file}:2"
    assert settings.get("agent_dirs") == ["pi"]
    assert settings.plugins == {"cli": {"timeout_seconds": 3}, "todo": {}}


def test_a_plugin_of_the_user_can_be_withdrawn_by_the_project(desk: Desk) -> None:
    desk.user("plugins: [cli, todo]\n")
    desk.project("plugins: {cli: false}\n")
    assert desk.load().plugins == {"todo": {}}


def test_nothing_after_a_key_leaves_it_as_it_was(desk: Desk) -> None:
    desk.user("model: mine\n")
    desk.project("model:\n")
    assert desk.load().model == "mine"


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("modle: x\n", 1, "unknown setting 'modle'. Did you mean 'model'?"),
        ("model: m\nretry:\n  atempts: 3\n", 3, "Did you mean 'attempts'?"),
        ("gc: {typ: x}\n", 1, "Did you mean 'type'?"),
        ("providers:\n  anthropic:\n    base_ur: http://x\n", 3, "Did you mean 'base_url'?"),
        ("model: m\nmax_depth: many\n", 2, "'max_depth': expected integer"),
        ("reasoning_effort: huge\n", 1, "expected one of 'low', 'medium', 'high'"),
        ("model: m\nmax_children: 0\n", 2, "0 is less than the minimum of 1"),
        ("providers:\n  anthropic: {base_url: 'ftp://x'}\n", 2, "does not match"),
        ("location: evil.example/\n", 1, "does not match"),
        ("agent_dirs: [clod]\n", 1, "Did you mean 'claude'?"),
        ("profiles:\n  a: {plugin: []}\n", 1, "profile 'a': unknown field 'plugin'. Did you mean 'plugins'?"),
        ("trust_workspace: true\n", 1, "run `jaato trust`"),
        ("api_key: sk-1\n", 1, "environment variable"),
        ("model: a\nmodel: b\n", 2, "written twice"),
        ("- model\n", 1, "expected settings as 'key: value', got a list of 1"),
        ("model: [\n", 2, "not valid YAML"),
        ("model: !!python/name:os.system x\n", 1, "tag"),
    ],
)
def test_what_is_wrong_is_told_with_file_line_and_suggestion(desk: Desk, text: str, line: int, said: str) -> None:
    desk.project(text)
    with pytest.raises(ConfigError) as caught:
        desk.load()
    assert f"{desk.project_file}:{line}: " in str(caught.value)
    assert said in str(caught.value)


def test_all_errors_of_all_files_are_told_at_once(desk: Desk) -> None:
    desk.user("modle: x\n")
    desk.project("max_depth: x\nmax_children: y\n")
    with pytest.raises(ConfigError, match=r"(?s)config\.yaml:1: .*modle.*max_depth.*max_children"):
        desk.load()


def test_a_wrong_key_does_not_appear_in_the_error(desk: Desk) -> None:
    desk.user("providers:\n  anthropic:\n    api_key: [sk-ant-0123456789abcdef]\n")
    with pytest.raises(ConfigError, match="api_key") as caught:
        desk.load()
    assert "0123456789abcdef" not in str(caught.value)


def test_an_overlay_that_is_not_there_is_an_error(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAATO_CONFIG", str(desk.overlay))
    with pytest.raises(ConfigError, match="JAATO_CONFIG names this file, and it does not exist"):
        desk.load()


def test_a_project_file_that_is_a_link_is_refused_and_the_users_may_be_one(desk: Desk, tmp_path: Path) -> None:
    elsewhere = tmp_path / "dotfiles.yaml"
    elsewhere.write_text("model: mine\n")
    os.symlink(elsewhere, desk.home / "config.yaml")
    assert desk.load().model == "mine"
    another = tmp_path / "another.yaml"
    another.write_text("model: theirs\n")
    desk.project_file.parent.mkdir()
    os.symlink(another, desk.project_file)
    with pytest.raises(ConfigError, match="is a link"):
        desk.load()


def test_a_pipe_in_place_of_the_file_does_not_hang(desk: Desk) -> None:
    desk.project_file.parent.mkdir()
    os.mkfifo(desk.project_file)
    with pytest.raises(ConfigError, match="neither a file"):
        desk.load()


def test_in_the_home_folder_the_one_file_counts_once_as_the_users(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.project("permissions: allow\n")
    monkeypatch.setenv("JAATO_HOME", str(desk.workspace / ".jaato"))
    settings = desk.load()
    assert settings.permissions == "allow"
    assert len(settings.files) == 1


def test_where_the_trace_goes(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    default = desk.load().trace
    assert default is not None
    assert default.name == "rich_client_trace.log"
    desk.user("trace: logs/trace.log\n")
    assert desk.load().trace == desk.home / "logs" / "trace.log"
    desk.user("trace: false\n")
    assert desk.load().trace is None
    monkeypatch.setenv("JAATO_TRACE_LOG", "/var/log/mine")
    assert desk.load().trace == Path("/var/log/mine")
    for empty in ("", "  "):
        monkeypatch.setenv("JAATO_TRACE_LOG", empty)
        assert desk.load().trace is None


def test_a_number_in_the_environment_must_be_one(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AI_RETRY_ATTEMPTS", "often")
    with pytest.raises(ConfigError, match="AI_RETRY_ATTEMPTS must be a number, not 'often'"):
        desk.load()


def test_an_unknown_setting_in_code_is_an_error(desk: Desk) -> None:
    with pytest.raises(ConfigError, match="Did you mean 'model'"):
        load_settings(desk.workspace, code={"modle": "x"})


def test_a_relative_path_of_the_users_does_not_lead_into_the_workspace(desk: Desk) -> None:
    desk.user("permissions: ./mine.json\nskill_dirs: [skills]\nextra_dirs: [more]\n")
    settings = desk.load()
    assert settings.permissions == str(desk.home / "mine.json")
    assert settings.skill_dirs == (str(desk.home / "skills"),)
    assert settings.subagent_options(("extra_dirs",)) == {"extra_dirs": [str(desk.home / "more")]}
    desk.project("permissions: ./theirs.json\nskill_dirs: [skills]\n")
    settings = desk.load(trust_workspace=True)
    assert settings.permissions == str(desk.workspace / "theirs.json")
    assert settings.skill_dirs == (str(desk.workspace / "skills"),)
