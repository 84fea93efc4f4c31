"""Chat without a terminal: every line of the input is a message, answers go to stdout, progress to stderr."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TextIO

from rich.console import Console, RenderableType

from shared.cli.agent_board import AgentBoard
from shared.cli.agent_tree import AgentTree
from shared.cli.chat.rendering import Renderer
from shared.cli.chat.slash import SlashCommands
from shared.cli.chat.turns import TurnEnd, take_turn
from shared.cli.plain_text import plain
from shared.cli.view import TurnView
from shared.client import JaatoClient

EXIT_FAILED = 1
TREE_WIDTH = 100
UNWRAPPED = 100_000  # columns: who reads a pipe wraps lines, if at all


class PipedChat:
    """A conversation with a program, or with a person behind a pipe."""

    def __init__(self, client: JaatoClient, *, out: TextIO, err: TextIO) -> None:
        self._client, self._out, self._err = client, out, err
        self._failed = self._left = False
        self._fresh = True  # whether the output stands at the beginning of a line
        self._renderer = Renderer(Console(file=out, force_terminal=False))
        board = AgentBoard(prices=client.get_runtime().ledger.prices)
        board.follow(client.get_runtime().bus)
        self._slash = SlashCommands(
            client, AgentTree(board), show=self._show, say=self._say, leave=self._leave, width=lambda: TREE_WIDTH
        )
        view = TurnView(err)
        client.set_ui_hooks(view)
        client.set_retry_callback(view.on_retry)

    def run(self, lines: Iterable[str]) -> int:
        """Answer every line; the exit code says whether all of it went well."""
        for line in lines:
            text = line.strip()
            if not text:
                continue
            if not self._slash.is_command(text):
                self._say(text)
            elif not self._slash.run(text):
                self._failed = True
            if self._left:
                break
        self._await_background()
        return EXIT_FAILED if self._failed else 0

    def _say(self, text: str) -> None:
        end = take_turn(self._client, text, self._print)
        if not self._fresh:
            self._print("model", "\n", "append")
        if not end.is_whole:
            self._failed = True
            self._err.write(f"jaato: {plain(_problem(end))}\n")

    def _print(self, source: str, text: str, mode: str) -> None:
        written = text if source == "model" else "\n" if mode == "flush" and not self._fresh else ""
        if written:
            if self._fresh:
                self._client.get_runtime().bus.flush()  # what was done before is shown first
            self._fresh = written.endswith("\n")
            self._write(plain(written) if self._out.isatty() else written)

    def _show(self, thing: RenderableType) -> None:
        self._write(self._renderer.text([thing], UNWRAPPED))

    def _write(self, text: str) -> None:
        try:
            self._out.write(text)
            self._out.flush()
        except BrokenPipeError:  # whoever read has gone: nobody waits for the rest
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._out.fileno())
            self._failed = self._left = True
            self._client.stop()

    def _leave(self) -> None:
        self._left = True

    def _await_background(self) -> None:
        """Nothing that was begun is thrown away at the end of the input."""
        if self._left:
            return
        if names := self._slash.background():
            self._err.write(f"jaato: waiting for {', '.join(map(plain, names))}\n")
        for result in self._slash.unheard():
            self._failed = self._failed or not result["success"]
            said = result.get("response") or result.get("error") or ""
            self._print("model", f"{result['agent_id']} ({result['status']}): {said}\n", "append")


def _problem(end: TurnEnd) -> str:
    return end.error or f"the answer was cut off: {end.reason}"
