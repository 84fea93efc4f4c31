"""Every public agent and profile file of the corpus behaves as its expectation says.

The files are other people's and are not part of this repository: the test runs where they lie beside it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shared.definitions.agent_models import ALIASES
from shared.definitions.files import read_file
from shared.definitions.formats import loader_for, stem_of
from shared.definitions.profile_file import Reading
from shared.definitions.source import Source
from shared.definitions.tool_names import our_names, plugin_of

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
_EXPECTED = CORPUS / "expected.json"
_FILES: list[dict[str, Any]] = (
    [each for each in json.loads(_EXPECTED.read_text())["files"] if each["kind"] in ("agent", "profile")]
    if _EXPECTED.is_file()
    else []
)

pytestmark = pytest.mark.skipif(not _FILES, reason="no corpus of public definition files beside the checkout")


@pytest.fixture(params=_FILES, ids=lambda each: str(each["path"]))
def case(request: pytest.FixtureRequest) -> dict[str, Any]:
    found: dict[str, Any] = request.param
    return found


def _read(case: dict[str, Any]) -> Reading:
    path = CORPUS / case["path"]
    loader = loader_for(path.name)
    assert loader is not None
    text = read_file(str(path), root=str(CORPUS.resolve())).text
    return loader(text, stem=stem_of(path.name), source=Source("extra", str(path), False))


def test_it_loads_or_is_refused_as_expected(case: dict[str, Any]) -> None:
    reading = _read(case)
    loaded = reading.profile is not None
    codes = [problem.code for problem in reading.problems]
    if case["expect"] == "either":
        assert loaded or codes
    else:
        assert loaded == case["expect"].startswith("load"), reading.problems
    assert loaded or codes, "no silence"
    assert set(case["why"]) <= set(codes)


def test_its_fields_are_as_written(case: dict[str, Any]) -> None:
    profile = _read(case).profile
    if profile is None or "name" not in case:
        return
    assert profile.name == case["name"]
    assert " ".join(profile.description.split()).startswith(case["description_prefix"].strip())
    assert profile.model == _model(case["model"])
    if case["kind"] == "profile":
        assert (list(profile.plugins), profile.max_turns) == (case["plugins"], case["max_turns"])
        assert not profile.auto_approved, "the place is not trusted"
    else:
        assert profile.system_instructions in (CORPUS / case["path"]).read_text()


def test_its_tools_are_no_more_than_written(case: dict[str, Any]) -> None:
    profile = _read(case).profile
    if profile is None or case["kind"] != "agent" or "tools" not in case:
        return
    if case["tools"] is None:
        assert (profile.tools, profile.plugins, profile.unmapped_tools) == (None, "inherit", ())
        return
    mapped = [ours for name in case["tools"] for ours in our_names(name) or ()]
    assert profile.tools == tuple(dict.fromkeys(mapped))
    assert list(profile.unmapped_tools) == [name for name in case["tools"] if not our_names(name)]
    assert set(profile.plugins) == {plugin_of(tool) for tool in mapped}


def _model(written: str | None) -> str | None:
    return None if written in (None, "inherit") else ALIASES.get(written, written)
