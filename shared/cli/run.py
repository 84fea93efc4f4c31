"""`jaato run`: headless work; answers on stdout, progress on stderr, the status as exit code."""

from __future__ import annotations

import json
import sys
import threading
import time
from dataclasses import replace
from typing import Any

import click

from shared.budget import Budget
from shared.cli.answer_text import AnswerText, shown
from shared.cli.background import Background
from shared.cli.chat.setup import guide, with_provider
from shared.cli.completing import complete_profile
from shared.cli.delegating import delegate
from shared.cli.host import HostOptions, host_options, open_client, open_usual
from shared.cli.limits import RunLimits, limit_options
from shared.cli.outcomes import exit_code
from shared.cli.view import TurnView
from shared.client import JaatoClient
from shared.definitions.catalogue import ProfileCatalogue
from shared.errors import BudgetExceeded, ConfigError, JaatoError, ProviderError
from shared.registry import PluginRegistry
from shared.session import JaatoSession
from shared.settings import load_settings
from shared.subagents.result import SubagentResult
from shared.turn import Outcome

_CODES = "Exit code: 0 completed, 1 failed, 2 typed wrongly, 3 partial, 4 denied, 124 out of time, 130 stopped."
_EXAMPLES = """\b
Examples:
  jaato run 'What does this project do?'
  jaato run -p file_edit --permissions deny 'Read only: what does this project do?'
  jaato run --profile code-reviewer 'Review the last commit'
  jaato run --background 4 --profile summarizer 'first text' 'second text'"""


#: What is said of an end that is not whole and has no error of its own.
_WHY = {
    "partial": "the answer was cut off: {reason}",
    "denied": "what the model wanted to do was not allowed; --permissions says what is",
    "timed_out": "the time was up before the answer was whole",
    "cancelled": "stopped before the answer was whole",
}


@click.command(epilog=f"{_CODES}\n\n{_EXAMPLES}")
@click.argument("tasks", nargs=-1, required=True, metavar="TASK...")
@click.option(
    "--profile",
    "-P",
    help="Let a subagent of this profile do it; see `jaato profiles`.",
    shell_complete=complete_profile,
)
@click.option("--background", "-b", type=click.IntRange(min=1), help="Several tasks at once, so many at a time.")
@host_options
@limit_options
@click.option("--json", "as_json", is_flag=True, help="Print the whole result as JSON; for several tasks a list.")
@click.option("--quiet", "-q", is_flag=True, help="No progress on stderr.")
def run(
    tasks: tuple[str, ...],
    profile: str | None,
    background: int | None,
    max_tokens: int | None,
    max_cost: float | None,
    max_turns: int | None,
    timeout: float | None,
    as_json: bool,
    quiet: bool,
    **given: Any,
) -> None:
    """Give a model one task, or subagents several, and print the answers."""
    if len(tasks) > 1 and background is None:
        raise click.UsageError(
            f"{len(tasks)} tasks: say how many may run at once with --background N, or quote the task"
        )
    limits = RunLimits(max_tokens, max_cost, max_turns, timeout)
    options = _settled(profile, HostOptions.of(**given))
    registry, problems = open_usual(options, load_settings())
    if not quiet:
        for problem in problems:
            click.echo(f"jaato: {shown(problem)}", err=True)
    delegates = profile is not None or background is not None
    if delegates:
        _expose_subagents(registry, options, len(tasks), background or 1)
    with open_client(options, registry, max_turns=max_turns) as client:
        view = TurnView(sys.stderr, quiet=quiet)
        client.set_ui_hooks(view)
        client.set_retry_callback(view.on_retry)
        if limits.budget is not None:
            client.get_session().set_budget(Budget(limits.budget, name="this command"))
        if delegates:
            code = _delegated(client, tasks, profile, limits, as_json=as_json)
        else:
            code = _answered(client, tasks[0], limits, as_json=as_json, quiet=quiet)
    raise click.exceptions.Exit(code)


def _settled(profile: str | None, options: HostOptions) -> HostOptions:
    """Provider and model: what was typed or is written somewhere, else the profile's, else the first with a key."""
    settings = load_settings()
    if profile is not None and not options.model and not settings.model:
        found = ProfileCatalogue().find(profile)  # the main session has nothing to do, but it needs a model
        if found is not None and found.model is not None:
            options = replace(options, model=found.model, provider=options.provider or found.provider)
    usable = with_provider(options, settings)
    if usable is None and options.provider is None:
        raise ConfigError(guide(options, settings))
    return usable or options  # a provider without its key says itself what to set


def _expose_subagents(registry: PluginRegistry, options: HostOptions, count: int, at_once: int) -> None:
    """The plugin, with room for all tasks; what was typed for it beats what is said here."""
    room = {"max_concurrent": at_once, "max_children": max(16, count), "max_total_spawns": max(200, count)}
    registry.expose_tool("subagent", {**room, **options.settings.get("subagent", {})})


def _delegated(
    client: JaatoClient, tasks: tuple[str, ...], profile: str | None, limits: RunLimits, *, as_json: bool
) -> int:
    """Subagents at work; an answer is printed when it is there, under the name of its task if there are several."""
    results: dict[int, SubagentResult] = {}
    for place, result in delegate(client, tasks, profile=profile, limits=limits):
        results[place] = result
        if not as_json:
            if len(tasks) > 1:
                click.echo(f"## {place + 1}. {shown(tasks[place])} ({result.status.value})")
            if result.response or not result.error:
                click.echo(shown(result.response))
            if result.error:
                click.echo(f"jaato: {shown(result.error)}", err=True)
    if as_json:
        rows = [{"task": task, **results[place].as_dict()} for place, task in enumerate(tasks)]
        click.echo(json.dumps(rows if len(rows) > 1 else rows[0], ensure_ascii=False))
    return exit_code(result.status.value for result in results.values())


def _answered(client: JaatoClient, task: str, limits: RunLimits, *, as_json: bool, quiet: bool) -> int:
    """The main session at work, its answer as it comes; then what its subagents in the background have found."""
    text = AnswerText(client.get_runtime().bus)
    answer, error, late = "", None, False
    started = time.monotonic()
    with _Deadline(client.get_session(), limits.timeout) as deadline:
        try:
            answer = client.send_message(task, None if as_json else text)
        except (ProviderError, BudgetExceeded) as failure:
            error = failure
    text.finish()
    report = _report(client, answer, error, late=deadline.has_passed)
    if report["status"] == "completed":
        left = None if limits.timeout is None else limits.timeout - (time.monotonic() - started)
        report["background"], late = _background(client, left, quiet=quiet)
        report["usage"] = client.get_runtime().ledger.summarize()
    if late:
        report |= {"success": False, "status": "timed_out"}
    if why := report["error"] or _WHY.get(report["status"], "").format(reason=report["reason"]):
        click.echo(f"jaato: {shown(why)}", err=True)
    if as_json:
        click.echo(json.dumps(report, ensure_ascii=False))
    else:
        for each in report.get("background", ()):
            found = each.get("response") or each.get("error") or ""
            click.echo(shown(f"{each['agent_id']} ({each['status']}): {found}"))
    return exit_code([report["status"], *(each["status"] for each in report.get("background", ()))])


def _background(client: JaatoClient, seconds: float | None, *, quiet: bool) -> tuple[list[dict[str, Any]], bool]:
    """The results that nobody has heard of yet, and whether there was no time for all of them."""
    background = Background(client)
    if not quiet and (names := background.names()):
        click.echo(f"jaato: waiting for {shown(', '.join(names))}", err=True)
    results = background.results(None if seconds is None else max(0.0, seconds))
    return [each for each in results if each.get("complete", True)], bool(background.names())


class _Deadline:
    """Stops what a session does when its time is up."""

    def __init__(self, session: JaatoSession, seconds: float | None) -> None:
        self.has_passed = False
        self._session = session
        self._timer = threading.Timer(seconds, self._pass) if seconds is not None else None

    def __enter__(self) -> _Deadline:
        if self._timer is not None:
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(self, *exc: object) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _pass(self) -> None:
        self.has_passed = True
        self._session.request_stop("time is up")


def _report(client: JaatoClient, answer: str, error: JaatoError | None, *, late: bool) -> dict[str, Any]:
    outcome = client.get_session().last_outcome if error is None else None
    status, reason = _judged(outcome, error, late=late)
    return {
        "success": status == "completed",
        "status": status,
        "reason": reason,
        "response": answer,
        "error": None if error is None else str(error),
        "finish_reason": outcome.finish_reason.value if outcome is not None else None,
        "turns_used": outcome.model_calls if outcome is not None else 0,
        "tool_calls": outcome.tool_calls if outcome is not None else 0,
        "duration_seconds": round(outcome.duration_seconds, 3) if outcome is not None else 0,
        "provider": client.provider_name,
        "model": client.model_name,
        "usage": client.get_runtime().ledger.summarize(),
    }


def _judged(outcome: Outcome | None, error: JaatoError | None, *, late: bool) -> tuple[str, str | None]:
    """Status and reason, in the words that hold for subagents too."""
    if isinstance(error, BudgetExceeded):
        return "partial", "budget"
    if outcome is None:
        return "failed", None
    if outcome.reason == "cancelled":
        return ("timed_out" if late else "cancelled"), None
    if outcome.reason is not None:
        return "partial", outcome.reason
    refused = outcome.denied_calls and outcome.denied_calls + outcome.failed_calls == outcome.tool_calls
    return ("denied" if refused else "completed"), None
