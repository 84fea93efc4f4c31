"""The profiles that come with the package."""

from __future__ import annotations

import re
from pathlib import Path

import jsonschema
import pytest
import yaml

from shared.bundled import bundled_folder
from shared.definitions.catalogue import ProfileCatalogue
from shared.definitions.lint import lint
from shared.definitions.profile_schema import PROFILE_SCHEMA_PATH, profile_schema
from shared.registry import PluginRegistry

FOLDER = bundled_folder("profiles")
FILES = sorted(FOLDER.glob("*.yaml"))
READERS = {"read_file", "list_files", "search_files"}


def test_they_are_all_there_and_without_a_remark(tmp_path: Path) -> None:
    assert lint(FOLDER) == []
    names = {profile.name for profile in ProfileCatalogue(tmp_path, home=tmp_path / "home").list()}
    assert names == {
        "research-assistant",
        "code-analyst",
        "summarizer",
        "code-reviewer",
        "test-runner",
        "test-writer",
    }


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_file_fits_the_schema_it_refers_to(path: Path) -> None:
    text = path.read_text()
    jsonschema.validate(yaml.safe_load(text), profile_schema())
    [reference] = re.findall(r"^# yaml-language-server: \$schema=(\S+)$", text, re.MULTILINE)
    assert (path.parent / reference).resolve() == PROFILE_SCHEMA_PATH


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_asks_for_plugins_and_tools_that_exist(path: Path, tmp_path: Path) -> None:
    profile = ProfileCatalogue(tmp_path, home=tmp_path / "home").get(path.stem)
    registry = PluginRegistry()
    registry.discover()
    for plugin in profile.plugins:
        registry.expose_tool(plugin)
    assert {schema.name for schema in registry.get_exposed_tool_schemas()} >= set(profile.tools or ())
    registry.unexpose_all()


def test_each_has_the_least_rights_its_work_needs(tmp_path: Path) -> None:
    catalogue = ProfileCatalogue(tmp_path, home=tmp_path / "home")
    assert set(catalogue.get("code-analyst").tools or ()) == READERS
    assert set(catalogue.get("code-reviewer").tools or ()) == READERS
    assert set(catalogue.get("test-runner").tools or ()) == {*READERS, "cli"}
    assert catalogue.get("summarizer").plugins == ()
    assert not any(profile.auto_approved or profile.inherits_plugins for profile in catalogue.list())
