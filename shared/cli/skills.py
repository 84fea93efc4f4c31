"""`jaato skills`: list, show and validate skills."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from shared.cli.completing import complete_skill
from shared.cli.runs.counts import counted
from shared.definitions.source import Problem, one_line
from shared.settings import load_settings
from shared.skills import SkillConfig, SkillInfo, SkillManager, ValidationResult
from shared.skills.config import PROJECT_DIRS
from shared.skills.requirements import missing
from shared.skills.validation import validate_all
from shared.trust import TrustStore

EXIT_PROBLEMS = 1


_EXAMPLES = """\b
Examples:
  jaato skills show release-notes --arguments '2.0 short'
  jaato skills validate .jaato/skills/release-notes --strict"""


@click.group(epilog=_EXAMPLES)
def skills() -> None:
    """List, show and check skills."""


@skills.command("list")
@click.option("--dir", "extra", multiple=True, help="Look in this folder too (repeat for more).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_skills(extra: tuple[str, ...], as_json: bool) -> None:
    """List the skills of this project and this user. Those that cannot be used say why."""
    manager = _manager(extra)
    found = manager.list()
    if as_json:
        problems = [problem.as_dict() for problem in manager.problems()]
        click.echo(json.dumps({"skills": [_as_dict(info) for info in found], "problems": problems}, indent=2))
        return
    for info in found:
        click.echo(_line(info))
    if not found:
        click.echo("no skills here")
    for name, folders in manager.shadowed().items():
        for folder in folders:
            click.echo(one_line(f"{folder}: overridden by a stronger skill '{name}'"), err=True)
    for problem in manager.problems():
        click.echo(problem.as_line(), err=True)


@skills.command()
@click.argument("name", shell_complete=complete_skill)
@click.option("--dir", "extra", multiple=True, help="Look in this folder too (repeat for more).")
@click.option("--arguments", default="", help="Fill these into the text.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(name: str, extra: tuple[str, ...], arguments: str, as_json: bool) -> None:
    """Show one skill as a model would read it. What is known of it comes first."""
    manager = _manager(extra)
    info = next((each for each in manager.list() if each.name == name), None)
    # Requirements do not matter for looking at a skill.
    if info is not None and missing(info.requires) is not None:
        skill = manager.get(name)
        text = skill.body if skill is not None else ""
    else:
        skill, text = manager.render(name, arguments)
    assert skill is not None
    if as_json:
        click.echo(json.dumps({**_as_dict(skill.info), "files": list(skill.files), "body": text}, indent=2))
        return
    click.echo(_line(skill.info))
    for label, value in _as_dict(skill.info).items():
        if value not in (None, [], {}, False) and label not in ("name", "description"):
            click.echo(f"  {label}: {value}")
    for file in skill.files:
        click.echo(f"  file: {file}")
    click.echo(f"\n{text}")


@skills.command()
@click.argument("path", required=False)
@click.option("--strict", is_flag=True, help="Hold skills to the specification to the letter; warnings count too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def validate(path: str | None, strict: bool, as_json: bool) -> None:
    """Check a skill, or every skill below a folder.

    Without PATH, those of this project. Leaves with code 1 if there are errors, with --strict also for warnings.
    """
    places = [path] if path is not None else [each for each in PROJECT_DIRS if Path(each).is_dir()]
    reports = [report for place in places for report in validate_all(place, strict=strict)]
    reports = _with_duplicates(reports)
    problems = [problem for report in reports for problem in report.problems]
    if as_json:
        click.echo(json.dumps([_report(report) for report in reports], indent=2))
    else:
        for problem in problems:
            click.echo(problem.as_line())
        errors = sum(problem.severity == "error" for problem in problems)
        counts = (len(reports), "skill"), (errors, "error"), (len(problems) - errors, "warning")
        click.echo(", ".join(counted(*each) for each in counts), err=True)
    wrong = {"error", "warning"} if strict else {"error"}
    if any(problem.severity in wrong for problem in problems):
        raise click.exceptions.Exit(EXIT_PROBLEMS)


def _with_duplicates(reports: Sequence[ValidationResult]) -> list[ValidationResult]:
    """Say of skills in one folder that have one name that neither can be used."""
    seen: dict[tuple[Path, str], list[str]] = {}
    for report in reports:
        if report.info is not None:
            seen.setdefault((Path(report.path).parent.parent, report.info.name), []).append(report.path)
    found = []
    for report in reports:
        paths = seen.get((Path(report.path).parent.parent, report.info.name), []) if report.info is not None else []
        if len(paths) > 1:
            text = f"{len(paths)} skills of this folder have the same name; rename all but one"
            more = Problem(report.path, None, "duplicate-name", "name", text)
            report = replace(report, problems=(*report.problems, more))
        found.append(report)
    return found


def _manager(extra: Sequence[str]) -> SkillManager:
    """The skills of this folder; those in folders from the command line come before those of the settings."""
    folders = (*extra, *load_settings().skill_dirs)
    return SkillManager(SkillConfig(custom_paths=folders, trust_workspace=bool(TrustStore().is_trusted(Path.cwd()))))


def _line(info: SkillInfo) -> str:
    reason = missing(info.requires)
    state = f"unavailable: {reason}" if reason else str(info.trust_level)
    return one_line(f"{info.name} ({info.scope}, {state}): {' '.join(info.description.split())[:200]}")


def _as_dict(info: SkillInfo) -> dict[str, Any]:
    return {
        "name": info.name,
        "description": info.description,
        "folder": info.folder,
        "scope": str(info.scope),
        "trust": str(info.trust_level),
        "unavailable": missing(info.requires),
        "allowed_tools": None if info.allowed_tools is None else list(info.allowed_tools),
        "disallowed_tools": list(info.disallowed_tools),
        "model": info.model,
        "context": info.context,
        "agent": info.agent or info.affinity,
        "disable_model_invocation": info.disable_model_invocation,
        "user_invocable": info.user_invocable,
        "argument_hint": info.argument_hint,
    }


def _report(report: ValidationResult) -> dict[str, Any]:
    name = report.info.name if report.info is not None else None
    problems = [problem.as_dict() for problem in report.problems]
    return {"path": report.path, "name": name, "valid": report.is_valid, "problems": problems}
