"""plugin.json: three shapes, told apart by content; every defect named, none of them widening."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from shared.definitions.manifest import Manifest, ManifestReading, manifest_schema, read_manifest

TOOL = {"name": "add", "description": "Add.", "command": "python3", "args": ["add.py"]}
AGENT = {"name": "helper", "description": "Helps.", "system_prompt_file": "agents/helper.md"}


def read(given: object, **options: Any) -> ManifestReading:
    text = given if isinstance(given, str) else json.dumps(given, indent=1)
    return read_manifest(text, path="plugin.json", folder="my-folder", **options)


def manifest(given: object, **options: Any) -> Manifest:
    found = read(given, **options).manifest
    assert found is not None
    return found


def errors(given: object) -> list[str]:
    return [str(problem) for problem in read(given).problems if problem.severity == "error"]


def test_shapes_are_told_apart_by_content() -> None:
    assert manifest({"name": "a", "tools": [TOOL]}).dialect == "ally"
    assert manifest({"name": "a", "agents": [AGENT]}).dialect == "ally"
    assert manifest({"id": "a", "config_schema": {}}).dialect == "conduit"
    assert manifest({"name": "a", "agents": ["./agents/x.md"]}).dialect == "claude"
    assert manifest({"name": "a"}, claude=True).dialect == "claude"


def test_an_ally_manifest_gives_tools_agents_and_settings() -> None:
    found = manifest(
        {
            "name": "math",
            "version": "1.2",
            "tools": [{**TOOL, "visible_to": ["helper"], "timeout_seconds": 5, "subtext": "{a}"}],
            "agents": [{**AGENT, "temperature": 0.2, "tools": ["add"]}],
            "config": {"schema": {"properties": {"key": {"type": "string", "secret": True}}, "required": ["key"]}},
        }
    )
    (tool,), (agent,) = found.tools, found.agents
    assert (tool.command, tool.args, tool.agents, tool.timeout_seconds) == ("python3", ("add.py",), ("helper",), 5)
    assert agent.fields == {"description": "Helps.", "temperature": 0.2, "tools": ("add",)}
    assert found.settings["key"].required


def test_the_id_of_a_conduit_manifest_is_its_name_and_the_folder_the_last_resort() -> None:
    assert manifest({"id": "my-plugin", "name": "My Plugin"}).name == "my-plugin"
    found = read({"description": "x"})
    assert found.manifest is not None
    assert found.manifest.name == "my-folder"
    assert [problem.code for problem in found.problems] == ["name-missing"]


@pytest.mark.parametrize("name", ["../up", "a/b", "", ".", "..", "a\nb", 7, None, "x" * 65, "-a"])
def test_a_name_that_could_be_a_path_or_hide_something_is_refused(name: object) -> None:
    found = read({"name": name})
    assert found.manifest is None
    assert "name-unsafe" in {problem.code for problem in found.problems}


@pytest.mark.parametrize(
    ("text", "line", "code"),
    [
        ("", 1, "json-unreadable"),
        ('{\n"name": "a",\n}', 3, "json-unreadable"),
        ("[1]", 1, "not-an-object"),
        ('{"name": "a",\n"name": "b"}', 2, "duplicate-key"),
        ("[" * 2000, None, "too-complex"),
    ],
)
def test_text_that_is_no_manifest_is_refused_with_its_line(text: str, line: int | None, code: str) -> None:
    found = read(text)
    assert found.manifest is None
    assert found.problems[0].code in (code, "json-unreadable")
    if line is not None:
        assert found.problems[0].line == line


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"parameters": {"type": "object"}}, "did you mean 'schema'"),
        ({"required_agnet": "helper"}, "did you mean 'required_agent'"),
        ({"requiredAgent": "helper"}, "did you mean 'required_agent'"),
        ({"required_agent": None}, "'required_agent' must be text"),
        ({"required_agent": ["helper"]}, "'required_agent' must be text"),
        ({"visible_to": "helper"}, "'visible_to' must be a list"),
        ({"visible_to": None}, "'visible_to' must be a list"),
        ({"schema": {"type": "array"}}, "JSON Schema of type object"),
        ({"schema": {"type": "object", "properties": {"a": {"type": "nope"}}}}, "not a valid JSON Schema"),
        ({"timeout_seconds": -1}, "timeout_seconds"),
        ({"timeout_seconds": True}, "timeout_seconds"),
        ({"args": "add.py"}, "'args' must be a list"),
        ({"command": ""}, "'command'"),
        ({"auto_approved": "yes"}, "'auto_approved' must be true or false"),
        ({"name": "bad name"}, "'name' must be letters"),
    ],
)
def test_a_tool_with_a_defect_is_left_out_and_the_others_stay(entry: dict[str, Any], said: str) -> None:
    given = {"name": "a", "tools": [{**TOOL, **entry}, {**TOOL, "name": "other"}]}
    assert [tool.name for tool in manifest(given).tools] == ["other"]
    assert any(said in text for text in errors(given)), errors(given)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"tools": None}, "'tools' is null"),
        ({"tools": "add"}, "'tools' must be a list"),
        ({"tool": ["add"]}, "did you mean 'tools'"),
        ({"system_prompt_file": "../secret.md"}, "inside the plugin's folder"),
        ({"system_prompt_file": "/etc/passwd"}, "inside the plugin's folder"),
        ({"temperature": "hot"}, "'temperature'"),
        ({"name": "../x"}, "'name'"),
    ],
)
def test_an_agent_with_a_defect_is_left_out_and_the_others_stay(entry: dict[str, Any], said: str) -> None:
    given = {"name": "a", "agents": [{**AGENT, **entry}, {**AGENT, "name": "other"}]}
    assert [agent.name for agent in manifest(given).agents] == ["other"]
    assert any(said in text for text in errors(given)), errors(given)


def test_an_empty_tool_list_is_not_the_same_as_none() -> None:
    agents = manifest({"name": "a", "agents": [{**AGENT, "tools": []}, {**AGENT, "name": "b"}]}).agents
    assert agents[0].fields["tools"] == ()
    assert "tools" not in agents[1].fields


def test_the_second_of_a_name_is_left_out() -> None:
    found = read({"name": "a", "tools": [TOOL, {**TOOL, "command": "rm"}]})
    assert found.manifest is not None
    assert [tool.command for tool in found.manifest.tools] == ["python3"]
    assert "duplicate-name" in {problem.code for problem in found.problems}


def test_what_a_claude_plugin_promises_and_does_not_happen_is_said() -> None:
    found = read({"name": "a", "hooks": "./hooks.json", "mcpServers": {"x": {}}, "skills": "./more"}, claude=True)
    assert found.manifest is not None
    assert found.manifest.skill_paths == ("more",)
    assert {problem.field for problem in found.problems if problem.code == "not-used"} == {"hooks", "mcpServers"}


def test_problems_name_the_line() -> None:
    text = '{\n "name": "a",\n "tools": [\n  {\n   "name": "x",\n   "comand": "y"\n  }\n ]\n}'
    assert read(text).problems[0].line == 6


def test_the_published_schema_takes_what_the_reader_takes() -> None:
    schema = manifest_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    good = {"name": "a", "tools": [{**TOOL, "required_agent": "helper"}], "agents": [{**AGENT, "tools": []}]}
    jsonschema.validate(good, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"name": "a", "tools": [{**TOOL, "required_agnet": "x"}]}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"name": "a", "agents": [{**AGENT, "tools": None}]}, schema)
