"""The command: look at everything, print what was found, leave with 1 if something will not work."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click

from shared.cli.doctor.files import (
    guarded,
    look_at_permissions,
    look_at_plugins,
    look_at_profiles,
    look_at_settings,
    look_at_skills,
    look_at_trust,
)
from shared.cli.doctor.finding import Finding
from shared.cli.doctor.machine import look_at_python, look_at_servers, look_at_store
from shared.cli.doctor.models import look_at_models
from shared.registry import PluginRegistry
from shared.settings import survey
from shared.trust import TrustStore

EXIT_PROBLEMS = 1
_MARKS = {"ok": ("✓", "green"), "note": ("·", "yellow"), "problem": ("✗", "red")}


_CODES = "Exit code 1 if something will not work; notes are about what is merely not there."


@click.command(epilog=f"{_CODES}\n\nExample: jaato doctor --offline")
@click.option("--offline", is_flag=True, help="Ask no service: only look at what is set.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list instead.")
def doctor(offline: bool, as_json: bool) -> None:
    """Check keys, models, settings, permissions, profiles, skills, plugins, MCP servers and the store."""
    findings: list[Finding] = []
    area = ""
    for finding in _look(Path.cwd().resolve(), online=not offline):
        findings.append(finding)
        if not as_json:
            if finding.area != area:
                area = finding.area
                click.secho(area, bold=True)
            _print(finding)
    problems = sum(finding.state == "problem" for finding in findings)
    if as_json:
        click.echo(json.dumps([finding.as_dict() for finding in findings], ensure_ascii=False, indent=1))
    else:
        click.echo(f"{problems} problem{'s' if problems != 1 else ''}" if problems else "All is well.")
    if problems:
        raise click.exceptions.Exit(EXIT_PROBLEMS)


def _look(workspace: Path, *, online: bool) -> Iterator[Finding]:
    settings = survey(workspace)
    trusted = bool(TrustStore().is_trusted(workspace))
    yield from look_at_python()
    yield from guarded("models", look_at_models(settings, online=online))
    registry = PluginRegistry()
    registry.discover()
    yield from guarded("settings", look_at_settings(settings, registry))
    yield from guarded("trust", look_at_trust(workspace))
    yield from guarded("permissions", look_at_permissions(workspace, settings, trusted=trusted))
    yield from guarded("profiles", look_at_profiles(workspace, settings, trusted=trusted))
    yield from guarded("skills", look_at_skills(workspace))
    yield from guarded("plugins", look_at_plugins(registry))
    yield from guarded("mcp servers", look_at_servers(registry))
    yield from guarded("store", look_at_store(workspace, settings))


def _print(finding: Finding) -> None:
    mark, colour = _MARKS[finding.state]
    click.echo(f"  {click.style(mark, fg=colour)} {finding.text}")
    if finding.fix:
        click.echo(f"      {click.style(finding.fix, dim=True)}")
