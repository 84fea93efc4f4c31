"""`jaato plugins`: which plugins there are, where they come from, and what is wrong with them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click

from shared.cli.tool_owners import surveyed
from shared.definitions.source import one_line
from shared.errors import JaatoError
from shared.folder_plugins.discovery import Found
from shared.folder_plugins.opened import RefusedFolder
from shared.registry import PluginRegistry

COLUMNS = ("name", "version", "source", "state", "tools", "agents", "problems")
EXIT_PROBLEMS = 1


@click.command(epilog="Example: jaato plugins --load")
@click.option("--load", is_flag=True, help="Start every drop-in plugin, to see whether its code loads.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list instead of a table.")
def plugins(load: bool, as_json: bool) -> None:
    """List plugins: built in, installed, and drop-in folders with what is wrong with them.

    Exit code 1 if a plugin that may be loaded cannot be.
    """
    registry = surveyed()
    folders = {_name(each) for each in registry.folders}
    rows = [_row(registry, name) for name in registry.list_available() if name not in folders]
    rows += [_failed(name, text) for name, text in registry.problems.items() if name not in folders]
    rows += [_folder_row(registry, each, load=load) for each in registry.folders]
    click.echo(json.dumps(rows, ensure_ascii=False, indent=1) if as_json else _table(rows))
    if any(row["state"] == "failed" for row in rows):
        raise click.exceptions.Exit(EXIT_PROBLEMS)


def _name(found: Found) -> str:
    return found.name if isinstance(found, RefusedFolder) else found.manifest.name


def _row(registry: PluginRegistry, name: str) -> dict[str, Any]:
    source = "built-in" if name in registry.core_names() else "entry point"
    try:
        plugin = registry.get_plugin(name)
        tools = [schema.name for schema in plugin.get_tool_schemas()] if plugin is not None else []
    except Exception as error:  # foreign code that may not even be set up: the list is shown all the same
        return _failed(name, str(error), source=source)
    return _made(name, "", source, "ok", tools=tools)


def _failed(name: str, text: str, *, source: str = "entry point") -> dict[str, Any]:
    return _made(name, "", source, "failed", problems=[one_line(text)])


def _folder_row(registry: PluginRegistry, found: Found, *, load: bool) -> dict[str, Any]:
    where = f"{found.folder.scope} {found.folder.path}"
    problems = [str(problem) for problem in found.problems]
    if isinstance(found, RefusedFolder):
        state = "untrusted" if found.untrusted else "failed"
        said = [] if found.reason in problems else [one_line(found.reason)]
        return _made(found.name, found.version, where, state, problems=[*said, *problems])
    name, version, state = found.manifest.name, found.manifest.version, "ok"
    tools = [tool.name for tool in found.manifest.tools]
    if load:
        try:
            registry.expose_tool(name)
            tools = [tool.name for tool in registry.tools([name])]
        except JaatoError as error:
            state, problems = "failed", [one_line(str(error)), *problems]
    agents = [agent.name for agent in found.agents]
    if state == "ok" and any(problem.severity == "error" for problem in found.problems):
        state = "partly"
    return _made(name, version, where, state, tools=tools, agents=agents, problems=problems)


def _made(
    name: str,
    version: str,
    source: str,
    state: str,
    *,
    tools: Sequence[str] = (),
    agents: Sequence[str] = (),
    problems: Sequence[str] = (),
) -> dict[str, Any]:
    values = (name, version, source, state, list(tools), list(agents), list(problems))
    return dict(zip(COLUMNS, values, strict=True))


def _table(rows: Sequence[dict[str, Any]]) -> str:
    """Short columns side by side; problems, which are sentences, beneath their plugin."""
    shown = [[one_line(_cell(column, row[column])) for column in COLUMNS] for row in rows]
    widths = [max(len(line[index]) for line in [list(COLUMNS), *shown]) for index in range(len(COLUMNS))]
    lines = ["  ".join(text.ljust(width) for text, width in zip(COLUMNS, widths, strict=True)).rstrip()]
    for row, cells in zip(rows, shown, strict=True):
        lines.append("  ".join(text.ljust(width) for text, width in zip(cells, widths, strict=True)).rstrip())
        lines += [f"  ! {problem}" for problem in row["problems"]]
    return "\n".join(lines)


def _cell(column: str, value: Any) -> str:
    if isinstance(value, list):
        return str(len(value))
    return _brief(value) if column == "source" else str(value)


def _brief(source: str) -> str:
    """Where a plugin comes from, in a word that stands in a table; `--json` has the whole path."""
    scope = source if source == "entry point" else source.partition(" ")[0]
    return "built-in" if scope == "builtin" else scope
