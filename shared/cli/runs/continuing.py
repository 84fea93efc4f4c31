"""`jaato runs continue`: another run of an agent whose process is gone, in this one."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from shared.cancel import CancelToken
from shared.cli.delegating import TICK
from shared.cli.host import HostOptions, open_client, tool_options
from shared.cli.outcomes import exit_code
from shared.cli.plain_text import plain, whole
from shared.cli.runs.id_argument import id_argument
from shared.cli.runs.naming import conversation_of, find_run
from shared.cli.runs.place import required_store, store_option
from shared.cli.runs.tools import registry_for
from shared.cli.view import TurnView
from shared.client import JaatoClient
from shared.errors import StoreError, SubagentConfigError
from shared.plugins.subagent import SubagentPlugin
from shared.settings import load_settings
from shared.store import Reader
from shared.store.records import AgentRecord, ConversationRecord, RunRecord
from shared.subagents.continuing import continue_stored
from shared.subagents.result import SubagentResult
from shared.subagents.scripted import require_no_script
from shared.tools import ToolContext


@click.command("continue", epilog="Exit code: that of the run, as for `jaato run`.")
@id_argument
@click.argument("message")
@tool_options
@click.option("--fewer-tools", is_flag=True, help="Go on without tools that are not to be had here, for good.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole result as JSON.")
@click.option("--quiet", "-q", is_flag=True, help="No progress on stderr.")
@store_option
def continue_(
    name: str, message: str, fewer_tools: bool, as_json: bool, quiet: bool, store: Path | None, **given: Any
) -> None:
    """Go on with a run whose process is gone: with its history, its model, at most its tools, what is left to spend."""
    path = required_store(store)
    with Reader(path) as reader:
        agent, run = find_run(reader, name)
        conversation = conversation_of(reader, agent)
    _require_free(agent, run, conversation)
    require_no_script([agent.provider], own=load_settings().provider, where=f"{agent.agent_id} in the store {path}")
    options = HostOptions.of(provider=agent.provider, model=agent.model, **given)
    registry = registry_for(agent, options, fewer=fewer_tools)
    with open_client(options, registry, store=path) as client:
        _tell_place(client, conversation)
        view = TurnView(sys.stderr, quiet=quiet)
        client.set_ui_hooks(view)
        client.set_retry_callback(view.on_retry)
        result = _continued(client, agent, whole(message))
    _print(result, as_json=as_json)
    raise click.exceptions.Exit(exit_code([result.status.value]))


def _require_free(agent: AgentRecord, run: RunRecord, conversation: ConversationRecord) -> None:
    """Raises unless this process may take the agent up."""
    if run.is_live:
        raise StoreError(
            f"{agent.agent_id} is {run.status} in another process: follow it, or cancel it first "
            f"(jaato runs follow {agent.agent_id})"
        )
    if conversation.is_live:
        raise StoreError(
            f"{agent.agent_id} belongs to {conversation.id}, which another process leads: continue it there, or end "
            "that process first"
        )
    if agent.closed_at is not None:
        raise SubagentConfigError(f"{agent.agent_id} is closed: it can be read, but not continued; spawn another")


def _tell_place(client: JaatoClient, conversation: ConversationRecord) -> None:
    """Its tools work in this folder, wherever they worked before."""
    here = str(client.get_runtime().workspace)
    if conversation.workspace != here:
        click.echo(f"jaato: it began in {plain(conversation.workspace)} and goes on in {plain(here)}", err=True)


def _continued(client: JaatoClient, agent: AgentRecord, message: str) -> SubagentResult:
    """The result of the run; whoever stops waiting, by Ctrl+C, stops it."""
    registry = client.get_runtime().registry
    plugin = registry.get_plugin("subagent") if registry is not None else None
    assert isinstance(plugin, SubagentPlugin)
    engine = plugin.engine
    caller = engine.caller(ToolContext("main", CancelToken()))
    try:
        run = continue_stored(client, engine, agent.agent_id, message)
        while not run.done.wait(TICK):
            pass
    finally:
        taken_up = caller.tree.get(agent.agent_id)
        if taken_up is not None and taken_up.is_live:
            engine.cancel(caller, taken_up, soft=False, reason="the command was stopped")
    if lost := frozenset(agent.spec.get("tools") or ()) - run.agent.tools:
        names = ", ".join(sorted(map(plain, lost)))
        click.echo(f"jaato: it went on without {names}: not allowed here, and it never gets them back", err=True)
    assert run.result is not None
    return run.result


def _print(result: SubagentResult, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(result.as_dict()))
        return
    click.echo(plain(result.response) if sys.stdout.isatty() else whole(result.response))
    if result.error:
        click.echo(f"jaato: {plain(result.error)}", err=True)
