"""The command: the list of runs, and the names of what can be done with them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import click

from shared.cli.main import LazyGroup
from shared.cli.runs.counts import counted
from shared.cli.runs.place import known_store, store_option
from shared.cli.runs.statuses import meant, status_option

CONVERSATIONS = 10  # that are shown unless all are asked for
_EXAMPLES = """\b
Examples:
  jaato runs --status live
  jaato runs show 9c4b9abb
  jaato runs continue 9c4b9abb 'Go on, but leave the tests out'"""


class RunsGroup(LazyGroup):
    """Subcommands that are imported when they are used."""

    COMMANDS: ClassVar[dict[str, tuple[str, str, str]]] = {
        "show": ("shared.cli.runs.show", "show", "Task, transcript, result and costs of one run."),
        "follow": ("shared.cli.runs.following", "follow", "Watch a run until it ends; Ctrl+C leaves it running."),
        "cancel": ("shared.cli.runs.cancelling", "cancel", "Stop a run and all below it, in whatever process it is."),
        "continue": ("shared.cli.runs.continuing", "continue_", "Go on with a run whose process is gone."),
        "prune": ("shared.cli.runs.pruning", "prune", "Remove what is old; nothing that still runs."),
    }


@click.group(cls=RunsGroup, invoke_without_command=True, epilog=_EXAMPLES)
@click.option("--all", "everything", is_flag=True, help=f"All conversations, not only the {CONVERSATIONS} newest.")
@status_option
@click.option("--conversation", "-C", help="Only this conversation, by its id.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list instead.")
@store_option
@click.pass_context
def runs(
    ctx: click.Context, /, store: Path | None, statuses: tuple[str, ...], conversation: str | None, **flags: Any
) -> None:
    """List the runs of this folder as a tree, or look at one, stop it, go on with it."""
    if ctx.invoked_subcommand is not None:
        if statuses or conversation or any(flags.values()):
            raise click.UsageError(
                f"options of `{ctx.invoked_subcommand}` come after its name; only --store may come before"
            )
        return
    path, why_not = known_store(store)
    if path is None:
        click.echo(why_not, err=flags["as_json"])
        if flags["as_json"]:
            click.echo("[]")
        return
    _list(path, statuses, conversation, **flags)


def _list(path: Path, statuses: Sequence[str], conversation: str | None, *, everything: bool, as_json: bool) -> None:
    from shared.cli.runs.rows import read_group
    from shared.cli.runs.screen import open_console, print_json
    from shared.cli.runs.table import print_groups
    from shared.errors import ConfigError, unknown_name
    from shared.store import Reader

    wanted = meant(statuses)
    with Reader(path) as reader:
        known = reader.conversations()
        chosen = [each for each in known if conversation in (None, each.id)]
        if conversation is not None and not chosen:
            raise ConfigError(unknown_name("conversation", conversation, [each.id for each in known[:CONVERSATIONS]]))
        narrow = not everything and not wanted
        shown = [each for place, each in enumerate(chosen) if not narrow or place < CONVERSATIONS or each.is_live]
        groups = [read_group(reader, each, lambda row: not wanted or row.status in wanted) for each in shown]
    if wanted:
        groups = [group for group in groups if group.rows]
    groups.sort(key=lambda group: group.updated_at, reverse=True)
    if as_json:
        print_json([row.as_dict() for group in groups for row in group.rows])
        return
    if not groups:
        click.echo(f"no run is {' or '.join(statuses)}" if wanted else "no runs are stored")
        return
    print_groups(open_console(), groups, time.time())
    if left := len(chosen) - len(shown):
        click.echo(f"… and {counted(left, 'older conversation')}: --all shows everything")
