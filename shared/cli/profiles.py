"""`jaato profiles`: which profiles there are, what is wrong with their files, and why one is as it is."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Sequence
from typing import Any

import click

from shared.definitions.agent_folders import AGENT_FOLDERS
from shared.definitions.catalogue import ProfileCatalogue
from shared.definitions.lint import lint as lint_path
from shared.definitions.profile import SubagentProfile
from shared.definitions.source import Problem, one_line
from shared.definitions.tool_reasons import ToolReason, tool_reasons
from shared.errors import ConfigError, unknown_name
from shared.plugin_loading import plugin_tools
from shared.registry import PluginRegistry

log = logging.getLogger(__name__)

EXIT_PROBLEMS = 1

_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_agents_option = click.option(
    "--agents",
    "hosts",
    multiple=True,
    type=click.Choice(list(AGENT_FOLDERS)),
    help="Read the agents of another host as well (repeat for more).",
)


@click.group(invoke_without_command=True)
@click.option("--all", "everything", is_flag=True, help="Also those that lost to another one, with the reason.")
@_json_option
@_agents_option
@click.pass_context
def profiles(ctx: click.Context, everything: bool, as_json: bool, hosts: tuple[str, ...]) -> None:
    """List the profiles of this folder, or check and explain them."""
    if ctx.invoked_subcommand is not None:
        return
    catalogue = ProfileCatalogue(agent_dirs=hosts)
    found, lost, problems = catalogue.list(), catalogue.shadowed, catalogue.problems()
    if as_json:
        report: dict[str, Any] = {"profiles": [_row(profile) for profile in found]}
        if everything:
            report["lost"] = [
                {"name": each.name, "source": str(each.source), "reason": one_line(each.reason)} for each in lost
            ]
        _print_json({**report, "problems": [problem.as_dict() for problem in problems]})
        return
    for profile in found:
        click.echo(_line(profile))
    if everything:
        for each in lost:
            click.echo(f"lost: {each}")
    _summarise(problems)


@profiles.command()
@click.argument("path", default=".")
@click.option("--strict", is_flag=True, help="Warnings count as errors.")
@_json_option
@_agents_option
def lint(path: str, strict: bool, as_json: bool, hosts: tuple[str, ...]) -> None:
    """Say everything that is wrong with definition files; leaves with 1 if there is an error."""
    found = lint_path(path, agent_dirs=hosts)
    if as_json:
        _print_json([problem.as_dict() for problem in found])
    else:
        for problem in found:
            click.echo(f"{_where(problem)}: {problem.severity}: {problem.code}: {one_line(problem.text)}")
        _summarise(found)
    wrong = ("error", "warning") if strict else ("error",)
    if any(problem.severity in wrong for problem in found):
        raise click.exceptions.Exit(EXIT_PROBLEMS)


@profiles.command()
@click.argument("name")
@_json_option
@_agents_option
def explain(name: str, as_json: bool, hosts: tuple[str, ...]) -> None:
    """Tell which source won a name, what lost to it, and why each tool is there or missing."""
    catalogue = ProfileCatalogue(agent_dirs=hosts)
    story = catalogue.explain(name)
    if story.winner is None and not story.losers:
        raise ConfigError(unknown_name("profile", name, [profile.name for profile in catalogue.list()]))
    reasons = tool_reasons(story.winner, _owners()) if story.winner is not None else []
    if as_json:
        _print_json(
            {
                "name": name,
                "winner": story.winner.as_dict() if story.winner is not None else None,
                "lost": [{"source": str(each.source), "reason": one_line(each.reason)} for each in story.losers],
                "tools": [reason.as_dict() for reason in reasons],
                "problems": [problem.as_dict() for problem in story.problems],
            }
        )
    else:
        click.echo(str(story))
        for line in _tools(story.winner, reasons):
            click.echo(line)


def _tools(profile: SubagentProfile | None, reasons: Sequence[ToolReason]) -> Iterable[str]:
    if profile is None:
        return
    if not reasons:
        yield "  no tools: none are asked for"
    for reason in reasons:
        yield one_line(f"  {'+' if reason.given else '-'} {reason.tool}: {reason.reason}")


def _owners() -> dict[str, str]:
    """The plugin of every tool that any installed plugin has."""
    registry = PluginRegistry()
    registry.discover()
    found: dict[str, str] = {}
    for name in registry.list_available():
        plugin = registry.get_plugin(name)
        try:
            tools = plugin_tools(plugin) if plugin is not None else []
        except Exception:  # foreign code, of which nothing was set up
            log.debug("the tools of plugin '%s' are not known", name, exc_info=True)
            tools = []
        found |= {tool.name: name for tool in tools}
    return found


def _row(profile: SubagentProfile) -> dict[str, Any]:
    return {
        **profile.summary(),
        "tools": None if profile.tools is None else list(profile.tools),
        "unmapped_tools": list(profile.unmapped_tools),
        "visibility": profile.visibility,
        "source": str(profile.source),
    }


def _line(profile: SubagentProfile) -> str:
    text = " ".join(profile.description.split())
    short = text if len(text) <= 100 else text[:99] + "…"
    return one_line(f"{profile.name}  [{profile.source.kind}]  {short}")


def _where(problem: Problem) -> str:
    return one_line(problem.path if problem.line is None else f"{problem.path}:{problem.line}")


def _summarise(problems: Sequence[Problem]) -> None:
    counts = [
        f"{amount} {severity}{'s' if amount != 1 else ''}"
        for severity in ("error", "warning")
        if (amount := sum(problem.severity == severity for problem in problems))
    ]
    if counts:
        click.echo(f"{' and '.join(counts)} in definition files", err=True)


def _print_json(value: Any) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))
