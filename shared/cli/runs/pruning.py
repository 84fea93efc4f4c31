"""`jaato runs prune`: what is old leaves the store, after a look at what that is."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from shared.cli.runs.ages import Span
from shared.cli.runs.counts import counted
from shared.cli.runs.place import known_store, store_option
from shared.cli.runs.statuses import meant, status_option
from shared.errors import ConfigError
from shared.store.sweep import Swept
from shared.store.sweep import prune as sweep


@click.command()
@click.option("--older-than", type=Span(), default="30d", show_default=True, help="Such as 12h, 30d or 0.")
@status_option
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@store_option
def prune(older_than: float, statuses: tuple[str, ...], dry_run: bool, yes: bool, store: Path | None) -> None:
    """Remove runs that ended long ago, and conversations that nobody leads any more; nothing that still runs."""
    path, why_not = known_store(store)
    if path is None:
        click.echo(why_not)
        return
    wanted = meant(statuses) or None
    found = sweep(path, older_than_seconds=older_than, statuses=wanted, dry_run=True)
    if not found.agents and not found.conversations:
        click.echo("nothing to remove")
        return
    if dry_run:
        click.echo(f"would remove {_counted(found)}")
        return
    if not yes:
        _require_consent(found)
    done = sweep(path, older_than_seconds=older_than, statuses=wanted)
    click.echo(f"removed {_counted(done)}, freed {_size(done.bytes_freed)}")


def _require_consent(found: Swept) -> None:
    if not sys.stdin.isatty():
        raise ConfigError(f"this would remove {_counted(found)}: say --yes to do it, or --dry-run to look only")
    click.confirm(f"Remove {_counted(found)} for good?", abort=True)


def _counted(found: Swept) -> str:
    agents = counted(found.agents, "agent")
    whole = f", with them {counted(found.conversations, 'whole conversation')}" if found.conversations else ""
    return f"{agents}{whole}"


def _size(count: int) -> str:
    for unit, size in (("MB", 1_000_000), ("kB", 1_000)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"
