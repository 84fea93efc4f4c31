"""The table of tool names, and what becomes of names that only a running host can know."""

from __future__ import annotations

import pytest

from shared.definitions.profile import SubagentProfile
from shared.definitions.profile_fields import Unfit
from shared.definitions.tool_list import tool_entries
from shared.definitions.tool_names import ELSEWHERE, OWNERS, mcp_name, our_names, plugin_of
from shared.definitions.usable_tools import usable_profile
from shared.errors import SubagentConfigError
from shared.plugin_loading import plugin_tools
from shared.registry import PluginRegistry

_OTHERS = {**OWNERS, "query": "sql", "github__search": "mcp", "github__close": "mcp"}


def test_the_table_names_only_tools_that_exist_with_their_plugins() -> None:
    registry = PluginRegistry()
    registry.discover()
    found: dict[str, str] = {}
    for name in set(OWNERS.values()):
        plugin = registry.get_plugin(name)
        assert plugin is not None
        found |= {tool.name: name for tool in plugin_tools(plugin)}
    assert {tool: found.get(tool) for tool in OWNERS} == dict(OWNERS)
    assert {ours for names in ELSEWHERE.values() for ours in names} <= set(OWNERS)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("Read", ("read_file",)),
        ("Grep", ("search_files",)),
        ("Glob", ("list_files",)),
        ("LS", ("list_files",)),
        ("Edit", ("edit_file",)),
        ("MultiEdit", ("edit_file",)),
        ("Write", ("write_file",)),
        ("Bash", ("cli",)),
        ("run_shell_command", ("cli",)),
        ("WebSearch", ("web_search",)),
        ("WebFetch", ()),
        ("NotebookRead", ()),
        ("Quux", None),
        ("readreference", None),
        ("readReference", ("readReference",)),
    ],
)
def test_names(theirs: str, ours: tuple[str, ...] | None) -> None:
    assert our_names(theirs) == ours
    assert all(plugin_of(name) for name in ours or ())


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("mcp__srv__tool", "srv__tool"),
        ("mcp__my_srv__do_it", "my_srv__do_it"),
        ("mcp__srv", "srv__*"),
        ("mcp__srv__*", "srv__*"),
        ("mcp__*", "*__*"),
        ("mcp_srv_tool", None),
        ("mcp__", None),
        ("Read", None),
    ],
)
def test_names_of_servers(theirs: str, ours: str | None) -> None:
    assert mcp_name(theirs) == ours


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("a, b", [("a", None), ("b", None)]),
        ("a b", [("a", None), ("b", None)]),
        ("Bash(git add *) Read", [("Bash", "git add *"), ("Read", None)]),
        ("Bash(a, b), Read", [("Bash", "a, b"), ("Read", None)]),
        ("Bash(npm:*)", [("Bash", "npm:*")]),
        ("a,,b,", [("a", None), ("b", None)]),
        ("Web Search, Read", [(None, None), ("Read", None)]),
        ("", []),
    ],
)
def test_lists_in_a_text(text: str, entries: list[tuple[str | None, str | None]]) -> None:
    assert [(entry.name, entry.pattern) for entry in tool_entries(text)] == entries


def test_a_pattern_that_lost_its_tool_makes_the_list_unreadable() -> None:
    for text in ("Bash,(git log *)", "Bash (git log *)", "Read, )", "Bash(git *, Read", "Bash,git log *)"):
        with pytest.raises(Unfit, match="pattern without its tool"):
            tool_entries(text)


# -- at spawn ------------------------------------------------------------------------------------


def _profile(*tools: str, unmapped: tuple[str, ...] = (), denied: tuple[str, ...] = ()) -> SubagentProfile:
    plugins = {OWNERS[tool]: None for tool in tools}
    return SubagentProfile(
        name="x", plugins=list(plugins), tools=list(tools), unmapped_tools=unmapped, unmapped_denied=denied
    )


def test_a_profile_without_such_names_is_left_as_it_is() -> None:
    profile = _profile("cli")
    assert usable_profile(profile, _OTHERS) is profile


def test_names_that_a_plugin_has_are_given_and_the_rest_is_reported() -> None:
    usable = usable_profile(_profile("cli", unmapped=("query", "github__*", "Quux")), _OTHERS)
    assert usable.tools == ("cli", "query", "github__search", "github__close")
    assert usable.plugins == ("cli", "sql", "mcp")
    assert usable.unmapped_tools == ("Quux",)


def test_all_unmapped_is_refused_by_name() -> None:
    with pytest.raises(SubagentConfigError, match=r"'x': none of its tools .* Quux, WebFetch"):
        usable_profile(_profile(unmapped=("Quux", "WebFetch")), _OTHERS)


@pytest.mark.parametrize("pattern", ["*", "**", "?*", "[a-z]*", "c*", "*_file", "Bash(git *)", "*__*"])
def test_no_pattern_reaches_our_own_tools(pattern: str) -> None:
    usable = usable_profile(_profile("read_file", unmapped=(pattern,)), {**OWNERS, "a__b": "mcp"})
    assert set(usable.tools or ()) <= {"read_file", "a__b"}


def test_a_tool_that_is_denied_must_exist() -> None:
    assert usable_profile(_profile("cli", denied=("query",)), _OTHERS).disallowed_tools == ("query",)
    with pytest.raises(SubagentConfigError, match="denies a tool that does not exist"):
        usable_profile(_profile("cli", denied=("querry",)), _OTHERS)
