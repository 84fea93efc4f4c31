"""`jaato runs follow`: what a run says and does, as it is stored by whichever process it is in."""

from __future__ import annotations

from pathlib import Path

import click

from shared.cli.outcomes import exit_code
from shared.cli.runs.id_argument import id_argument
from shared.cli.runs.naming import find_run
from shared.cli.runs.place import required_store, store_option
from shared.cli.runs.screen import open_console, print_json
from shared.cli.runs.show import result_lines
from shared.cli.runs.transcript import Transcript, as_dict
from shared.store import Reader
from shared.store.reader import follow as messages_of
from shared.store.records import AgentRecord, RunRecord

EXIT_LEFT = 130


@click.command(epilog="Exit code: that of the run, as for `jaato run`; 130 if you left it with Ctrl+C.")
@id_argument
@click.option("--full", is_flag=True, help="Cut nothing short.")
@click.option("--json", "as_json", is_flag=True, help="A line of JSON per message, the result at last.")
@store_option
def follow(name: str, full: bool, as_json: bool, store: Path | None) -> None:
    """Watch a run until it ends; Ctrl+C leaves it running."""
    with Reader(required_store(store)) as reader:
        agent, run = find_run(reader, name)
        if run.status == "queued":
            click.echo(f"{agent.agent_id} is queued: it begins when there is a slot", err=True)
        try:
            ended = _watch(reader, agent, run, full=full, as_json=as_json)
        except KeyboardInterrupt:
            click.echo(f"\nleft; {agent.agent_id} goes on", err=True)
            raise click.exceptions.Exit(EXIT_LEFT) from None
    raise click.exceptions.Exit(exit_code([ended.status]))


def _watch(reader: Reader, agent: AgentRecord, run: RunRecord, *, full: bool, as_json: bool) -> RunRecord:
    """Print what this run says, then how it ended."""
    console, transcript = open_console(), Transcript(full=full)
    said: str | None = None
    for stored in messages_of(reader, agent):
        if stored.at < run.created_at:
            continue  # said in an earlier run
        said = stored.message.text
        if as_json:
            print_json(as_dict(stored), indent=None)
        else:
            for line in transcript.lines(stored):
                console.print(line, soft_wrap=True)
    ended = reader.newest_runs([agent.key])[agent.key]
    if as_json:
        print_json({"agent_id": agent.agent_id, "status": ended.status, "result": ended.result}, indent=None)
    else:
        for line in result_lines(ended, transcript, said=said):
            console.print(line, soft_wrap=True)
    return ended
