from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from support.plugin_calls import Caller

from shared.errors import ConfigError
from shared.plugins.references import create_plugin
from shared.plugins.references.plugin import ReferencesPlugin
from shared.runtime import JaatoRuntime

CATALOGUE = [
    {"id": "adr-001", "name": "Resilience", "type": "file", "path": "docs/adr.md", "tags": ["java", "adr"]},
    {"id": "guide", "type": "folder", "path": "docs", "description": "all guides", "tags": ["docs"]},
    {"id": "rules", "type": "inline", "content": "Always test.", "mode": "auto"},
    {"id": "spec", "type": "url", "url": "https://example.org/spec", "tags": ["docs"]},
]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "docs/deep").mkdir(parents=True)
    (folder / "docs/adr.md").write_text("retry with backoff\n")
    (folder / "docs/deep/more.md").write_text("x" * 300)
    (tmp_path / "secret.txt").write_text("secret")
    catalogue(folder, CATALOGUE)
    return folder


def catalogue(folder: Path, sources: Any) -> None:
    (folder / ".jaato").mkdir(exist_ok=True)
    (folder / ".jaato/references.json").write_text(json.dumps({"sources": sources}))


def configured(work: Path, **config: Any) -> Caller:
    plugin = create_plugin()
    plugin.initialize(config or None)
    attach(plugin, work)
    return Caller(plugin, work)


def attach(plugin: ReferencesPlugin, work: Path) -> None:
    plugin.attach(cast(JaatoRuntime, SimpleNamespace(workspace=work)))


def prompt(caller: Caller) -> str:
    return caller.plugin.get_system_instructions() or ""


def test_list_with_and_without_tags(work: Path) -> None:
    refs = configured(work)
    assert [each["id"] for each in refs.ok("listReferences")["references"]] == ["adr-001", "guide", "rules", "spec"]
    found = refs.ok("listReferences", filter_tags=["docs"])
    assert found == {
        "references": [
            {
                "id": "guide",
                "name": "guide",
                "type": "folder",
                "mode": "selectable",
                "description": "all guides",
                "tags": ["docs"],
            },
            {
                "id": "spec",
                "name": "spec",
                "type": "url",
                "mode": "selectable",
                "tags": ["docs"],
                "url": "https://example.org/spec",
            },
        ],
        "count": 2,
    }
    assert "Did you mean 'java'?" in refs.error("listReferences", filter_tags=["jav"])


def test_select_by_id_and_tag(work: Path) -> None:
    refs = configured(work)
    selected = refs.ok("selectReferences", ids=["adr-001", "rules"], filter_tags=["docs"])["selected"]
    assert [(each["id"], each["content"]) for each in selected] == [
        ("adr-001", "retry with backoff\n"),
        ("rules", "Always test."),
        ("guide", "adr.md\ndeep/more.md"),
        ("spec", "See https://example.org/spec (open it with another tool)."),
    ]
    assert "Did you mean 'adr-001'?" in refs.error("selectReferences", ids=["adr-01"])
    assert "Known ids: adr-001" in refs.error("selectReferences")


def test_select_goes_on_when_one_source_is_gone(work: Path) -> None:
    (work / "docs/adr.md").unlink()
    first, second = configured(work).ok("selectReferences", ids=["adr-001", "rules"])["selected"]
    assert "does not exist" in first["error"]
    assert second["content"] == "Always test."


def test_read_in_pieces(work: Path) -> None:
    refs = configured(work, read_chars=100)
    (work / "docs/adr.md").write_text("".join(chr(97 + n % 26) for n in range(250)))
    text, offset = "", 0
    while offset is not None:
        part = refs.ok("readReference", id="adr-001", offset=offset)
        assert len(part["content"]) <= 100
        text += part["content"]
        offset = part.get("next_offset")
    assert text == (work / "docs/adr.md").read_text()
    assert "past the end" in refs.error("readReference", id="adr-001", offset=251)


def test_read_a_file_of_a_folder(work: Path) -> None:
    refs = configured(work)
    assert refs.ok("readReference", id="guide", path="deep/more.md")["content"] == "x" * 300
    assert refs.ok("readReference", id="guide", path="deep")["content"] == "deep/more.md"
    assert "has no path" in refs.error("readReference", id="rules", path="x")
    for path in ("../.jaato/references.json", "/etc/passwd", "../../secret.txt"):
        assert "outside" in refs.error("readReference", id="guide", path=path)


def test_links_in_a_folder_do_not_lead_out(work: Path, tmp_path: Path) -> None:
    (work / "docs/link").symlink_to(tmp_path / "secret.txt")
    refs = configured(work)
    assert "outside" in refs.error("readReference", id="guide", path="link")
    assert "link" not in refs.ok("readReference", id="guide")["content"]


@pytest.mark.parametrize("path", ["../secret.txt", "/etc/hostname", "~/.profile"])
def test_a_project_file_cannot_name_what_is_outside(work: Path, path: str) -> None:
    catalogue(work, [{"id": "evil", "type": "file", "path": path, "mode": "auto"}])
    refs = configured(work)
    assert "outside the workspace" in refs.error("readReference", id="evil")
    assert "outside the workspace" in prompt(refs)


def test_settings_may_name_absolute_paths_but_not_climb(work: Path, tmp_path: Path) -> None:
    inside = [
        {"id": "abs", "type": "file", "path": str(tmp_path / "secret.txt")},
        {"id": "dir", "type": "folder", "path": str(tmp_path / "work/docs")},
        {"id": "climb", "type": "file", "path": "../secret.txt"},
    ]
    refs = configured(work, sources=inside)
    assert refs.ok("readReference", id="abs")["content"] == "secret"
    assert refs.ok("readReference", id="dir")["content"] == "adr.md\ndeep/more.md"
    assert refs.ok("readReference", id="dir", path="adr.md")["content"] == "retry with backoff\n"
    assert "outside" in refs.error("readReference", id="dir", path="../../secret.txt")
    assert "outside" in refs.error("readReference", id="climb")


def test_the_prompt_has_what_is_preselected_or_automatic(work: Path) -> None:
    text = prompt(configured(work, preselected=["adr-001"]))
    assert 'Reference "Resilience" (adr-001):\nretry with backoff' in text
    assert 'Reference "rules" (rules):\nAlways test.' in text
    assert "- guide: guide - all guides" in text
    assert "- adr-001" not in text


def test_the_prompt_is_bounded_and_says_where_to_go_on(work: Path) -> None:
    (work / "docs/adr.md").write_text("y" * 1_000)
    refs = configured(work, preselected=["adr-001"], preselected_chars=100)
    assert "y" * 100 + "\n[900 more characters: readReference(id='adr-001', offset=100)]" in prompt(refs)
    assert "y" * 101 not in prompt(refs)
    hidden = configured(work, preselected=["adr-001"], preselected_chars=100, exclude_tools=["readReference"])
    assert "[900 more characters]" in prompt(hidden)


def test_nothing_to_offer_gives_no_prompt(tmp_path: Path) -> None:
    refs = configured(tmp_path)
    assert refs.plugin.get_system_instructions() is None
    assert refs.ok("listReferences") == {"references": [], "count": 0}
    assert "None are known" in refs.error("readReference", id="x")


def test_excluded_tools_are_gone(work: Path) -> None:
    refs = configured(work, exclude_tools=["selectReferences"])
    assert [schema.name for schema in refs.plugin.get_tool_schemas()] == ["listReferences", "readReference"]
    assert refs.plugin.get_auto_approved_tools() == ["listReferences", "readReference"]
    assert set(refs.plugin.get_executors()) == {"listReferences", "readReference"}
    assert "selectReferences" not in prompt(refs)
    assert "unknown tool" in refs.error("selectReferences", ids=["rules"])


def test_sources_choose_and_add(work: Path) -> None:
    refs = configured(work, sources=["spec", {"id": "own", "type": "inline", "content": "mine"}])
    assert [each["id"] for each in refs.ok("listReferences")["references"]] == ["spec", "own"]
    assert refs.ok("readReference", id="own")["content"] == "mine"


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"preselect": ["x"]}, "Did you mean 'preselected'?"),
        ({"preselected": "adr-001"}, "'preselected': expected array"),
        ({"preselected": ["adr-002"]}, "Did you mean 'adr-001'?"),
        ({"sources": ["guid"]}, "Did you mean 'guide'?"),
        ({"sources": [{"id": "x"}]}, "missing required field 'type'"),
        ({"sources": [{"id": "x", "type": "file"}]}, "needs the field 'path'"),
        ({"sources": [{"id": "x", "type": "inline", "content": "c", "tag": []}]}, "Did you mean 'tags'?"),
        ({"sources": [{"id": "x", "type": "web", "url": "u"}]}, "expected one of 'file'"),
        ({"sources": ["spec", "spec"]}, "'spec' is there twice"),
        ({"exclude_tools": ["selectReference"]}, "Did you mean 'selectReferences'?"),
    ],
)
def test_wrong_settings_are_found_before_the_first_call(work: Path, config: dict[str, Any], words: str) -> None:
    plugin = create_plugin()
    attach(plugin, work)
    with pytest.raises(ConfigError) as caught:
        plugin.initialize(config)
    assert words in str(caught.value)
    assert plugin.config == dict(plugin.config_keys)


def test_ids_are_checked_when_the_workspace_comes_after_the_settings(work: Path) -> None:
    plugin = create_plugin()
    plugin.initialize({"preselected": ["nothing-like-it"]})
    with pytest.raises(ConfigError, match="unknown reference 'nothing-like-it'"):
        attach(plugin, work)


def test_bad_entries_do_not_stop_the_good_ones(work: Path) -> None:
    catalogue(
        work, [{"id": "bad"}, 7, {"id": "ok", "type": "inline", "content": "c", "fetchHint": "x"}, *CATALOGUE[2:3] * 2]
    )
    listed = configured(work).ok("listReferences")
    assert [each["id"] for each in listed["references"]] == ["ok", "rules"]
    assert len(listed["problems"]) == 3
    assert "'bad': missing required field 'type'" in listed["problems"][0]


@pytest.mark.parametrize("content", ["{", "[1", '{"sources": 3}', "[" * 100_000, "\xff"])
def test_a_broken_catalogue_is_a_problem_not_a_crash(work: Path, content: str) -> None:
    (work / ".jaato/references.json").write_bytes(content.encode("latin-1"))
    listed = configured(work).ok("listReferences")
    assert listed["count"] == 0
    assert ".jaato/references.json cannot be used" in listed["problems"][0]


def test_a_binary_source_is_a_sentence(work: Path) -> None:
    (work / "docs/adr.md").write_bytes(b"\0\1")
    assert "binary" in configured(work).error("readReference", id="adr-001")


def test_schemas(work: Path) -> None:
    shapes = {
        s.name: (list(s.parameters["properties"]), s.parameters.get("required", []))
        for s in configured(work).plugin.get_tool_schemas()
    }
    assert shapes == {
        "selectReferences": (["ids", "filter_tags"], []),
        "listReferences": (["filter_tags"], []),
        "readReference": (["id", "path", "offset"], ["id"]),
    }
