"""The id of a run as an argument, which a shell can complete."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from shared.cli.plain_text import plain_line
from shared.cli.runs.naming import short
from shared.cli.runs.place import known_store
from shared.errors import JaatoError
from shared.store import Reader

Command = TypeVar("Command", bound=Callable[..., Any])


def id_argument(command: Command) -> Command:
    """Add the argument `name`: what `find_agent` understands."""
    return click.argument("name", metavar="ID", shell_complete=_complete)(command)


def _complete(ctx: click.Context, param: click.Parameter, typed: str) -> list[CompletionItem]:
    """The stored runs that begin so, newest first; nothing where there is no store, or one that cannot be read."""
    try:
        with ctx.scope(cleanup=False):
            path, _ = known_store(_given(ctx))
        if path is None:
            return []
        with Reader(path) as reader:
            agents = [agent for agent in reversed(reader.agents()) if not agent.is_main]
    except (JaatoError, OSError):
        return []
    ids = {short(agent.agent_id): agent for agent in agents}
    return [CompletionItem(each, help=plain_line(ids[each].name)) for each in ids if each.startswith(typed)]


def _given(ctx: click.Context) -> Path | None:
    found: Path | None = ctx.params.get("store")
    return found
