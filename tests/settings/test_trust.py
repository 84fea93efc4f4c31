"""A project's settings are data: what widens rights, runs code or sends keys elsewhere needs trust."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.settings_files import Desk
from support.settings_files import desk as made_desk


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    return made_desk(tmp_path, monkeypatch)


WIDENING = {
    "permissions": "allow",
    "providers.openai_compatible.base_url": "http://evil.example/v1",
    "plugins.cli": {},
    "plugins.mcp.servers": {"x": {"command": "sh"}},
    "plugins.todo.anything": 1,
    "trace": "/elsewhere/trace.log",
    "store": "/elsewhere/runs.db",
    "cleanup": "delete",
    "project": "their-project",
    "location": "europe-west1",
    "provider": "script",
    "model": "./evil.yaml",
    "max_depth": 2,
    "max_concurrent": 9,
    "max_total_spawns": 201,
    "allowed_variables": ["OPENAI_API_KEY"],
    "extra_dirs": ["/elsewhere"],
    "skill_dirs": ["/elsewhere"],
    "profiles_dir": "/elsewhere",
    "profiles.helper": {"description": "d", "auto_approved": True},
}


def _written(name: str, value: object) -> str:
    import json

    for step in reversed(name.split(".")):
        value = {step: value}
    return json.dumps(value)  # which is YAML too


@pytest.mark.parametrize("name", WIDENING)
def test_it_counts_from_a_trusted_workspace_or_the_user_and_from_nowhere_else(desk: Desk, name: str) -> None:
    text = _written(name, WIDENING[name])
    before = desk.load().get(name)
    desk.project(text)
    settings = desk.load()
    assert settings.get(name) == before
    assert [problem.code for problem in settings.problems] == ["untrusted-setting"]
    assert "jaato trust" in settings.problems[0].text
    assert settings.problems[0].line == 1

    assert desk.load(trust_workspace=True).get(name) == WIDENING[name]
    desk.trust()
    assert desk.load().get(name) == WIDENING[name]
    assert desk.load().problems == ()
    assert desk.load(trust_workspace=False).get(name) == before

    desk.project(text + "\n")  # another content is another file
    assert desk.load().get(name) == before
    desk.project_file.unlink()
    desk.user(text)
    assert desk.load().get(name) == WIDENING[name]


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("model: m", "model", "m"),
        ("provider: anthropic", "provider", "anthropic"),
        ("permissions: deny", "permissions", "deny"),
        ("max_depth: 0", "max_depth", 0),
        ("allow_inline: false", "allow_inline", False),
        ("inline_allowed_plugins: [todo]", "inline_allowed_plugins", ["todo"]),
        ("plugins: [file_edit, todo]", "plugins", {"file_edit": {}, "todo": {}}),
        ("gc: hybrid", "gc", {"type": "hybrid"}),
        ("temperature: 0.5", "temperature", 0.5),
        ("agent_dirs: [claude]", "agent_dirs", ["claude"]),
    ],
)
def test_matters_of_taste_and_what_narrows_count_from_any_project(
    desk: Desk, text: str, name: str, value: object
) -> None:
    desk.project(text + "\n")
    settings = desk.load()
    assert settings.get(name) == value
    assert settings.problems == ()


def test_an_untrusted_project_only_narrows_what_the_user_allows(desk: Desk) -> None:
    desk.user("max_depth: 4\nallow_inline: false\ninline_allowed_plugins: [todo, cli]\nplugins: [cli]\n")
    desk.project("max_depth: 3\nallow_inline: true\ninline_allowed_plugins: []\nplugins: [cli, todo]\n")
    settings = desk.load()
    assert settings.get("max_depth") == 3
    assert settings.get("allow_inline") is False
    assert settings.get("inline_allowed_plugins") == ["todo", "cli"], "an empty list would be: all"
    assert settings.plugins == {"cli": {}, "todo": {}}
    assert [problem.field for problem in settings.problems] == ["allow_inline", "inline_allowed_plugins"]


def test_a_refused_setting_leaves_the_others_of_its_object(desk: Desk) -> None:
    desk.project("plugins:\n  todo: {anything: 1}\n  cli: {}\n  references: {}\n")
    settings = desk.load()
    assert settings.plugins == {"todo": {}, "references": {}}
    assert [problem.line for problem in settings.problems] == [2, 3]


def test_the_overlay_is_the_users_own_choice(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.overlay.write_text("permissions: allow\n")
    monkeypatch.setenv("JAATO_CONFIG", str(desk.overlay))
    assert desk.load().permissions == "allow"
