"""The command: watch the demo on a folder, or record it as a picture."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

import click
from rich.live import Live

from shared.cli.agent_board import AgentBoard
from shared.cli.agent_tree import AgentTree
from shared.cli.demo.show import open_show
from shared.cli.demo.story import FOREVER, QUESTION, reply_to
from shared.cli.view import TurnView
from shared.providers.base import ModelRequest
from shared.providers.script import Reply

HASTE = 0.02  # of the time an answer takes, when nobody watches


_EXAMPLES = """\b
Examples:
  jaato demo ~/code/my-project
  jaato demo --record demo.svg"""


@click.command(epilog=_EXAMPLES)
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path), required=False)
@click.option("--record", type=click.Path(dir_okay=False, path_type=Path), help="Write an animated SVG instead.")
def demo(folder: Path | None, record: Path | None) -> None:
    """Watch a scripted model and its subagents work on FOLDER (default: this one) with real tools, offline.

    A recording without FOLDER is made on a small sample project.
    """
    if record is None:
        _watch(folder or Path.cwd())
        return
    from shared.cli.demo.record import recording

    record.write_text(recording(folder), encoding="utf-8")
    click.echo(f"wrote {record}")


def paced(request: ModelRequest, *, pace: float) -> Reply:
    """The story at another pace; what never ends still does not."""
    reply = reply_to(request)
    return reply if reply.delay >= FOREVER else replace(reply, delay=reply.delay * pace)


def _watch(folder: Path) -> None:
    view = TurnView(sys.stdout, speaks=True)
    board = AgentBoard()
    tree = AgentTree(board)
    watched = view.console.is_terminal
    with open_show(folder, partial(paced, pace=1.0 if watched else HASTE)) as client:
        board.follow(client.get_runtime().bus)
        client.set_ui_hooks(view)
        view.say("you", QUESTION, "bold green")
        with Live(tree, console=view.console, refresh_per_second=8) if watched else nullcontext():
            client.send_message(QUESTION)
            view.flush()
        if not watched:
            view.console.print(tree)
        used = client.get_runtime().ledger.summarize()
        seconds = client.get_turn_accounting()[-1]["duration_seconds"]
        view.console.print(
            f"[dim]{used['calls']} model calls (scripted), {view.calls} tool calls (real), "
            f"{used['total_tokens']:,} tokens (made up), {seconds:.2f} s[/]"
        )
