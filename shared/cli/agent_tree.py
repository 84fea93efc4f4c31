"""AgentTree: the agents of a board as a tree that fits a given width and height, however many there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from shared.cli.agent_board import AgentBoard, AgentNode, summary
from shared.cli.figures import count, duration, money
from shared.cli.plain_text import plain_line

MARKS = {
    "idle": ("○", "dim"),
    "queued": ("…", "dim"),
    "running": ("●", "cyan"),
    "completed": ("✓", "green"),
    "partial": ("◐", "yellow"),
    "cancelled": ("■", "yellow"),
}
_FAILED = ("✗", "red")
_NAME_CELLS = 12  # a name keeps this much however little room there is

Fold = Callable[[AgentNode], bool]
#: What is folded into one line per parent, step by step, until the tree fits.
FOLDS: tuple[Fold, ...] = (
    lambda node: False,
    lambda node: node.status == "completed",
    lambda node: not node.is_live,
    lambda node: node.status != "running",
)


@dataclass(frozen=True)
class Row:
    """One line: an agent, or several that are folded together."""

    prefix: str
    nodes: tuple[AgentNode, ...]
    folded: bool = False


class AgentTree:
    """Draws a board. `root` False leaves out the main agent, where its work is shown elsewhere."""

    def __init__(self, board: AgentBoard, *, root: bool = True) -> None:
        self.board = board
        self._root = root

    def frame(
        self, *, width: int, height: int | None = None, now: float | None = None, since: float | None = None
    ) -> list[Text]:
        """The tree at one moment, a line of text per row; agents that ended before `since` are left out."""
        at = self.board.clock() if now is None else now
        nodes = [node for node in self.board.nodes() if since is None or node.ended is None or node.ended >= since]
        rows = self._fitting(nodes, height)
        return [_folded_line(row, width) if row.folded else _line(row, width, at) for row in rows]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from self.frame(width=options.max_width, height=options.height)

    def _fitting(self, nodes: Sequence[AgentNode], height: int | None) -> list[Row]:
        family = _Family(nodes)
        rows: list[Row] = []
        for fold in FOLDS:
            rows = list(self._rows(family, fold))
            if height is None or len(rows) <= height:
                return rows
        assert height is not None
        kept, cut = rows[: max(0, height - 1)], rows[max(0, height - 1) :]
        rest = tuple(node for row in cut for node in row.nodes)
        return [*kept, Row("", rest, folded=True)][:height]

    def _rows(self, family: _Family, fold: Fold) -> Iterator[Row]:
        for node in family.tops:
            shown = self._root or node.parent_id is not None  # one whose parent is left out has a line of its own
            if shown:
                yield Row("", (node,))
            yield from family.below(node, "", fold, indent=shown)


class _Family:
    """Who is whose child."""

    def __init__(self, nodes: Sequence[AgentNode]) -> None:
        known = {node.agent_id for node in nodes}
        self._children: dict[str, list[AgentNode]] = {}
        self.tops: list[AgentNode] = []
        for node in nodes:
            if node.parent_id is None or node.parent_id not in known:
                self.tops.append(node)
            else:
                self._children.setdefault(node.parent_id, []).append(node)

    def below(self, parent: AgentNode, prefix: str, fold: Fold, *, indent: bool = True) -> Iterator[Row]:
        children = self._children.get(parent.agent_id, [])
        folded = [node for node in children if fold(node) and node.agent_id not in self._children]
        hidden = {node.agent_id for node in folded}
        shown = [node for node in children if node.agent_id not in hidden]
        if len(folded) == 1:  # a line of its own takes no more room
            shown, folded = children, []
        for index, node in enumerate(shown):
            last = index == len(shown) - 1 and not folded
            yield Row(prefix + (("└─ " if last else "├─ ") if indent else ""), (node,))
            yield from self.below(node, prefix + (("   " if last else "│  ") if indent else ""), fold)
        if folded:
            yield Row(prefix + ("└─ " if indent else ""), tuple(folded), folded=True)


def mark_of(node: AgentNode) -> tuple[str, str]:
    """The sign for an agent's status, and its colour."""
    return MARKS.get(node.status, _FAILED)


def used(node: AgentNode, now: float) -> str:
    """What an agent has used: turns, tokens, cost and time."""
    return next(_figures(node, now))


def _line(row: Row, width: int, now: float) -> Text:
    """The agent in one line: mark, name, status, what it does; then turns, tokens, cost and time as far as they fit."""
    node = row.nodes[0]
    mark, colour = mark_of(node)
    name, doing = plain_line(node.name, 60), _doing(node)
    fixed = cell_len(row.prefix) + 2
    least = fixed + min(_NAME_CELLS, cell_len(name)) + 1 + cell_len(doing)
    figures = next((text for text in _figures(node, now) if least + 2 + cell_len(text) <= width), "")
    room = width - fixed - 1 - cell_len(doing) - (2 + cell_len(figures) if figures else 0)
    line = Text(row.prefix, style="dim", no_wrap=True, end="\n")
    line.append(mark, style=f"not dim {colour}").append(" ")
    line.append(_cut(name, max(room, min(_NAME_CELLS, cell_len(name)))), style="not dim bold").append(" ")
    line.append(doing, style="not dim" if node.is_live else "dim")
    if figures:
        line.append(f"  {figures}")
    return _fit(line, width)


def _folded_line(row: Row, width: int) -> Text:
    tokens, costs = sum(node.tokens for node in row.nodes), [node.cost for node in row.nodes if node.cost is not None]
    spent = f", {count(tokens)} tokens" if tokens else ""
    spent += f", {money(sum(costs, Decimal(0)))}" if costs else ""
    return _fit(Text(f"{row.prefix}… {summary(row.nodes)}{spent}", style="dim", no_wrap=True), width)


def _doing(node: AgentNode) -> str:
    if not node.is_live or node.status == "queued":
        return node.status
    tool = plain_line(node.tool, 40)
    return {
        "awaiting permission": f"asks for {tool}",
        "tool": f"running {tool}",
        "retrying": "running, retrying",
        "model": "running, thinking",
    }[node.phase]


def _figures(node: AgentNode, now: float) -> Iterator[str]:
    """What it used, from all that is known to the time alone."""
    took = duration(node.elapsed(now))
    turns = f"{node.turns} {'turn' if node.turns == 1 else 'turns'}" if node.turns else ""
    tokens = count(node.tokens) if node.tokens else ""
    named = f"{tokens} tokens" if tokens else ""
    cost = money(node.cost) if node.cost else ""
    for parts in (
        (turns, named, cost, took),
        (named, cost, took),
        (tokens, took),
        (took,),
    ):
        yield " · ".join(part for part in parts if part)


def _cut(text: str, cells: int) -> str:
    return text if cell_len(text) <= cells else set_cell_size(text, max(0, cells - 1)) + "…"


def _fit(line: Text, width: int) -> Text:
    line.truncate(max(1, width), overflow="ellipsis")
    return line
