"""Slash commands: what a person types to steer the client itself, besides the commands of plugins and skills."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from shared.cli.agent_tree import AgentTree
from shared.cli.background import Background
from shared.cli.chat.presenting import presented
from shared.cli.plain_text import plain, plain_line
from shared.client import JaatoClient
from shared.errors import ConfigError, JaatoError, ToolError, unknown_name
from shared.plugin import CommandCompletion
from shared.providers import known_providers

log = logging.getLogger(__name__)

Show = Callable[[RenderableType], object]
KEYS = """Enter sends; Alt+Enter or a backslash at the end of the line begins a new line.
Ctrl+C stops the turn under way (subagents in the background go on), twice leaves; Ctrl+D leaves.
Ctrl+T goes from your message to a question and back. What you type while a turn is under way joins it."""


@dataclass(frozen=True)
class SlashCommand:
    """One command of the client."""

    name: str
    description: str
    run: Callable[[str], object]
    complete: Callable[[Sequence[str]], Sequence[CommandCompletion]] = lambda words: ()
    is_aside: bool = True  # changes nothing for what is typed next, so it waits for nothing


class SlashCommands:
    """Everything that begins with a slash; commands of the client come before those of plugins."""

    def __init__(
        self,
        client: JaatoClient,
        tree: AgentTree,
        *,
        show: Show,
        say: Callable[[str], object],
        leave: Callable[[], object],
        width: Callable[[], int],
    ) -> None:
        self._client, self._tree, self._show, self._say, self._width = client, tree, show, say, width
        self._subagents = Background(client)
        self._models: list[str] | None = None
        own = (
            SlashCommand("help", "All commands and keys", self._help),
            SlashCommand("agents", "The agents; cancel ID stops one", self._agents, self._complete_agents),
            SlashCommand(
                "model",
                "The model, or another one: NAME or PROVIDER:NAME",
                self._model,
                self._complete_model,
                is_aside=False,
            ),
            SlashCommand("tools", "The tools that the model has", self._tools),
            SlashCommand("quit", "Leave", lambda rest: leave()),
        )
        self._own: Mapping[str, SlashCommand] = {command.name: command for command in own}

    def is_command(self, line: str) -> bool:
        """Whether a line is a command; a path such as /etc/hosts at its beginning does not make it one."""
        word = line.split(maxsplit=1)[0] if line.strip() else ""
        return line.startswith("/") and len(word) > 1 and "/" not in word[1:]

    def is_aside(self, line: str) -> bool:
        """Whether a command may overtake what was typed before it."""
        own = self._own.get(_parted(line)[0])
        return own is not None and own.is_aside

    def run(self, line: str) -> bool:
        """Run a command to its end; False if it failed, which is said."""
        name, rest = _parted(line)
        try:
            if name in self._own:
                self._own[name].run(rest)
            else:
                self._foreign(name, rest)
        except JaatoError as error:
            self._show(Text(plain(str(error)), style="red"))
            return False
        except (Exception, SystemExit) as error:  # foreign code: a command that fails ends itself alone
            log.exception("the command /%s failed", name)
            self._show(Text(plain(f"/{name} failed: {type(error).__name__}: {error}"), style="red"))
            return False
        return True

    def names(self) -> list[CommandCompletion]:
        """All commands with what they do, sorted; of two with one name the client's counts."""
        found = {each.name: plain_line(each.description, 100) for each in self._client.get_user_commands()}
        found |= {each.name: each.description for each in self._own.values()}
        return [CommandCompletion(name, found[name]) for name in sorted(found)]

    def completions(self, name: str, words: Sequence[str]) -> list[CommandCompletion]:
        """How the arguments of a command may be completed; the last word is the one under way."""
        own = self._own.get(name)
        found = own.complete(words) if own is not None else self._client.get_command_completions(name, words)
        return [each for each in found if each.value.startswith(words[-1] if words else "")]

    def stop(self) -> bool:
        """Stop the subagents that a command waits for; those in the background go on."""
        waited = [each for each in self._subagents.active() if each["type"] == "interactive" and each["can_cancel"]]
        for each in waited:
            self._cancel(each["agent_id"], "stopped by the user")
        return bool(waited)

    def background(self) -> list[str]:
        """The names of the subagents that work in the background."""
        return self._subagents.names()

    def unheard(self) -> list[dict[str, Any]]:
        """Wait for all subagents in the background; the results that the model has not heard of."""
        return self._subagents.results()

    # -- the client's own ------------------------------------------------------------------------

    def _help(self, rest: str) -> None:
        names = self.names()
        widest = max(len(each.value) for each in names) + 2
        for each in names:
            line = Text(f"/{each.value}".ljust(widest), style="bold").append(each.description, style="not bold")
            self._show(line)
        self._show(Text(KEYS, style="dim"))

    def _agents(self, rest: str) -> None:
        action, _, name = rest.partition(" ")
        if action == "cancel":
            if not name.strip():
                raise ConfigError("/agents cancel needs the id or name of an agent, such as /agents cancel sub-1")
            self._show(Text(plain(self._cancel(name.strip(), "cancelled by the user"))))
        elif action:
            raise ConfigError(unknown_name("action of /agents", action, ["cancel"]))
        else:
            lines = self._tree.frame(width=self._width())
            for line in lines or [Text("No subagent has worked here since this start.")]:
                self._show(line)

    def _model(self, rest: str) -> None:
        session = self._client.get_session()
        if rest:
            head, colon, name = rest.partition(":")
            is_provider = bool(colon) and head in known_providers()
            session.set_model(name if is_provider else rest, head if is_provider else None)
        self._show(Text(plain_line(f"The model is {session.model_name} of {session.provider_name}.")))

    def _tools(self, rest: str) -> None:
        allowed = set(self._client.get_session().tool_names)
        registry = self._client.get_runtime().registry
        by_plugin: dict[str, list[str]] = {}
        for tool in registry.tools() if registry is not None else ():
            if tool.name in allowed:
                by_plugin.setdefault(tool.plugin, []).append(tool.name + ("" if tool.auto_approved else "*"))
        for plugin, names in by_plugin.items():
            self._show(
                Text(f"{plain_line(plugin)}: ", style="bold").append(", ".join(map(plain_line, names)), "not bold")
            )
        self._show(Text("* asks for permission, unless the policy says otherwise: /permissions", style="dim"))

    # -- those of plugins ------------------------------------------------------------------------

    def _foreign(self, name: str, rest: str) -> None:
        known = [each.value for each in self.names()]
        if name not in known:
            raise ToolError(unknown_name("command", f"/{name}", [f"/{each}" for each in known]))
        result, _ = self._client.execute_user_command(name, rest)
        if name in self._skills() and isinstance(result, str):
            self._say(f"/{name} {rest}".strip())  # the model reads the skill's text next to it
            return
        for line in presented(result):
            self._show(line)

    def _skills(self) -> set[str]:
        registry = self._client.get_runtime().registry
        plugin = registry.get_plugin("skills") if registry is not None else None
        manager = getattr(plugin, "manager", None)
        return {info.name for info in manager.list()} - {"skills", "install"} if manager is not None else set()

    def _cancel(self, name: str, reason: str) -> str:
        cancel = self._subagents.executor("cancel_subagent")
        if cancel is None:
            raise ConfigError("there are no subagents here: start with the plugin 'subagent'")
        answer = cancel({"agent_id": name, "reason": reason})
        if not answer.get("success"):
            raise ToolError(str(answer.get("error") or answer))
        if answer["cancelled"]:
            ended = ", ".join(each["agent_id"] for each in answer["cancelled"])
            self._client.get_session().steer(f"[The user cancelled these subagents: {ended}]")
            return f"Cancelled: {ended}"
        return str(answer["message"])

    # -- completion ------------------------------------------------------------------------------

    def _complete_agents(self, words: Sequence[str]) -> Sequence[CommandCompletion]:
        if len(words) <= 1:
            return [CommandCompletion("cancel", "stop an agent and all below it")]
        live = [node for node in self._tree.board.nodes() if node.is_live and node.parent_id is not None]
        return [CommandCompletion(node.agent_id, plain_line(node.name)) for node in live] if len(words) == 2 else []

    def _complete_model(self, words: Sequence[str]) -> Sequence[CommandCompletion]:
        if len(words) > 1:
            return []
        if self._models is None:
            try:
                self._models = self._client.list_available_models()
            except Exception:  # no list is no reason to disturb somebody who types
                log.debug("no list of models", exc_info=True)
                self._models = []
        return [CommandCompletion(plain_line(name)) for name in self._models]


def _parted(line: str) -> tuple[str, str]:
    """The name of a command, and the rest of its line."""
    name, _, rest = line.strip()[1:].partition(" ")
    return name, rest.strip()
