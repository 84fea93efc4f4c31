"""`jaato runs cancel`: ask the process that a run is in to stop it, and wait until it has heard."""

from __future__ import annotations

from pathlib import Path

import click

from shared.cli.plain_text import plain
from shared.cli.runs.id_argument import id_argument
from shared.cli.runs.naming import find_run
from shared.cli.runs.place import required_store, store_option
from shared.store import Reader
from shared.store.records import AgentRecord, RunRecord
from shared.store.remote import cancel_run

EXIT_NOTHING = 1
SECONDS = 10.0


@click.command(epilog="Exit code: 0 it was stopped, 1 nothing was running any more, 2 its process does not answer.")
@id_argument
@click.option("--soft", is_flag=True, help="Let it finish its current step and hand over what it has.")
@click.option("--reason", help="What the run, and whoever waits for it, is told.")
@click.option("--timeout", type=click.FloatRange(min=0), default=SECONDS, show_default=True, help="Seconds to wait.")
@store_option
def cancel(name: str, soft: bool, reason: str | None, timeout: float, store: Path | None) -> None:
    """Stop a run and all below it, in whatever process it is."""
    path = required_store(store)
    with Reader(path) as reader:
        agent, run = find_run(reader, name)
        if not run.is_live:
            _nothing_to_stop(agent, run)
        answer = cancel_run(path, agent.agent_id, soft=soft, reason=reason, timeout=timeout)
        now = reader.newest_runs([agent.key]).get(agent.key, run)
    if not now.is_live and now.status != "cancelled":
        _nothing_to_stop(agent, now)
    if now.is_live and soft:
        click.echo(f"{agent.agent_id} will stop: it finishes its step and hands over what it has")
    else:
        click.echo(plain(answer))


def _nothing_to_stop(agent: AgentRecord, run: RunRecord) -> None:
    """Say why nothing was stopped, and leave."""
    if run.status == "interrupted":
        text = f"its process is gone: it was interrupted, and `jaato runs continue {agent.agent_id} …` takes it up"
    else:
        text = f"it has ended already: {run.status}"
    click.echo(f"{agent.agent_id} is not running: {text}", err=True)
    raise click.exceptions.Exit(EXIT_NOTHING)
