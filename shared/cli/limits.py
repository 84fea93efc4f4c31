"""Limits that are typed: tokens, money, turns and time for what a command starts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from shared.budget import Limits

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True)
class RunLimits:
    """None is no limit."""

    max_tokens: int | None = None
    max_cost: float | None = None
    max_turns: int | None = None
    timeout: float | None = None

    @property
    def budget(self) -> Limits | None:
        """What may be spent, for all agents together."""
        given = {"total_tokens": self.max_tokens, "cost_usd": self.max_cost}
        asked = {key: value for key, value in given.items() if value is not None}
        return Limits.of(asked) if asked else None

    def inline(self) -> dict[str, Any]:
        """The limits of one subagent, as a spawn takes them."""
        given = {"max_turns": self.max_turns, "timeout_seconds": self.timeout}
        return {key: value for key, value in given.items() if value is not None}


def limit_options(command: Command) -> Command:
    """Add the options that `RunLimits` is made of."""
    options = (
        click.option("--max-tokens", type=click.IntRange(min=1), help="Stop at so many tokens, all agents together."),
        click.option("--max-cost", type=click.FloatRange(min=0), help="Stop at so many dollars, all agents together."),
        click.option("--max-turns", type=click.IntRange(min=1), help="Model calls of one agent."),
        click.option("--timeout", type=click.FloatRange(min=0, min_open=True), help="Seconds for one agent."),
    )
    for option in reversed(options):
        command = option(command)
    return command
