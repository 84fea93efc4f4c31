"""What `jaato run` and `jaato chat` share: their options, and a client set up as they say."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import click

from shared import config
from shared.cli.completing import complete_plugin, complete_provider
from shared.client import JaatoClient
from shared.errors import ConfigError, JaatoError
from shared.permissions.channel import Channel
from shared.permissions.gate import Permissions, build_gate
from shared.permissions.policy import ACTIONS
from shared.providers.base import ProviderConfig
from shared.registry import PluginRegistry
from shared.settings import Settings as StoredSettings
from shared.settings import load_settings

Command = TypeVar("Command", bound=Callable[..., Any])
Settings = Mapping[str, dict[str, Any]]


@dataclass(frozen=True)
class HostOptions:
    """Which model, which plugins with which settings, and what they may do."""

    provider: str | None = None
    model: str | None = None
    base_url: str | None = None
    plugins: tuple[str, ...] = ()
    settings: Settings = field(default_factory=dict)
    permissions: str | None = None

    @staticmethod
    def of(
        provider: str | None,
        model: str | None,
        base_url: str | None,
        plugins: tuple[str, ...],
        configs: tuple[str, ...],
        permissions: str | None,
    ) -> HostOptions:
        """From what was typed."""
        return HostOptions(provider, model, base_url, plugins, plugin_settings(configs), permissions)


def host_options(command: Command) -> Command:
    """Add the options that `HostOptions.of` takes to a command."""
    return _with(
        tool_options(command),
        click.option(
            "--provider",
            help="anthropic, google_genai, openai_compatible, local or script; or JAATO_PROVIDER.",
            shell_complete=complete_provider,
        ),
        click.option("--model", help="Name of the model; default: MODEL_NAME."),
    )


def tool_options(command: Command) -> Command:
    """The same but for the choice of a model."""
    ask = "allow, ask, deny, or the path of a policy file; default: the usual places, else ask."
    return _with(
        command,
        click.option("--base-url", help="Talk to this address instead of the vendor's."),
        click.option(
            "--plugin",
            "-p",
            "plugins",
            multiple=True,
            help="Only this plugin (repeat for more); default: the usual ones.",
            shell_complete=complete_plugin,
        ),
        click.option("--config", "-c", "configs", multiple=True, help="A setting, such as cli.timeout_seconds=10."),
        click.option("--permissions", help=ask),
    )


def _with(command: Command, *options: Callable[[Command], Command]) -> Command:
    for option in reversed(options):
        command = option(command)
    return command


@contextmanager
def open_client(
    options: HostOptions,
    registry: PluginRegistry,
    *,
    channel: Channel | None = None,
    max_turns: int | None = None,
    store: Path | None = None,
) -> Iterator[JaatoClient]:
    """A connected client with these plugins; questions go to `channel`, unless a policy names another one."""
    _require_policy(options.permissions)
    with JaatoClient(provider_name=options.provider, max_turns=max_turns, store=store) as client:
        if options.base_url:
            client.register_provider(client.provider_name, ProviderConfig(base_url=options.base_url))
        client.connect(model=options.model)
        client.configure_tools(registry, permissions=_gate(client, options.permissions, registry, channel))
        yield client


def open_registry(options: HostOptions) -> PluginRegistry:
    """The plugins that were asked for, else those of the settings files; any that cannot be had is an error."""
    written = load_settings().plugins
    registry = PluginRegistry()
    registry.discover()
    for name in dict.fromkeys([*(options.plugins or written), *options.settings]):
        registry.expose_tool(name, {**written.get(name, {}), **options.settings.get(name, {})} or None)
    return registry


def open_usual(options: HostOptions, settings: StoredSettings) -> tuple[PluginRegistry, list[str]]:
    """The plugins of `chat` and `run`; of the usual ones that fail it says why and goes on without them."""
    if options.plugins:
        return open_registry(options), []
    registry, problems = PluginRegistry(), []
    registry.discover()
    usual = usual_plugins(settings)
    for name in dict.fromkeys([*usual, *options.settings]):
        try:
            registry.expose_tool(name, {**usual.get(name, {}), **options.settings.get(name, {})} or None)
        except JaatoError as error:
            if name in options.settings:
                raise
            problems.append(f"plugin '{name}' is left out: {error}")
    return registry, problems


def usual_plugins(settings: StoredSettings) -> dict[str, dict[str, Any]]:
    """What `chat` and `run` offer by themselves: what can work here, and what the settings files add or withdraw."""
    workspace = settings.workspace
    has_servers = (workspace / ".mcp.json").exists() or (config.jaato_home() / "mcp.json").exists()
    names = [
        *("cli", "file_edit", "todo", "references"),
        *(["web_search"] if _can_search() else []),
        *(["mcp"] if has_servers else []),
        *("subagent", "skills"),
    ]
    written = settings.get("plugins") or {}
    kept: dict[str, dict[str, Any]] = {name: {} for name in names if written.get(name) is not False}
    return {**kept, **{name: dict(each or {}) for name, each in settings.plugins.items()}}


def plugin_settings(given: Sequence[str]) -> dict[str, dict[str, Any]]:
    """`plugin.key=value` options, with values read as JSON where they are JSON."""
    settings: dict[str, dict[str, Any]] = {}
    for item in given:
        name, _, value = item.partition("=")
        plugin, _, key = name.partition(".")
        if not (plugin and key and "=" in item):
            raise ConfigError(f"--config {item}: expected plugin.key=value, such as cli.timeout_seconds=10")
        try:
            settings.setdefault(plugin, {})[key] = json.loads(value)
        except ValueError:
            settings.setdefault(plugin, {})[key] = value
    return settings


def _require_policy(typed: str | None) -> None:
    """A policy file that goes missing denies everything; one that was never there was typed wrongly."""
    if typed is not None and typed not in ACTIONS and not Path(typed).expanduser().exists():
        raise ConfigError(
            f"--permissions {typed}: there is no such file; expected {', '.join(ACTIONS)}, or the path of a policy file"
        )


def _gate(client: JaatoClient, given: str | None, registry: PluginRegistry, channel: Channel | None) -> Permissions:
    if channel is None:
        return given
    runtime = client.get_runtime()
    place: dict[str, Any] = {
        "workspace": runtime.workspace,
        "trust_workspace": runtime.is_trusted_now,
        "tools": registry.tools,
    }
    wanted = given if given is not None else runtime.settings.permissions
    gate = build_gate(wanted, **place)
    named = gate.policy.channel
    return gate if named is not None and named.type != "console" else build_gate(wanted, channel=channel, **place)


def _can_search() -> bool:
    from shared.plugins.web_search.duckduckgo import is_installed

    return config.search_url() is not None or is_installed()
