"""`jaato skills`: list, show and validate skills."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from shared.definitions.source import Problem, one_line
from shared.skills import SkillConfig, SkillInfo, SkillManager, ValidationResult
from shared.skills.config import PROJECT_DIRS
from shared.skills.requirements import missing
from shared.skills.validation import validate_all

EXIT_PROBLEMS = 1


@click.group()
def skills() -> None:
    """List, show and check skills."""


@skills.command("list")
@click.option("--dir", "extra", multiple=True, help="Look in this folder too (repeat for more).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_skills(extra: tuple[str, ...], as_json: bool) -> None:
    """List the skills of this project and this user; those that cannot be used say why."""
    manager = SkillManager(SkillConfig(custom_paths=extra))
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
        click.echo(f"{problem.severity}: {problem}", err=True)


@skills.command()
@click.argument("name")
@click.option("--dir", "extra", multiple=True, help="Look in this folder too (repeat for more).")
@click.option("--arguments", default="", help="Fill these into the text.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(name: str, extra: tuple[str, ...], arguments: str, as_json: bool) -> None:
    """Show one skill as a model would read it, and what is known of it."""
    manager = SkillManager(SkillConfig(custom_paths=extra))
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
    """Check a skill, or every skill below a folder; without PATH, those of this project.

    Leaves with code 1 if there are errors, with --strict also for warnings.
    """
    places = [path] if path is not None else [each for each in PROJECT_DIRS if Path(each).is_dir()]
    reports = [report for place in places for report in validate_all(place, strict=strict)]
    reports = _with_duplicates(reports)
    problems = [problem for report in reports for problem in report.problems]
    if as_json:
        click.echo(json.dumps([_report(report) for report in reports], indent=2))
    else:
        for problem in problems:
            click.echo(f"{problem}  [{problem.severity}]")
        errors = sum(problem.severity == "error" for problem in problems)
        click.echo(f"{len(reports)} skills, {errors} errors, {len(problems) - errors} warnings", err=True)
    counted = {"error", "warning"} if strict else {"error"}
    if any(problem.severity in counted for problem in problems):
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
