"""Statuses as they are typed: those that a run can have, and `live` for one that has not ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from shared.subagents.result import Status

Command = TypeVar("Command", bound=Callable[..., Any])

LIVE = (Status.QUEUED.value, Status.RUNNING.value)
KNOWN = ("live", *(status.value for status in Status if status is not Status.WAITING))


def status_option(command: Command) -> Command:
    """Add --status, which can be repeated, to a command."""
    text = f"Only these (repeat for more): {', '.join(KNOWN)}."
    option = click.option(
        "--status", "-s", "statuses", multiple=True, type=click.Choice(KNOWN), metavar="STATUS", help=text
    )
    return option(command)


def meant(typed: Sequence[str]) -> frozenset[str]:
    """The statuses of runs that are meant; none means all."""
    return frozenset(each for status in typed for each in (LIVE if status == "live" else (status,)))
