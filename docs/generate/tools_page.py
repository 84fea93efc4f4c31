"""docs/tools.md: every tool that a model can call, with real answers of those for delegation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from folding import folded
from sample_answers import RESULT_FIELDS, sample_answers
from schema_tables import parameter_rows, shown

from shared import PluginRegistry
from shared.plugin_loading import plugin_tools
from shared.plugins.subagent import SubagentConfig
from shared.tools import Tool

#: Plugins in the order of the page, the one this package is about first.
PLUGINS = ("subagent", "cli", "file_edit", "references", "skills", "todo", "web_search", "mcp")
DIALECTS = ("sessions", "spawn_agent")
DROP_INS = ("secret_guard", "sqlite-analyst")
BY_PROFILE = "asks, unless a trusted profile has `auto_approved: true`"
HEAD = """# Tools

What models can call, plugin by plugin. This page is made from the code: `python docs/generate`.

A host exposes plugins (`registry.expose_tool(name)`, `-p NAME`); a subagent has those that its [profile](profiles.md)
names. *Asks* means that the [permission policy](permissions.md) decides, which by default puts the call to a person;
*free* tools change nothing outside the conversation and are called without a question, unless the policy denies them.
Arguments are checked against the schema before anything else happens: a wrong or unknown field is answered with its
name and what was expected, and nothing is run. A star marks what is required.
"""
SUBAGENT = """Answers are JSON objects that always have `success`, and about a run always `agent_id` and `status`; a
refusal is `{"success": false, "error": "…"}` and names the known ids, limits or values. Children have the three tools
for shared values too, and the others only where `max_depth` lets them spawn. The answers below are real, of a scripted
model.
"""
RESULTS = """### Results

A run ends exactly once: `completed`, `partial` (with `reason`: `max_turns`, `budget`, `output_limit` or `schema`),
`failed`, `denied`, `cancelled`, `timed_out`, `stalled` or `interrupted`. Its result is stored before anyone is told and
can be read any number of times. Fields that do not apply are left out.

| field | meaning |
|---|---|
"""
MCP = """The tools of the servers in `.mcp.json` (where the workspace is trusted), `~/.jaato/mcp.json` and its settings,
each under `SERVER__TOOL`. All of them ask.
"""
DIALECT_HEAD = """## Other dialects

The engine of `subagent` under the names of other systems; see [the Python page](python-api.md#other-dialects).
"""
DROP_IN_HEAD = """## Drop-in plugins

Folders that come with the package; see [plugins](../plugins/README.md).
"""
ID = ("`agent_id` *", "text", "Id or unique name of the subagent; `subagent_id` and `name` mean the same.")
SAME = {"agent_id", "subagent_id", "name"}


def tools_page() -> str:
    """The whole of docs/tools.md."""
    registry = PluginRegistry()
    registry.discover()
    parts = [HEAD]
    for name in PLUGINS:
        parts += _plugin(registry, name)
    parts.append(DIALECT_HEAD)
    for name in DIALECTS:
        parts += _plugin(registry, name, level=3)
    parts.append(DROP_IN_HEAD)
    for name in DROP_INS:
        registry.expose_tool(name)  # their own Python, and its tools, are loaded then
        parts += _plugin(registry, name, level=3)
    return "\n".join(parts)


def _plugin(registry: PluginRegistry, name: str, *, level: int = 2) -> Iterator[str]:
    plugin = registry.get_plugin(name)
    assert plugin is not None
    yield f"{'#' * level} `{name}`\n"
    if name == "mcp":
        yield MCP
    if settings := _settings(name, plugin):
        yield f"Settings: {settings}.\n"
    if name != "subagent":
        yield from (_tool(tool, level=level + 1) for tool in plugin_tools(plugin))
        return
    yield SUBAGENT
    answers = sample_answers()
    for tool in plugin_tools(plugin):
        yield _tool(tool, level=3, answers=answers[tool.name])
    yield _results()


def _settings(name: str, plugin: Any) -> str:
    if name == "subagent":
        given = SubagentConfig()
        keys: Mapping[str, Any] = {each.name: getattr(given, each.name) for each in fields(given)}
    else:
        keys = getattr(plugin, "config", {})
    return ", ".join(
        f"`{key}`{'' if value in (None, [], {}, '') else f' {shown(value)}'}" for key, value in keys.items()
    )


def _tool(tool: Tool, *, level: int, answers: Mapping[str, Any] | None = None) -> str:
    lines = [f"{'#' * level} `{tool.name}`\n", f"{' '.join(tool.schema.description.split())} *{_approval(tool)}.*\n"]
    lines += _parameters(tool)
    for when, answer in (answers or {}).items():
        lines.append(f"{when}:\n\n```text\n{folded(answer)}\n```\n" if answer else f"{when}.\n")
    return "\n".join(lines)


def _approval(tool: Tool) -> str:
    if tool.required_agent:
        return f"Asks; only the agent `{tool.required_agent}` may call it"
    if tool.auto_approved:
        return "Free"
    return BY_PROFILE.capitalize() if tool.approves else "Asks"


def _parameters(tool: Tool) -> list[str]:
    schema = tool.schema.parameters
    if not schema.get("properties"):
        return ["No parameters.\n"]
    rows = ["| parameter | type | meaning |", "|---|---|---|"]
    properties = dict(schema["properties"])
    if properties.keys() >= SAME:
        properties = {name: given for name, given in properties.items() if name not in SAME}
        rows.append(f"| {' | '.join(ID)} |")
    for name, given in properties.items():
        rows += parameter_rows(name, given, required=name in schema.get("required", ()))
    return ["\n".join(rows) + "\n"]


def _results() -> str:
    return RESULTS + "".join(f"| `{name}` | {meaning} |\n" for name, meaning in RESULT_FIELDS.items())
