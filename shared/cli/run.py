"""`jaato run`: one task, answer on stdout, progress on stderr."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from shared.cli.view import TurnView
from shared.client import JaatoClient
from shared.errors import ConfigError
from shared.providers.base import ProviderConfig
from shared.registry import PluginRegistry


@click.command(
    epilog="Example: jaato run --provider anthropic --model claude-sonnet-4-5 -p file_edit 'What does this project do?'"
)
@click.argument("task")
@click.option("--provider", help="anthropic, google_genai, openai_compatible or script; default: JAATO_PROVIDER.")
@click.option("--model", help="Name of the model; default: MODEL_NAME.")
@click.option("--base-url", help="Talk to this address instead of the vendor's.")
@click.option("--plugin", "-p", "plugins", multiple=True, help="Expose a plugin (repeat for more).")
@click.option("--config", "-c", "configs", multiple=True, help="A plugin's setting, such as cli.timeout_seconds=10.")
@click.option(
    "--permissions", help="allow, ask, deny, or the path of a policy file; default: the usual places, else ask."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object with answer, usage and turns.")
@click.option("--quiet", "-q", is_flag=True, help="No progress on stderr.")
def run(
    task: str,
    provider: str | None,
    model: str | None,
    base_url: str | None,
    plugins: tuple[str, ...],
    configs: tuple[str, ...],
    permissions: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Give a model one task and print its answer."""
    registry = PluginRegistry()
    registry.discover()
    settings = _plugin_settings(configs)
    for name in dict.fromkeys([*plugins, *settings]):
        registry.expose_tool(name, settings.get(name))
    with JaatoClient(provider_name=provider) as client:
        if base_url:
            client.register_provider(client.provider_name, ProviderConfig(base_url=base_url))
        client.connect(model=model)
        client.configure_tools(registry, permissions=permissions)
        view = TurnView(sys.stderr, quiet=quiet)
        client.set_ui_hooks(view)
        client.set_retry_callback(view.on_retry)
        answer = client.send_message(task, None if as_json else _print_text)
        if as_json:
            click.echo(json.dumps(_report(client, answer), ensure_ascii=False))
        else:
            click.echo()
        outcome = client.get_session().last_outcome
        if outcome is not None and outcome.reason is not None:
            raise click.exceptions.Exit(1)


def _print_text(source: str, text: str, mode: str) -> None:
    if source == "model":
        click.echo(text, nl=False)
    elif mode == "flush":
        click.echo()


def _report(client: JaatoClient, answer: str) -> dict[str, Any]:
    outcome = client.get_session().last_outcome
    ledger = client.get_runtime().ledger.summarize()
    return {
        "success": outcome is not None and outcome.reason is None,
        "response": answer,
        "finish_reason": outcome.finish_reason.value if outcome is not None else None,
        "reason": outcome.reason if outcome is not None else None,
        "model_calls": outcome.model_calls if outcome is not None else 0,
        "tool_calls": outcome.tool_calls if outcome is not None else 0,
        "provider": client.provider_name,
        "model": client.model_name,
        "usage": ledger,
    }


def _plugin_settings(given: tuple[str, ...]) -> dict[str, dict[str, Any]]:
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
