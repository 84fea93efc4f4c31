"""`${NAME}` in plugin settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared.definitions.variables import expand_plugin_configs, expand_variables, variables_for, workspace_root


def test_the_table_has_the_four_names_and_what_the_host_allows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.setenv("USER", "ada")
    monkeypatch.setenv("REGION", "eu")
    monkeypatch.setenv("SECRET_KEY", "s3cr3t")
    table = variables_for(tmp_path, allowed=["REGION", "NOT_SET"])
    assert table == {
        "HOME": "/home/ada",
        "USER": "ada",
        "REGION": "eu",
        "cwd": str(tmp_path),
        "workspaceRoot": str(workspace_root(tmp_path)),
    }


def test_the_environment_cannot_replace_the_fixed_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("cwd", "/elsewhere")
    monkeypatch.setenv("workspaceRoot", "/elsewhere")
    table = variables_for(tmp_path, allowed=["cwd", "workspaceRoot"])
    assert "/elsewhere" not in table.values()


@pytest.mark.parametrize("mark", [".git", ".jaato"])
def test_the_workspace_root_is_the_nearest_marked_folder(tmp_path: Path, mark: str) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "a" / mark).mkdir(parents=True)
    deep = tmp_path / "a" / "b" / "c"
    deep.mkdir(parents=True)
    assert workspace_root(deep) == tmp_path / "a"
    assert workspace_root(tmp_path) == tmp_path


def test_texts_are_expanded_at_any_depth_and_other_values_kept() -> None:
    given = {"path": "${cwd}/x", "list": ["${cwd}", 7, None, {"deep": "a ${cwd} b ${cwd}"}], "flag": True}
    assert expand_variables(given, {"cwd": "/w"}) == {
        "path": "/w/x",
        "list": ["/w", 7, None, {"deep": "a /w b /w"}],
        "flag": True,
    }


@pytest.mark.parametrize("text", ["${UNKNOWN}", "$cwd", "${}", "${cwd", "${1x}", "${a-b}", "$${x"])
def test_what_is_unknown_or_no_variable_stays_as_it_is(text: str) -> None:
    assert expand_variables(text, {"cwd": "/w"}) == text


def test_a_value_is_not_expanded_again() -> None:
    assert expand_variables("${a}", {"a": "${b}", "b": "secret"}) == "${b}"


def test_plugin_configs_become_fresh_objects() -> None:
    configs = {"references": {"sources": [{"path": "${cwd}/docs"}]}}
    expanded = expand_plugin_configs(configs, {"cwd": "/w"})
    expanded["references"]["sources"].append("more")
    assert configs == {"references": {"sources": [{"path": "${cwd}/docs"}]}}
