"""Where the commands print: coloured in a terminal, plain in a pipe, and never stopped by a letter or a closed pipe."""

from __future__ import annotations

import io
import json
import sys
from typing import Any

import click
from rich.console import Console


def open_console() -> Console:
    """A console on stdout that takes texts as they are."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a letter that cannot be written is no reason to stop
    return Console(file=sys.stdout, highlight=False, markup=False, emoji=False)


def print_json(value: Any, *, indent: int | None = 2) -> None:
    """Print a value for programs; in ASCII, so that nothing in it can move the cursor of a terminal."""
    click.echo(json.dumps(value, indent=indent, default=str))
