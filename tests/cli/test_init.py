"""`jaato init`: a folder is seeded, nothing is overwritten, and what is seeded is right."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from support.command import jaato

from shared.cli.init import SEEDS, ready_made
from shared.settings import survey


def test_it_seeds_profiles_settings_and_a_policy(tmp_path: Path) -> None:
    done = jaato("init", cwd=tmp_path)
    assert done.returncode == 0
    folder = tmp_path / ".jaato"
    assert {path.stem for path in (folder / "profiles").iterdir()} == set(ready_made())
    assert {"research-assistant", "code-analyst", "summarizer"} <= set(ready_made())
    assert json.loads((folder / "permissions.json").read_text())["defaultPolicy"] == "ask"
    for command in (("profiles", "lint", "--strict"), ("config", "check")):
        checked = jaato(*command, cwd=tmp_path)
        assert checked.returncode == 0, checked


def test_what_is_there_is_kept(tmp_path: Path) -> None:
    kept = tmp_path / ".jaato" / "profiles" / "summarizer.yaml"
    kept.parent.mkdir(parents=True)
    kept.write_text("mine")
    first, second = jaato("init", cwd=tmp_path), jaato("init", cwd=tmp_path)
    assert kept.read_text() == "mine"
    assert f"kept     {kept}" in first.stdout
    assert "wrote" in first.stdout
    assert "wrote" not in second.stdout


def test_editors_find_the_schemas_that_the_files_name(tmp_path: Path) -> None:
    jaato("init", cwd=tmp_path)
    folder = tmp_path / ".jaato"
    for path in [*(folder / "profiles").iterdir(), folder / "config.yaml"]:
        named = re.search(r"\$schema=(\S+)", path.read_text())
        assert named is not None, path
        assert "properties" in json.loads((path.parent / named[1]).read_text())


def test_the_user_folder(tmp_path: Path) -> None:
    jaato("init", "--user", "--profile", "summarizer", cwd=tmp_path, JAATO_HOME=str(tmp_path / "mine"))
    assert [path.name for path in (tmp_path / "mine" / "profiles").iterdir()] == ["summarizer.yaml"]
    assert not (tmp_path / ".jaato").exists()


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    done = jaato("init", "--dry-run", cwd=tmp_path)
    assert "would" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_profile_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    done = jaato("init", "-p", "sumarizer", cwd=tmp_path)
    assert done.returncode == 2
    assert "Did you mean 'summarizer'?" in done.stderr
    assert not (tmp_path / ".jaato").exists()


@pytest.mark.parametrize("linked", [".jaato", ".jaato/profiles"])
def test_nothing_is_written_through_a_link(tmp_path: Path, linked: str) -> None:
    target, folder = tmp_path / "elsewhere", tmp_path / "project"
    target.mkdir()
    link = folder / linked
    link.parent.mkdir(parents=True)
    link.symlink_to(target)
    done = jaato("init", str(folder), cwd=tmp_path)
    assert done.returncode == 2
    assert "is a link" in done.stderr
    assert list(target.iterdir()) == []


def test_every_example_in_the_settings_file_is_a_setting(tmp_path: Path) -> None:
    text = (SEEDS / "config.yaml").read_text()
    examples = re.findall(r"^# (\w+: .*)$", text, re.MULTILINE)
    assert len(examples) >= 6
    (tmp_path / ".jaato").mkdir()
    (tmp_path / ".jaato" / "config.yaml").write_text("\n".join(examples))
    assert yaml.safe_load("\n".join(examples))
    assert survey(tmp_path, trust_workspace=True).problems == ()
