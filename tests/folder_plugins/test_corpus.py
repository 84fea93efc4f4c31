"""Every public manifest of the corpus is read as its expectation says, and opens as a folder plugin would.

The files are other people's and are not part of this repository: the test runs where they lie beside it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shared.definitions.files import read_file
from shared.definitions.manifest import ManifestReading, read_manifest
from shared.folder_plugins.opened import OpenedFolder, open_folder
from shared.folder_plugins.places import PluginFolder

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
_EXPECTED = CORPUS / "expected.json"
_FILES: list[dict[str, Any]] = (
    [each for each in json.loads(_EXPECTED.read_text())["files"] if each["kind"] == "plugin"]
    if _EXPECTED.is_file()
    else []
)
_DIALECTS = {"claude-plugin": "claude", "code-ally-plugin": "ally", "conduit-plugin": "conduit"}

pytestmark = pytest.mark.skipif(not _FILES, reason="no corpus of public definition files beside the checkout")


@pytest.fixture(params=_FILES, ids=lambda each: str(each["path"]))
def case(request: pytest.FixtureRequest) -> dict[str, Any]:
    found: dict[str, Any] = request.param
    return found


def _folder(case: dict[str, Any]) -> Path:
    place = (CORPUS / case["path"]).parent
    return place.parent if place.name == ".claude-plugin" else place


def _read(case: dict[str, Any]) -> ManifestReading:
    path, folder = CORPUS / case["path"], _folder(case)
    text = read_file(str(path), root=str(CORPUS.resolve())).text
    return read_manifest(text, path=str(path), folder=folder.name, claude=path.parent != folder)


def test_it_is_read_as_expected(case: dict[str, Any]) -> None:
    reading = _read(case)
    codes = {problem.code for problem in reading.problems}
    assert set(case["why"]) <= codes
    assert (reading.manifest is not None) == (case["expect"] != "reject"), reading.problems
    if reading.manifest is None:
        return
    found = reading.manifest
    assert (found.name, found.version, found.dialect) == (case["name"], case["version"], _DIALECTS[case["dialect"]])
    assert " ".join(found.description.split()).startswith(case["description_prefix"].strip())
    assert not [problem for problem in reading.problems if problem.severity == "error"]


def test_no_tool_and_no_agent_gets_lost(case: dict[str, Any]) -> None:
    found = _read(case).manifest
    assert found is not None
    assert [tool.name for tool in found.tools] == (case["tool_names"] or [])
    assert [agent.name for agent in found.agents] == (case["agent_names"] or [])
    written = json.loads((CORPUS / case["path"]).read_text(encoding="utf-8-sig"))
    assert {tool.name: tool.agents for tool in found.tools} == {
        tool["name"]: _bound(tool) for tool in written.get("tools", [])
    }, "bound tools stay bound"


def _bound(tool: dict[str, Any]) -> tuple[str, ...] | None:
    if "required_agent" in tool:
        return (tool["required_agent"],)
    return tuple(tool["visible_to"]) if "visible_to" in tool else None


def test_its_folder_opens_and_what_is_missing_from_it_is_told(case: dict[str, Any]) -> None:
    opened = open_folder(PluginFolder(_folder(case), "user"))
    assert isinstance(opened, OpenedFolder), opened
    assert opened.agents == ()
    missing = {problem.path for problem in opened.problems if problem.code == "missing"}
    assert len(missing) >= len(opened.manifest.agents), "the corpus has manifests only"
