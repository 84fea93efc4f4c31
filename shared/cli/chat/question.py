"""How a permission question looks: who asks, for what, and the diff or command, cut to fit and never faked."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from shared.cli.chat.rendering import Renderer
from shared.permissions.display import is_deceptive, one_line
from shared.permissions.request import PermissionRequest
from shared.permissions.visible import visible

_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}
_BEWARE = "Beware: it contains characters that are invisible or look like others."
LEAST_DETAILS = 3
HURRY_SECONDS = 60


def panel(
    request: PermissionRequest, renderer: Renderer, *, width: int, height: int | None, now: float, others: int = 0
) -> list[Text]:
    """The question in at most `height` lines; None shows all of it."""
    head = [line for text in _head(request, now, others) for line in renderer.lines(text, width)]
    foot = [line for text in _foot(request) for line in renderer.lines(text, width)]
    details = [line for text in _details(request) for line in _quoted(text, renderer, width)]
    if height is None:
        return [*head, *details, *foot]
    room = max(LEAST_DETAILS, height - len(head) - len(foot))
    return [*head, *_shortened(details, room), *foot]


def _head(request: PermissionRequest, now: float, others: int) -> list[Text]:
    profile = f" ({one_line(request.profile)})" if request.profile else ""
    who = Text("? ", style="bold yellow").append(one_line(request.agent_path), style="bold").append(profile)
    left = request.expires_at - now
    notes = [f"{others} more waiting"] if others else []
    notes += [f"{max(0.0, left):.0f} s left"] if left < HURRY_SECONDS else []
    note = ", ".join(notes)
    who.append(f" wants to use {one_line(request.tool)}").append(f"  {note}" if note else "", style="dim")
    return [who, Text(f"  {one_line(request.display.summary)}")]


def _details(request: PermissionRequest) -> list[Text]:
    lines = visible(request.display.details).split("\n")
    is_diff = request.display.format_hint == "diff"
    return [Text(line, style=_DIFF_STYLES.get(line[:1], "") if is_diff else "") for line in lines]


def _foot(request: PermissionRequest) -> list[Text]:
    notes = [Text("  [the tool shortened this description]", style="dim")] if request.display.truncated else []
    if is_deceptive(request.display.details) or is_deceptive(str(request.arguments)):
        notes.append(Text(f"  {_BEWARE}", style="bold red"))
    return notes


def _quoted(text: Text, renderer: Renderer, width: int) -> list[Text]:
    """Every line of what an agent wrote is marked, so that none can pass for ours."""
    return [Text("  │ ", style="dim").append_text(line) for line in renderer.lines(text, max(1, width - 4)) or [text]]


def _shortened(lines: Sequence[Text], room: int) -> list[Text]:
    """Beginning and end of long details: what matters may stand at either."""
    hidden = len(lines) - room + 1
    if hidden <= 1:
        return list(lines)
    head = room * 2 // 3
    mark = Text(f"  │ [… {hidden} more lines: answer d to see them …]", style="yellow")
    return [*lines[:head], mark, *lines[len(lines) - (room - 1 - head) :]]
