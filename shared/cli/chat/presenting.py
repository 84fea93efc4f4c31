"""The result of a plugin's command as a person reads it: named entries with their description, then the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.text import Text

from shared.cli.plain_text import plain, plain_line
from shared.commands import shown

_NOISE = ("success", "count")  # of use to programs only


def presented(result: Any) -> list[Text]:
    """The lines to show; every result has at least one."""
    if not isinstance(result, Mapping):
        return [Text(plain(shown(result)).rstrip() or "Done.")]
    lines: list[Text] = []
    for key, value in result.items():
        if key in _NOISE or value in (None, [], {}, ""):
            continue
        if isinstance(value, list) and all(isinstance(each, Mapping) for each in value):
            lines += [line for each in value for line in _entry(each)]
        else:
            lines.append(_field(str(key), value))
    return lines or [Text("Nothing to show.")]


def _entry(entry: Mapping[str, Any]) -> Iterator[Text]:
    head = entry.get("name") or entry.get("agent_id") or entry.get("id")
    if head is None:
        yield Text(plain_line(", ".join(f"{key}: {value}" for key, value in entry.items()), 400))
        return
    line = Text(plain_line(str(head)), style="bold")
    if about := entry.get("description"):
        line.append(f"  {plain_line(str(about), 400)}", style="not bold")
    yield line
    rest = {key: value for key, value in entry.items() if value not in (head, about, None, [], "", False)}
    if rest:
        yield Text("  " + plain_line(", ".join(f"{key}: {_short(value)}" for key, value in rest.items()), 400), "dim")


def _field(name: str, value: Any) -> Text:
    text = "\n".join(f"  {plain_line(str(each), 400)}" for each in value) if isinstance(value, list) else ""
    return Text(f"{name}:\n{text}" if text else f"{name}: {plain(_short(value))}")


def _short(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
