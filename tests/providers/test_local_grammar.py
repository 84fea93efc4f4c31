"""Whatever a model writes under the grammar, its calls are valid JSON for one of the tools."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.gbnf import Grammar, left_recursive
from support.tool_schemas import HOSTILE, SCHEMAS

from shared.plugins.file_edit import create_plugin as file_edit
from shared.plugins.subagent import SubagentPlugin
from shared.plugins.todo import create_plugin as todo
from shared.providers.base import ToolSet
from shared.providers.local_grammar import MAX_CALLS, answer_grammar, calls_grammar
from shared.types import ToolSchema


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_sentence_fits_its_schema(name: str) -> None:
    schema = SCHEMAS[name]
    checkable = not name.startswith("reference")
    for seed in range(120):
        value = json.loads(Grammar(answer_grammar({"type": "object", **schema}), seed).sentence())
        assert isinstance(value, dict)
        if checkable:
            jsonschema.validate(value, schema)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_schema_still_makes_calls_with_an_object(name: str) -> None:
    grammar = calls_grammar(ToolSet([ToolSchema("t", "", HOSTILE[name])]), must_call=True)
    grammar.encode()
    assert len(grammar) < 2_000_000
    assert not left_recursive(grammar)
    for seed in range(10):
        said = Grammar(grammar, seed).sentence()
        for written in re.findall(r"<tool_call>(.*?)</tool_call>", said, flags=re.DOTALL):
            assert isinstance(json.loads(written)["arguments"], dict)


def test_calls_are_of_one_of_the_tools_after_any_text() -> None:
    tools = ToolSet([ToolSchema(name.replace(" ", "_"), "", schema) for name, schema in SCHEMAS.items()])
    seen: set[str] = set()
    for seed in range(300):
        said = Grammar(calls_grammar(tools), seed).sentence()
        text, *calls = re.split(r"<tool_call>(.*?)</tool_call>", said, flags=re.DOTALL)
        assert "<tool_call>" not in text
        assert len(calls) <= 2 * MAX_CALLS
        for written in calls[::2]:
            call = json.loads(written)
            seen.add(call["name"])
            if not call["name"].startswith("reference"):
                jsonschema.validate(call["arguments"], SCHEMAS[call["name"].replace("_", " ")])
    assert seen == {schema.name for schema in tools.schemas}


def test_a_call_that_must_come_comes_first() -> None:
    tools = ToolSet([ToolSchema("add", "", SCHEMAS["bounds"])])
    grammar = calls_grammar(tools, must_call=True)
    assert all(Grammar(grammar, seed).sentence().startswith('<tool_call>{"name": "add"') for seed in range(30))


@pytest.mark.parametrize("make", [SubagentPlugin, file_edit, todo], ids=lambda make: make.__module__)
def test_our_own_tools(make: Any) -> None:
    schemas = {schema.name: schema for schema in make().get_tool_schemas()}
    for seed in range(60):
        said = Grammar(calls_grammar(ToolSet([*schemas.values()]), must_call=True), seed).sentence()
        for written in re.findall(r"<tool_call>(.*?)</tool_call>", said, flags=re.DOTALL):
            call = json.loads(written)
            jsonschema.validate(call["arguments"], schemas[call["name"]].parameters)


_simple = st.sampled_from(
    [{"type": kind} for kind in ("string", "integer", "number", "boolean", "null")] + [{"enum": ["a", 1]}, {}]
)
_schema = st.recursive(
    _simple,
    lambda inner: st.one_of(
        st.builds(lambda items, n: {"type": "array", "items": items, "minItems": n}, inner, st.integers(0, 2)),
        st.builds(lambda options: {"anyOf": options}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(
            lambda fields, count: {
                "type": "object",
                "properties": fields,
                "required": list(fields)[:count],
                "additionalProperties": False,
            },
            st.dictionaries(st.text(min_size=1, max_size=6), inner, max_size=4),
            st.integers(0, 4),
        ),
    ),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(_schema, st.integers(0, 1000))
def test_any_schema(schema: dict[str, Any], seed: int) -> None:
    jsonschema.validate(json.loads(Grammar(answer_grammar(schema), seed).sentence()), schema)
