"""ChatApp: the conversation in a terminal — what is printed for good above, what is live and typed below."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import partial

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import ThreadedCompleter, WordCompleter
from prompt_toolkit.history import History
from prompt_toolkit.output import Output, create_output
from prompt_toolkit.output.vt100 import Vt100_Output
from rich.console import Console, RenderableType
from rich.text import Text

from shared.cli.agent_board import EVENTS as BOARD_EVENTS
from shared.cli.agent_board import AgentBoard
from shared.cli.agent_tree import AgentTree
from shared.cli.chat.approvals import ChatChannel
from shared.cli.chat.completion import SlashCompleter
from shared.cli.chat.keys import Actions, chat_keys
from shared.cli.chat.layout import chat_layout
from shared.cli.chat.lines import Lines
from shared.cli.chat.live import LiveView
from shared.cli.chat.printer import FRAME_SECONDS, Printer
from shared.cli.chat.questions import Questions
from shared.cli.chat.rendering import Renderer
from shared.cli.chat.slash import SlashCommands
from shared.cli.chat.stray_output import captured
from shared.cli.chat.transcript import EVENTS as TRANSCRIPT_EVENTS
from shared.cli.chat.transcript import Transcript
from shared.cli.chat.turns import TurnEnd, Turns
from shared.cli.plain_text import plain, plain_line, whole
from shared.client import JaatoClient
from shared.events import AgentCreated, AgentOutput, Event
from shared.executors.threads import workers

TICK_SECONDS = 0.5  # how often times that run are drawn anew
_CUT = {
    "cancelled": "Stopped.",
    "max_turns": "The answer was cut off: the turn took as many model calls as it may.",
    "budget": "The answer was cut off: the budget is used up.",
    "output_limit": "The answer was cut off: it is as long as the model may answer.",
}


class ChatApp:
    """One conversation with a person at a terminal."""

    def __init__(self, client: JaatoClient, channel: ChatChannel, *, history: History) -> None:
        self._client = client
        self._interrupted: int | None = None  # in which turn Ctrl+C was pressed, if nothing was typed since
        self._lines = Lines()
        self._console = Console(file=sys.stdout)
        self._renderer = Renderer(self._console)
        self._printer = Printer(self._renderer, columns=lambda: self._size()[1])
        self._board = AgentBoard(prices=client.get_runtime().ledger.prices)
        tree = AgentTree(self._board, root=False)
        self._transcript = Transcript(self._board)
        self._turns = Turns(client, on_end=self._turn_ended, on_idle=self._redraw)
        self._slash = SlashCommands(
            client, tree, show=self.show, say=self._send, leave=self._leave_soon, width=lambda: self._size()[1]
        )
        self._live = LiveView(client, tree, self._transcript, channel, self._renderer, size=self._size)
        self._message = self._message_buffer(history)
        self._answer = self._answer_buffer()
        self._app = self._application(channel)
        self._questions = Questions(
            channel,
            self._app.layout,
            self._message,
            self._answer,
            self.show,
            self._renderer,
            rows=lambda: self._size()[0],
        )
        channel.on_change(lambda: self._printer.soon(self._question_changed))

    def _message_buffer(self, history: History) -> Buffer:
        return Buffer(
            name="message",
            multiline=True,
            history=history,
            completer=ThreadedCompleter(SlashCompleter(self._slash)),
            complete_while_typing=True,
            on_text_changed=lambda _: self._typed(),
        )

    def _answer_buffer(self) -> Buffer:
        return Buffer(
            name="answer",
            multiline=False,
            completer=WordCompleter(["yes", "no", "agent", "session", "always", "never", "all", "details", "help"]),
            accept_handler=self._answered,
            on_text_changed=lambda _: self._typed(),
        )

    def _application(self, channel: ChatChannel) -> Application[None]:
        actions = Actions(self._submit, self._interrupt, self._leave, lambda: self._questions.turn())
        layout = chat_layout(
            self._live,
            self._message,
            self._answer,
            is_asking=lambda: channel.question is not None,
            hint=self._hint,
        )
        return Application(
            layout,
            output=_output(),
            key_bindings=chat_keys(self._message, self._answer, actions),
            erase_when_done=True,
            min_redraw_interval=FRAME_SECONDS,
        )

    def run(self) -> None:
        """Talk until the person leaves; the transcript stays on the screen."""
        bus = self._client.get_runtime().bus
        end = bus.subscribe(self._take, interest=BOARD_EVENTS | TRANSCRIPT_EVENTS)
        bus.emit(AgentCreated("main", name="main"))
        try:
            with captured(lambda line: self.show(Text(plain_line(line, 400), style="dim"))), suppress(EOFError):
                self._app.run(pre_run=self._begin)  # EOFError: the terminal has gone away
        finally:
            end()
            self._console.file.write(self._printer.drained())
        if left := self._slash.background():
            self._console.print(Text(f"Stopped with the conversation: {plain_line(', '.join(left))}", style="yellow"))

    def show(self, thing: RenderableType) -> None:
        """Print something above the prompt, from any thread."""
        self._printer.show(thing)

    # -- events, from other threads --------------------------------------------------------------

    def _take(self, event: Event) -> None:
        self._board.take(event)
        self._show_all(self._transcript.take(event))
        if event.agent_id == "main" or not isinstance(event, AgentOutput):  # what children say is not shown
            self._redraw()

    def _turn_ended(self, end: TurnEnd) -> None:
        self._client.get_runtime().bus.flush()
        self._show_all(self._transcript.end())
        if end.error is not None:
            self.show(Text(plain(end.error), style="red"))
        elif end.reason is not None:
            self.show(Text(_CUT.get(end.reason, f"The answer was cut off: {end.reason}."), style="yellow"))

    def _show_all(self, things: Iterable[RenderableType]) -> None:
        for thing in things:
            self.show(thing)

    def _redraw(self) -> None:
        self._printer.soon(self._app.invalidate)

    # -- in the thread of the terminal -----------------------------------------------------------

    def _begin(self) -> None:
        for number in (signal.SIGTERM, signal.SIGHUP):  # a terminal must not be left as it is now
            asyncio.get_running_loop().add_signal_handler(number, self._leave)
        self._app.create_background_task(self._printer.run(self._app))
        self._app.create_background_task(self._tick())

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            if self._turns.is_busy or self._live.has_live_agents or self._questions.is_open:
                self._app.invalidate()

    def _size(self) -> tuple[int, int]:
        size = self._app.output.get_size()
        return size.rows, size.columns

    def _typed(self) -> None:
        self._interrupted = None

    def _submit(self) -> None:
        text = whole(self._message.text.strip())
        if not text:
            self._questions.turn()
            return
        self._message.reset(append_to_history=True)
        self._interrupted = None
        self._questions.turned_away()
        if self._slash.is_command(text):
            self._do(text)
        else:
            self._say(text)

    def _do(self, command: str) -> None:
        self.show(Text(f"> {plain(command)}", style="bold"))
        work = partial(self._slash.run, command)
        if self._slash.is_aside(command):
            workers.submit(work)
        else:
            self._lines.submit(work)

    def _say(self, text: str) -> None:
        waits = self._lines.is_busy
        note = "  (after the command above)" if waits else "  (joins the turn under way)" if self._turns.is_busy else ""
        self.show(Text(f"> {plain(text)}", style="bold green").append(note, style="not bold dim"))
        if waits:  # what the command changes holds for this message
            self._lines.submit(partial(self._send, text))
        else:
            self._send(text)

    def _send(self, text: str) -> None:
        self._live.since = self._board.clock()
        self._turns.say(text)

    def _answered(self, buffer: Buffer) -> bool:
        self._questions.answer(buffer.text)
        return False

    def _question_changed(self) -> None:
        self._questions.changed()
        self._app.invalidate()

    @property
    def _is_leaving(self) -> bool:
        """Whether Ctrl+C was pressed just before; not if it stopped a turn and another one has begun since."""
        return self._interrupted == self._turns.begun

    def _interrupt(self) -> None:
        if self._is_leaving:
            self._leave()
        elif self._message.text and not self._turns.is_busy:
            self._message.reset()
        else:
            self._interrupted = self._turns.begun  # before the stop: the turn that waits begins at once
            stopped = self._turns.stop() or (self._lines.is_busy and (self._slash.stop() or self._lines.release()))
            if stopped and (others := self._slash.background()):
                text = f"These go on in the background: {', '.join(others)}. /agents cancel NAME stops one."
                self.show(Text(plain_line(text, 400), style="yellow"))

    def _leave_soon(self) -> None:
        self._printer.soon(self._leave)

    def _leave(self) -> None:
        if self._app.is_running and not self._app.is_done:
            self._app.exit()

    def _hint(self) -> str:
        if self._is_leaving:
            return "Ctrl+C again leaves"
        return "working, Ctrl+C stops" if self._turns.is_busy or self._lines.is_busy else "/help"


def _output() -> Output:
    """The terminal, never asked where its cursor is: its answer would be late, for other threads print as well."""
    output = create_output()
    if isinstance(output, Vt100_Output):
        output.enable_cpr = False
    return output
