"""Plugin `mcp`: starts the configured servers in the background and offers their tools."""

from __future__ import annotations

import atexit
import concurrent.futures
import importlib.util
import logging
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from shared.errors import ConfigError, MissingDependency, ToolError, unknown_name
from shared.executors.threads import workers
from shared.plugin import CommandCompletion, CommandParameter, Executor, UserCommand
from shared.plugins._base import ConfiguredPlugin
from shared.plugins._visible import visible
from shared.plugins.mcp.binding import Binding, bind
from shared.plugins.mcp.calls import call_tool
from shared.plugins.mcp.config import PROJECT_FILE, Disabled, Entry, Refused, read_servers
from shared.plugins.mcp.config_trust import project_trust
from shared.plugins.mcp.connection import STOP_SECONDS, Connection, on_loop_thread
from shared.plugins.mcp.names import server_prefixes
from shared.plugins.mcp.settings import DEFAULTS, SCHEMA, Settings
from shared.plugins.mcp.spec import ServerSpec
from shared.plugins.mcp.status import ServerStatus
from shared.tools import Tool

if TYPE_CHECKING:
    from shared.runtime import JaatoRuntime

log = logging.getLogger(__name__)

INSTALL = "pip install 'jaato-subagent[mcp]'"
ACTIONS = {"status": "all servers and their state", "list": "all tools by server", "reconnect": "connect NAME again"}


class McpPlugin(ConfiguredPlugin):
    """Tools of MCP servers, named `server__tool`.

    Servers come from the settings, the workspace's `.mcp.json` and the user's `mcp.json`. They are
    connected in the background: a slow or missing one delays nothing and is told by `status()`.
    `on_tools_changed` holds callables that are run, on a thread of their own, when tools come or go.
    """

    name = "mcp"
    config_keys: ClassVar[Mapping[str, Any]] = DEFAULTS
    config_schema: ClassVar[Mapping[str, Any]] = SCHEMA

    def __init__(self) -> None:
        super().__init__()
        self.on_tools_changed: list[Callable[[], object]] = []
        self._settings: Settings | None = None  # None until initialised
        self._workspace: Path | None = None  # the runtime's, once attached
        self._vouched: bool | None = None  # what the runtime says of it; None: the record decides
        self._entries: dict[str, Entry] = {}
        self._connections: dict[str, Connection] = {}
        self._prefixes: dict[str, str] = {}
        self._bindings: dict[str, Binding] = {}
        self._patience = _Patience(0)

    def initialize(self, config: dict[str, Any] | None = None) -> None:
        """Read which servers there are and begin to connect; returns without waiting for any of them."""
        before = self.config
        super().initialize(config)
        try:
            self._begin(Settings.of(self.config))
        except ConfigError:
            self.config = before
            raise

    def attach(self, runtime: JaatoRuntime) -> None:
        """Learn the runtime's workspace and whether it is trusted; begin anew if that changes the servers."""
        self._workspace, self._vouched = runtime.workspace, runtime.vouched
        if self._settings is not None and self._read(self._settings) != self._entries:
            self._begin(self._settings)

    def shutdown(self) -> None:
        """Close all sessions and end all server programs."""
        atexit.unregister(self.shutdown)
        connections, self._connections = self._connections, {}
        self._entries, self._bindings = {}, {}
        closing = [connection.close() for connection in connections.values()]
        if closing and not on_loop_thread():
            concurrent.futures.wait(closing, timeout=STOP_SECONDS)

    def tools(self) -> list[Tool]:
        """The tools, after a short wait, once, for servers that are still connecting."""
        self.settle()
        return self.known_tools()

    def settle(self) -> None:
        """Wait a moment for servers that are still connecting."""
        self._patience.wait_for(connection.settled for connection in dict(self._connections).values())

    def known_tools(self) -> list[Tool]:
        """The tools of the servers that are connected now."""
        connections = dict(self._connections)
        return [tool for name in connections for tool in self._binding(name, connections[name]).tools]

    def status(self) -> list[ServerStatus]:
        """Every configured server, in order, with its state."""
        connections = dict(self._connections)
        return [self._status(name, entry, connections.get(name)) for name, entry in self._entries.items()]

    def reconnect(self, name: str) -> ServerStatus:
        """Connect one server again, now; gives its state afterwards."""
        connection = self._connections.get(name)
        if connection is None:
            raise ConfigError(unknown_name("mcp server", name, self._connections))
        try:
            connection.reconnect().result(connection.connect_seconds + STOP_SECONDS)
        except (ToolError, TimeoutError) as error:
            log.debug("mcp server %s: %s", name, error)  # the status says the same
        return self._status(name, connection.spec, connection)

    def get_executors(self) -> dict[str, Executor]:
        """The tools' callables, and the one behind the command `mcp`."""
        return {**super().get_executors(), "mcp": self.run_command}

    def get_user_commands(self) -> list[UserCommand]:
        """The command `mcp`."""
        action = CommandParameter("action", ", ".join(f"{name}: {about}" for name, about in ACTIONS.items()))
        return [UserCommand("mcp", "Show and reconnect MCP servers", parameters=[action, CommandParameter("server")])]

    def get_command_completions(self, command: str, args: list[str]) -> list[CommandCompletion]:
        """Actions, then names of servers."""
        if command != "mcp" or len(args) > 2:
            return []
        typed = args[-1] if args else ""
        choices = dict.fromkeys(self._connections, "") if len(args) == 2 else ACTIONS
        return [CommandCompletion(value, about) for value, about in choices.items() if value.startswith(typed)]

    def run_command(self, args: Mapping[str, Any] | None = None, /, **keywords: Any) -> str:
        """What `mcp status`, `mcp list` or `mcp reconnect NAME` prints."""
        given = {**(args or {}), **keywords}
        words = [str(word) for word in given.get("args") or (given.get("action"), given.get("server")) if word]
        action, server = [*words, "", ""][:2]
        match action:
            case "" | "status":
                return "\n".join(map(str, self.status())) or "no mcp servers are configured"
            case "list":
                return self._listing() or "no tools: no mcp server is connected"
            case "reconnect" if server:
                try:
                    return str(self.reconnect(server))
                except ConfigError as error:
                    return str(error)
            case "reconnect":
                return "mcp reconnect: name a server"
            case _:
                return unknown_name("action", action, ACTIONS)

    def _begin(self, settings: Settings) -> None:
        """Stop what runs and start what these settings name; a ConfigError leaves everything as it was."""
        entries = self._read(settings)
        specs = [entry for entry in entries.values() if isinstance(entry, ServerSpec)]
        if specs:
            _require_sdk(specs)
        self.shutdown()
        self._settings, self._entries = settings, entries
        self._prefixes = server_prefixes(entries)
        self._patience = _Patience(settings.wait_seconds)
        for entry in entries.values():
            if isinstance(entry, Refused):
                log.warning("mcp server '%s' is left out: %s", entry.name, entry.error)
            elif isinstance(entry, Disabled) and entry.untrusted:
                log.warning("mcp server '%s' is not started: %s", entry.name, entry.reason)
        if specs:
            self._connect(specs, settings)

    def _read(self, settings: Settings) -> dict[str, Entry]:
        workspace = Path(settings.workspace or self._workspace or Path.cwd()).expanduser()
        is_runtimes = self._workspace is not None and workspace.resolve() == self._workspace
        vouched = self._vouched if is_runtimes else None
        return read_servers(
            workspace=workspace,
            config_path=settings.config_path,
            inline=settings.servers,
            disabled=settings.disabled,
            trust=project_trust(workspace, PROJECT_FILE, setting=settings.trust_project, vouched=vouched),
        )

    def _connect(self, specs: list[ServerSpec], settings: Settings) -> None:
        self._connections = {
            spec.name: Connection(
                spec,
                connect_seconds=settings.connect_timeout_seconds,
                call_seconds=settings.call_timeout_seconds,
                on_tools=self._announce,
            )
            for spec in specs
        }
        atexit.register(self.shutdown)
        workers.submit(partial(_load_and_start, list(self._connections.values())))

    def _announce(self) -> None:
        """Tell subscribers that tools have changed; not on the event loop, for they may block."""
        for callback in list(self.on_tools_changed):
            workers.submit(partial(_guarded, callback))

    def _binding(self, name: str, connection: Connection) -> Binding:
        remote = connection.tools
        known = self._bindings.get(name)
        if known is None or known.remote is not remote:
            known = self._bindings[name] = bind(self._prefixes[name], remote, partial(call_tool, connection))
        return known

    def _status(self, name: str, entry: Entry, connection: Connection | None) -> ServerStatus:
        if isinstance(entry, Refused):
            return ServerStatus(name, "failed", entry.source, error=entry.error)
        if isinstance(entry, Disabled):
            return ServerStatus(name, "disabled", entry.source, error=entry.reason)
        if connection is None:
            return ServerStatus(name, "disabled", entry.source, entry.transport, error="it has been shut down")
        binding = self._binding(name, connection)
        return ServerStatus(
            name,
            connection.state,
            entry.source,
            entry.transport,
            len(binding.tools),
            connection.error,
            connection.stderr.lines,
            binding.left_out,
        )

    def _listing(self) -> str:
        return "\n".join(
            f"{tool.name}: {visible(next(iter(tool.schema.description.splitlines()), ''))}" for tool in self.tools()
        )


class _Patience:
    """The short time that asking for tools may take; it runs once, from the first question on."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._deadline: float | None = None

    def wait_for(self, events: Any) -> None:
        """Wait for the events while there is time left."""
        if self._deadline is None:
            self._deadline = time.monotonic() + self._seconds
        for event in events:
            event.wait(max(0.0, self._deadline - time.monotonic()))


def _require_sdk(specs: list[ServerSpec]) -> None:
    if importlib.util.find_spec("mcp") is None:
        names = ", ".join(spec.name for spec in specs)
        raise MissingDependency(
            f"mcp servers are configured ({names}) and the package 'mcp' is not installed: run  {INSTALL}"
        )


def _load_and_start(connections: list[Connection]) -> None:
    """Import the SDK away from the event loop and from whoever initialises, then connect all at once."""
    try:
        import shared.plugins.mcp.sdk  # noqa: F401
    except ImportError as error:
        for connection in connections:
            connection.refuse(f"the package 'mcp' cannot be loaded ({error}): run  {INSTALL}")
        return
    for connection in connections:
        connection.start()


def _guarded(callback: Callable[[], object]) -> None:
    try:
        callback()
    except Exception:  # foreign code
        log.exception("a subscriber of changed mcp tools failed")
