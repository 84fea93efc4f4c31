"""Names, schemas and results: the pure parts of the plugin `mcp`."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.types import BlobResourceContents, CallToolResult, EmbeddedResource, ImageContent, TextContent

from shared.errors import ConfigError
from shared.plugins.mcp.input_schema import usable_schema
from shared.plugins.mcp.json_lines import line_of
from shared.plugins.mcp.names import server_prefixes, tool_names
from shared.plugins.mcp.results import tool_output

LEGAL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")


def test_plain_names_stay_as_they_are() -> None:
    assert server_prefixes(["git", "my-db"]) == {"git": "git", "my-db": "my-db"}
    assert tool_names("git", ["log", "blame_line"]) == {"log": "git__log", "blame_line": "git__blame_line"}


def test_the_same_names_come_out_whatever_the_order() -> None:
    names = ["a.b", "a/b", "a_b", "x" * 70, "x" * 71]
    assert tool_names("s", names) == {key: tool_names("s", names[::-1])[key] for key in names}
    assert tool_names("s", names)["a_b"] == "s__a_b"  # who wrote a legal name keeps it


@given(st.lists(st.text(max_size=80), unique=True, max_size=6), st.lists(st.text(max_size=90), unique=True, max_size=6))
def test_every_pair_gets_a_legal_name_of_its_own(servers: list[str], tools: list[str]) -> None:
    names = [name for prefix in server_prefixes(servers).values() for name in tool_names(prefix, tools).values()]
    assert len(set(names)) == len(servers) * len(tools)
    assert all(LEGAL.fullmatch(name) for name in names)


def test_separators_inside_names_do_not_make_two_pairs_one() -> None:
    prefixes = server_prefixes(["a", "a__b", "a_"])
    names = [tool_names(prefixes[server], [tool])[tool] for server, tool in [("a", "b__c"), ("a__b", "c"), ("a_", "b")]]
    assert len({*names, tool_names(prefixes["a"], ["_b"])["_b"]}) == 4


def test_schemas_of_older_drafts_are_rewritten() -> None:
    old = {"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"p": {"items": [{}, {}]}}}
    assert usable_schema(old) == {"type": "object", "properties": {"p": {"prefixItems": [{}, {}]}}}
    assert old["properties"] == {"p": {"items": [{}, {}]}}  # the server's own is left alone


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"$ref": "file:///etc/passwd"}}},
        {"allOf": [{"$ref": "https://example.org/x"}]},
        {"type": "array"},
        {"properties": []},
    ],
)
def test_unusable_schemas_are_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="its input schema"):
        usable_schema(schema)


def text(*lines: str) -> list[Any]:
    return [TextContent(type="text", text=line) for line in lines]


SAME = [
    (text("3"), {"result": 3}, "3"),
    (text("hi"), {"result": "hi"}, "hi"),
    (text("a", "b"), {"result": ["a", "b"]}, "a\nb"),
    (text('{"x": 1}'), {"x": 1}, '{"x": 1}'),
    (text("summary"), {"x": 1}, {"text": "summary", "structured_content": {"x": 1}}),
    ([], {"x": 1}, {"x": 1}),
    ([], None, "[no output]"),
]


@pytest.mark.parametrize(("content", "data", "expected"), SAME)
def test_the_model_reads_everything_once(content: list[Any], data: Any, expected: Any) -> None:
    assert tool_output(CallToolResult(content=content, structured_content=data)).result == expected


def test_files_become_attachments_and_broken_ones_a_note() -> None:
    blob = BlobResourceContents(uri="file:///a.bin", blob="AAE=", mime_type=None)
    broken = ImageContent(type="image", data="***", mime_type="image/png")
    output = tool_output(CallToolResult(content=[EmbeddedResource(type="resource", resource=blob), broken]))
    assert output.attachments[0].data == b"\x00\x01"
    assert output.attachments[0].mime_type == "application/octet-stream"
    assert "not valid base64" in output.result


def test_lines_of_fields() -> None:
    source = '{"a": [{"b": 1}, "b"],\n "c,{": {"\\"q": [1,\n2], "b":\n3}}'
    assert line_of(source, ["a"]) == 1
    assert line_of(source, ["c,{", "b"]) == 3
    assert line_of(source, ["c,{", '"q', "deeper"]) == 2  # the nearest field above
    assert line_of(source, ["b"]) is None
