"""Table: conversations and the tree below each, in columns that fit the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from shared.cli.agent_tree import MARKS
from shared.cli.figures import count, money
from shared.cli.plain_text import plain_line
from shared.cli.runs.ages import age
from shared.cli.runs.naming import short
from shared.cli.runs.rows import Group, Row
from shared.store.records import Cost

FAILED = ("✗", "red")
_DEEPEST = 6  # levels that are indented
_ID_CELLS = 10


def print_groups(console: Console, groups: Sequence[Group], now: float) -> None:
    """Draw all conversations below one row of column names."""
    depth = max((min(row.level, _DEEPEST) for group in groups for row in group.rows), default=0)
    names = _table(depth, header=True)
    console.print(names)
    for group in groups:
        console.print(_head(group, now), no_wrap=True, overflow="ellipsis")
        table = _table(depth, header=False)
        for row in group.rows:
            table.add_row(*_cells(row, now))
        if group.rows:
            console.print(table)


def mark(status: str) -> tuple[str, str]:
    """The sign and the colour of a status."""
    return MARKS.get(status, FAILED)


def priced(cost: Cost) -> str:
    """What was paid, as far as prices are known."""
    if cost.calls and cost.unpriced_calls == cost.calls:
        return "-"
    return money(cost.cost_usd) + ("+" if cost.unpriced_calls else "")


def _table(depth: int, *, header: bool) -> Table:
    table = Table(box=None, expand=True, padding=(0, 1, 0, 0), pad_edge=False, show_header=header, header_style="dim")
    table.add_column("  RUN", width=_ID_CELLS + 2 * depth, no_wrap=True, overflow="ellipsis")
    table.add_column("NAME (PROFILE)", ratio=5, no_wrap=True, overflow="ellipsis")
    table.add_column("MODEL", ratio=3, no_wrap=True, overflow="ellipsis")
    table.add_column("STATUS", width=11, no_wrap=True)
    for name, width in (("TURNS", 5), ("TOKENS", 6), ("COST", 8), ("AGE", 4)):
        table.add_column(name, width=width, justify="right", no_wrap=True)
    return table


def _head(group: Group, now: float) -> Text:
    conversation = group.conversation
    text = Text.assemble((plain_line(conversation.id), "bold"), f"  {age(now - group.updated_at)} ago")
    if conversation.is_live:
        text.append(", ").append("a process is at it", "cyan")
    if conversation.title:
        text.append(f"  {plain_line(conversation.title)}", "dim")
    return text


def _cells(row: Row, now: float) -> list[Text]:
    agent, (sign, colour) = row.agent, mark(row.status)
    indent = "  " * min(row.level, _DEEPEST)
    reason = row.status if row.run is None else str((row.run.result or {}).get("reason") or row.status)
    spent = count(row.cost.usage.total_tokens)
    return [
        Text.assemble(indent, (sign, colour), " ", plain_line(short(agent.agent_id))),
        Text(_called(row)),
        Text(plain_line(agent.model), style="dim"),
        Text(reason if row.status == "partial" else row.status, style=colour),
        *map(Text, (str(row.cost.calls), spent, priced(row.cost))),
        Text(age(now - row.since), style="dim"),
    ]


def _called(row: Row) -> str:
    """The name and, where it says more, the profile."""
    agent = row.agent
    name = "" if agent.name == agent.agent_id else agent.name
    if not agent.profile or agent.profile == name:
        return plain_line(name)
    return plain_line(f"{name} ({agent.profile})" if name else f"({agent.profile})")
