"""What a person sees while a model works: colours in a terminal, plain text when piped."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TextIO

from rich.console import Console
from rich.markup import escape as _escape_markup

from shared.cli.figures import precise
from shared.cli.plain_text import plain


class TurnView:
    """Prints what agents say and call, as it happens; made for `client.set_ui_hooks`."""

    def __init__(self, stream: TextIO, *, quiet: bool = False, speaks: bool = False, width: int | None = None) -> None:
        """`width` makes it a terminal of so many columns, whatever the stream is: for recordings."""
        colours: dict[str, Any] = (
            {"force_terminal": True, "color_system": "standard", "no_color": False} if width is not None else {}
        )
        self.console = Console(file=stream, highlight=False, soft_wrap=True, width=width, **colours)
        self.calls = 0
        self._quiet = quiet
        self._speaks = speaks
        self._names = {"main": "model"}
        self._lines: dict[str, str] = {}

    def say(self, who: str, text: str, style: str = "bold") -> None:
        """Print what somebody said."""
        self.console.print(f"[{style}]{escape(who)}[/] {escape(text)}")

    def flush(self) -> None:
        """Show what was said last."""
        for agent_id in list(self._lines):
            self._finish_line(agent_id)

    def on_agent_created(self, agent_id: str, agent_name: str, agent_type: str, **more: Any) -> None:
        """An agent exists."""
        if agent_type == "subagent":
            self._names[agent_id] = agent_name

    def on_agent_output(self, agent_id: str, source: str, text: str, mode: str) -> None:
        """An agent says something; it is shown when it has finished saying it."""
        if not self._speaks:
            return
        if source == "model":
            self._lines[agent_id] = self._lines.get(agent_id, "") + text
        elif mode == "flush":
            self._finish_line(agent_id)

    def on_agent_completed(self, agent_id: str, success: bool, **more: Any) -> None:
        """A subagent has ended."""
        self._finish_line(agent_id)

    def on_tool_call_start(self, agent_id: str, tool_name: str, tool_args: Mapping[str, Any], call_id: str) -> None:
        """A tool is called."""
        self.calls += 1
        if not self._quiet:
            self.console.print(
                f"{self._prefix(agent_id)}[cyan]→ {escape(tool_name)}[/] [dim]{escape(brief(tool_args))}[/]"
            )

    def on_tool_call_end(
        self,
        agent_id: str,
        tool_name: str,
        success: bool,
        duration_seconds: float,
        error_message: str | None,
        call_id: str,
    ) -> None:
        """A tool has answered."""
        if self._quiet:
            return
        took = precise(duration_seconds)
        mark = "[green]✓[/]" if success else "[red]✗[/]"
        why = f" [red]{escape((error_message or '').splitlines()[0][:160])}[/]" if error_message else ""
        self.console.print(f"{self._prefix(agent_id)}{mark} {escape(tool_name)} [dim]{took}[/]{why}")

    def on_retry(self, message: str, attempt: int, max_attempts: int, delay: float) -> None:
        """A model call is tried again."""
        if not self._quiet:
            self.console.print(f"  [yellow]↻ {escape(message)} ({attempt}/{max_attempts})[/]")

    def _finish_line(self, agent_id: str) -> None:
        line = self._lines.pop(agent_id, "")
        if line:
            style = "bold magenta" if agent_id == "main" else "blue"
            indent = "" if agent_id == "main" else "    "
            self.say(f"{indent}{self._names.get(agent_id, agent_id)}", line, style)

    def _prefix(self, agent_id: str) -> str:
        name = self._names.get(agent_id, agent_id)
        return "  " if agent_id == "main" else f"    [blue]{escape(name)}[/] "


def brief(args: Mapping[str, Any]) -> str:
    """The arguments of a call in a hundred characters."""
    text = ", ".join(f"{key}={json.dumps(value, ensure_ascii=False, default=str)}" for key, value in args.items())
    return text if len(text) <= 100 else text[:97] + "…"


def escape(text: str) -> str:
    """Text from outside, harmless to the terminal and to rich's markup."""
    return _escape_markup(plain(text))
