"""`jaato profiles`: which profiles there are, what is wrong with their files, and why one is as it is."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from shared.cli.completing import complete_profile
from shared.cli.tool_owners import known_plugins, surveyed, tool_owners
from shared.definitions.agent_folders import AGENT_FOLDERS
from shared.definitions.catalogue import ProfileCatalogue
from shared.definitions.lint import lint as lint_path
from shared.definitions.lint import unknown_plugins
from shared.definitions.profile import SubagentProfile
from shared.definitions.source import Problem, one_line
from shared.definitions.tool_reasons import ToolReason, tool_reasons
from shared.errors import ConfigError, unknown_name
from shared.settings import load_settings
from shared.trust import TrustStore

EXIT_PROBLEMS = 1

_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_agents_option = click.option(
    "--agents",
    "hosts",
    multiple=True,
    type=click.Choice(list(AGENT_FOLDERS)),
    help="Read the agents of another host as well (repeat for more).",
)


_EXAMPLES = """\b
Examples:
  jaato profiles --all
  jaato profiles lint --strict
  jaato profiles explain code-reviewer"""


@click.group(invoke_without_command=True, epilog=_EXAMPLES)
@click.option("--all", "everything", is_flag=True, help="Also those that lost to another one, with the reason.")
@_json_option
@_agents_option
@click.pass_context
def profiles(ctx: click.Context, everything: bool, as_json: bool, hosts: tuple[str, ...]) -> None:
    """List the profiles of this folder, or check and explain them."""
    if ctx.invoked_subcommand is not None:
        return
    catalogue = _catalogue(hosts)
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
    """Say everything that is wrong with definition files.

    PATH is a file, a folder or a project. Leaves with 1 if there is an error.
    """
    registry = surveyed()
    found = lint_path(path, agent_dirs=hosts, plugins=known_plugins(registry), tools=tool_owners(registry))
    if as_json:
        _print_json([problem.as_dict() for problem in found])
    else:
        for problem in found:
            click.echo(problem.as_line())
        if not found:
            click.echo("nothing wrong in definition files", err=True)
        _summarise(found)
    wrong = ("error", "warning") if strict else ("error",)
    if any(problem.severity in wrong for problem in found):
        raise click.exceptions.Exit(EXIT_PROBLEMS)


@profiles.command()
@click.argument("name", shell_complete=complete_profile)
@_json_option
@_agents_option
def explain(name: str, as_json: bool, hosts: tuple[str, ...]) -> None:
    """Tell where a profile and each of its tools come from.

    Which source won the name, what lost to it, and why each tool is there or missing.
    """
    catalogue = _catalogue(hosts)
    story = catalogue.explain(name)
    if story.winner is None and not story.losers:
        raise ConfigError(unknown_name("profile", name, [profile.name for profile in catalogue.list()]))
    registry = surveyed()
    reasons = tool_reasons(story.winner, tool_owners(registry)) if story.winner is not None else []
    missing = list(unknown_plugins(story.winner, known_plugins(registry))) if story.winner is not None else []
    if as_json:
        _print_json(
            {
                "name": name,
                "winner": story.winner.as_dict() if story.winner is not None else None,
                "lost": [{"source": str(each.source), "reason": one_line(each.reason)} for each in story.losers],
                "tools": [reason.as_dict() for reason in reasons],
                "problems": [problem.as_dict() for problem in (*story.problems, *missing)],
            }
        )
    else:
        click.echo(str(story))
        for line in (*_facts(story.winner), *(f"  ! {one_line(each.text)}" for each in missing)):
            click.echo(line)
        for line in _tools(story.winner, reasons):
            click.echo(line)


def _catalogue(hosts: Sequence[str]) -> ProfileCatalogue:
    """The profiles of this folder, looked for as the settings say."""
    settings = load_settings()
    return ProfileCatalogue(
        profiles_dir=settings.get("profiles_dir"),
        extra_dirs=settings.extra_dirs,
        agent_dirs=[*settings.get("agent_dirs"), *hosts],
        auto_discover=settings.get("auto_discover_profiles"),
        trust_workspace=bool(TrustStore().is_trusted(Path.cwd())),
    )


def _facts(profile: SubagentProfile | None) -> Iterable[str]:
    """The model, the limits, and what follows from where it comes from."""
    if profile is None:
        return
    model = profile.model or "the caller's"
    provider = f" of {profile.provider}" if profile.provider else ""
    budget = "".join(f", {key} {value}" for key, value in (profile.as_dict().get("budget") or {}).items())
    yield one_line(f"  model: {model}{provider}; limits: max_turns {profile.max_turns}{budget}")
    if not profile.source.trusted:
        trust = " (look at it with `jaato trust`)" if profile.source.kind == "project" else ""
        yield f"  not trusted: never more than its caller has, never without a question{trust}"


def _tools(profile: SubagentProfile | None, reasons: Sequence[ToolReason]) -> Iterable[str]:
    if profile is None:
        return
    if not reasons:
        yield "  no tools: none are asked for"
    for reason in reasons:
        yield one_line(f"  {'+' if reason.given else '-'} {reason.tool}: {reason.reason}")


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
    line = one_line(f"{profile.name}  [{profile.source.kind}]  {short}")
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else len(line)
    return line if len(line) <= width else line[: width - 1] + "…"


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
