"""`jaato config`: which settings are in force, where each comes from, and what is wrong with the files."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import click

from shared.cli.settings_sense import misnamed
from shared.definitions.source import one_line
from shared.settings import Settings, config_paths, load_settings, survey
from shared.settings.hidden import hidden
from shared.settings.keys import KEYS

EXIT_PROBLEMS = 1

_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


_EXAMPLES = """\b
Examples:
  jaato config show --all
  jaato config check"""


@click.group(epilog=_EXAMPLES)
def config() -> None:
    """Show and check the settings of this folder: files, environment and defaults."""


@config.command()
@click.option("--all", "everything", is_flag=True, help="Also the settings that nobody changed.")
@_json_option
def show(everything: bool, as_json: bool) -> None:
    """Print the settings in force and where each comes from. Secrets are never shown."""
    settings = load_settings()
    if as_json:
        _print_json({"settings": _rows(settings), "problems": [problem.as_dict() for problem in settings.problems]})
        return
    rows = [row for row in _rows(settings) if everything or row["origin"]["kind"] != "default"]
    width = max((len(row["name"]) for row in rows), default=0)
    for row in rows:
        value = row["value"] if isinstance(row["value"], str) else json.dumps(row["value"], ensure_ascii=False)
        click.echo(one_line(f"{row['name']:<{width}}  {value}  ({row['from']})"))
    if everything:
        for name in (key for key in KEYS if key not in settings.entries):
            click.echo(f"{name:<{width}}  not set")
    if not rows:
        click.echo("nothing is set: every setting has its default (see them with --all)")
    _tell(settings)


@config.command()
@_json_option
def path(as_json: bool) -> None:
    """Print where settings are looked for, weakest first. Says which of the files exist."""
    found = [
        {"kind": kind, "path": str(each), "exists": os.path.lexists(each)}
        for kind, each in config_paths(Path.cwd()).items()
        if each is not None
    ]
    if as_json:
        _print_json(found)
        return
    for row in found:
        click.echo(one_line(f"{row['kind']:<8} {row['path']}{'' if row['exists'] else '  (not there)'}"))


@config.command()
@_json_option
def check(as_json: bool) -> None:
    """Say everything that is wrong with the settings files. Leaves with 1 if there is an error."""
    from shared.cli.tool_owners import known_plugins, surveyed

    settings = survey()
    problems = [*settings.problems, *misnamed(settings, known_plugins(surveyed()))]
    if as_json:
        _print_json([problem.as_dict() for problem in problems])
    else:
        for problem in problems:
            click.echo(problem.as_line())
        if not problems:
            click.echo(f"{len(settings.files)} file{'' if len(settings.files) == 1 else 's'}, nothing wrong")
    if any(problem.severity == "error" for problem in problems):
        raise click.exceptions.Exit(EXIT_PROBLEMS)


def _rows(settings: Settings) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "value": hidden(name, each.value),
            "from": str(each.origin),
            "origin": {"kind": each.origin.kind, "path": each.origin.path, "line": each.origin.line},
        }
        for name, each in settings.rows()
    ]


def _tell(settings: Settings) -> None:
    for problem in settings.problems:
        click.echo(problem.as_line(), err=True)


def _print_json(value: Any) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))
