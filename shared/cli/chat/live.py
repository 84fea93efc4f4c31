"""LiveView: what is drawn anew below the transcript — the unfinished answer, the tree, the question, the status."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rich.text import Text

from shared.cli.agent_board import summary
from shared.cli.agent_tree import AgentTree
from shared.cli.chat.approvals import ChatChannel
from shared.cli.chat.question import panel
from shared.cli.chat.rendering import Renderer
from shared.cli.chat.transcript import Transcript
from shared.cli.figures import count, money
from shared.cli.plain_text import plain_line
from shared.client import JaatoClient


@dataclass(frozen=True)
class Room:
    """How many lines each part may take in a terminal of so many rows."""

    tail: int
    tree: int
    question: int

    @staticmethod
    def of(rows: int, *, asking: bool) -> Room:
        """Most of the room goes to a question while there is one."""
        free = max(6, rows - 5)  # the prompt, the status and a few typed lines
        if asking:
            return Room(tail=1, tree=max(2, free // 6), question=free - max(2, free // 6) - 1)
        return Room(tail=max(2, free // 3), tree=max(3, free // 2), question=0)


class LiveView:
    """Draws from the state of others; it keeps none but the moment from which finished agents are shown."""

    def __init__(
        self,
        client: JaatoClient,
        tree: AgentTree,
        transcript: Transcript,
        channel: ChatChannel,
        renderer: Renderer,
        *,
        size: Callable[[], tuple[int, int]],
    ) -> None:
        self._client, self._tree, self._transcript, self._channel = client, tree, transcript, channel
        self._renderer, self._size = renderer, size
        self.since = tree.board.clock()

    @property
    def columns(self) -> int:
        """How wide the terminal is."""
        return self._size()[1]

    @property
    def has_live_agents(self) -> bool:
        """Whether a subagent is queued or at work."""
        return any(node.is_live and node.parent_id is not None for node in self._tree.board.nodes())

    def tail(self) -> str:
        """The end of the answer that is being written."""
        rows, columns = self._size()
        text = self._transcript.tail
        if not text.strip():
            return ""
        room = self._room(rows).tail
        return self._drawn(self._renderer.lines(Text(text[-room * columns :]), columns)[-room:], columns)

    def tree(self) -> str:
        """The agents, while there are any at work."""
        rows, columns = self._size()
        if not self.has_live_agents:
            return ""
        return self._drawn(self._tree.frame(width=columns, height=self._room(rows).tree, since=self.since), columns)

    def question(self) -> str:
        """The question that is open."""
        rows, columns = self._size()
        asked, broker = self._channel.question, self._client.get_runtime().broker
        if asked is None or broker is None:
            return ""
        now, others = self._tree.board.clock(), max(0, len(broker.pending()) - 1)
        height = self._room(rows).question
        lines = panel(asked.request, self._renderer, width=columns, height=height, now=now, others=others)
        return self._drawn(lines, columns)

    def status(self, hint: str) -> str:
        """One line: model, context, tokens, cost, agents; or a hint."""
        _, columns = self._size()
        session, total = self._client.get_session(), self._client.get_runtime().ledger.total
        agents = summary(node for node in self._tree.board.nodes() if node.is_live and node.parent_id is not None)
        parts = [
            hint,
            f"{plain_line(session.model_name, 40)}",
            f"agents: {agents}" if agents else "",
            f"{count(total.usage.total_tokens)} tokens",
            money(total.cost_usd) if total.cost_usd else "",
            f"context {session.get_context_usage()['percent_used']:.0f}%",
        ]
        line = Text(" · ".join(part for part in parts if part), no_wrap=True)
        line.truncate(columns, overflow="ellipsis")
        return line.plain

    def _room(self, rows: int) -> Room:
        return Room.of(rows, asking=self._channel.question is not None)

    def _drawn(self, lines: list[Text], columns: int) -> str:
        return self._renderer.text(lines, columns).rstrip("\n")
