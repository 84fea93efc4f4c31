"""lint and discover_profiles: the reader without a catalogue."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from support.profile_files import Project, codes

from shared.definitions.discovery import discover_profiles
from shared.definitions.lint import lint


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_a_good_file_and_a_good_folder_have_nothing_to_report(project: Project) -> None:
    path = project.write("x.yaml", "description: d\nauto_approved: true")
    assert lint(path) == []
    assert lint(path.parent) == []
    assert lint(project.root) == []


def test_a_project_is_linted_in_both_of_its_folders(project: Project) -> None:
    project.write("x.yaml", "plugins: cli\ndescription: d")
    project.write("y.json", {"max_turns": 0}, into=".jaato/agents")
    found = lint(project.root)
    assert [(Path(problem.path).name, problem.code) for problem in found] == [
        ("y.json", "wrong-value"),
        ("x.yaml", "wrong-value"),
    ]


def test_duplicates_in_a_folder_are_named(project: Project) -> None:
    project.write("x.yaml", "name: same\ndescription: d")
    path = project.write("y.yaml", "name: same\ndescription: d")
    assert codes(lint(path.parent)) == ["duplicate-name", "duplicate-name"]


def test_what_is_not_there_or_no_profile_is_said_so(project: Project) -> None:
    assert codes(lint(project.root / "nothing.yaml")) == ["missing"]
    assert codes(lint(project.write("x.toml", "a = 1"))) == ["unknown-format"]


def test_lint_and_catalogue_agree_on_links_within_the_project(project: Project) -> None:
    target = project.write("real.yaml", "description: d", into="common")
    folder = project.write("other.yaml", "description: d").parent
    (folder / "x.yaml").symlink_to(target)
    assert lint(folder / "x.yaml") == lint(folder) == lint(project.root) == []
    assert project.catalogue().find("x") is not None


def test_a_problem_can_be_shown_as_json(project: Project) -> None:
    [problem] = lint(project.write("x.yaml", "description: d\nplugins: cli"))
    assert problem.as_dict() == {
        "path": str(project.root / ".jaato/profiles/x.yaml"),
        "line": 2,
        "code": "wrong-value",
        "field": "plugins",
        "text": "'plugins' must be a list of names, such as [cli], not 'cli' (or the word inherit)",
        "severity": "error",
    }


def test_discover_profiles_gives_a_dict_and_logs_the_rest(project: Project, caplog: pytest.LogCaptureFixture) -> None:
    project.write("b.yaml", "description: d")
    project.write("a.json", {"description": "d", "auto_approved": True})
    project.write("c.yaml", "plugins: cli")
    with caplog.at_level(logging.WARNING):
        found = discover_profiles(base_path=project.root)
    assert list(found) == ["a", "b"]
    assert not found["a"].auto_approved
    assert any("c.yaml:1: wrong-value" in message for message in caplog.messages)
    assert discover_profiles(base_path=project.root, trust_workspace=True)["a"].auto_approved


def test_discover_profiles_takes_any_folder_and_a_missing_one_is_empty(project: Project, tmp_path: Path) -> None:
    project.write("x.yaml", "description: d", into=str(tmp_path / "elsewhere"))
    assert list(discover_profiles(tmp_path / "elsewhere")) == ["x"]
    assert list(discover_profiles("elsewhere", tmp_path)) == ["x"]
    assert discover_profiles(base_path=tmp_path / "nowhere") == {}


def test_tools_and_plugins_that_nobody_has_are_told_where_they_are_known(project: Project) -> None:
    path = project.write(
        "a.yaml", "description: d\nplugins: [files]\ntools: [raed, read*]\nplugin_configs: {cil: {}}\n"
    )
    project.write("b.yaml", "description: d\nplugins: [mcp]\ntools: [of_a_server]\n")
    project.write("c.yaml", "description: d\nplugins: inherit\ntools: [of_the_caller]\n")
    found = lint(project.root, plugins=["files", "cli", "mcp"], tools=["read"])
    assert {(each.path, each.code, each.field, each.severity) for each in found} == {
        (str(path), "unknown-plugin", "plugin_configs", "warning"),
        (str(path), "unknown-tool", "tools", "warning"),
    }
    assert "Did you mean 'read'?" in " ".join(each.text for each in found)
