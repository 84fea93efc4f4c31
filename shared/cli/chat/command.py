"""The command `jaato chat`: what it was asked for, and whether there is a terminal to talk in."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from typing import Any

import click

from shared import config
from shared.cli.host import HostOptions, host_options, open_client, open_usual
from shared.registry import PluginRegistry
from shared.settings import load_settings

_EXAMPLES = """\b
Examples:
  jaato chat --provider anthropic --model claude-sonnet-4-5
  jaato chat --continue
  echo 'Hi' | jaato chat --provider script"""


@click.command(epilog=_EXAMPLES)
@host_options
@click.option("--continue", "again", is_flag=True, help="Go on with the last conversation.")
@click.option("--resume", is_flag=False, flag_value="last", help="The same; or one by its id.", metavar="[ID]")
def chat(again: bool, resume: str | None, **given: Any) -> None:
    """Talk with a model that has tools and subagents.

    Without --plugin it has the usual tools: cli, file_edit, todo, references, subagent and skills, web_search if it
    is installed, mcp if servers are configured. What changes something asks first. Type /help for the commands.
    """
    from shared.cli.chat.setup import guide, with_provider

    wanted, settings = HostOptions.of(**given), load_settings()
    options = with_provider(wanted, settings)
    if options is None:
        from shared.providers.detect import detect_local

        _no_model(guide(wanted, settings, detect_local()))
        return
    registry, problems = open_usual(options, settings)
    talk = _interactive if _has_terminal() else _piped
    code = talk(options, registry, problems, resume or ("last" if again else None))
    raise click.exceptions.Exit(code)


def _has_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty() and config.env("TERM") != "dumb"


def _no_model(text: str) -> None:
    click.echo(text, err=True)
    if _has_terminal() and click.confirm("Watch the demo now?", default=True):
        context = click.get_current_context().find_root()
        assert isinstance(context.command, click.Group)
        demo = context.command.get_command(context, "demo")
        assert demo is not None
        context.invoke(demo)
        return
    raise click.exceptions.Exit(2)


def _interactive(options: HostOptions, registry: PluginRegistry, problems: Sequence[str], resumed: str | None) -> int:
    from rich.text import Text

    from shared.cli.chat.app import ChatApp
    from shared.cli.chat.approvals import ChatChannel
    from shared.cli.chat.conversations import begin
    from shared.cli.chat.history_file import open_history
    from shared.cli.chat.stored import stored_conversations
    from shared.cli.plain_text import plain, plain_line

    channel = ChatChannel()
    with open_client(options, registry, channel=channel) as client:
        app = ChatApp(client, channel, history=open_history(config.jaato_home()))
        model = plain_line(f"{client.model_name} of {client.provider_name}")
        app.show(Text(f"jaato: {model}. /help lists the commands, Ctrl+D leaves.", style="dim"))
        for problem in problems:
            app.show(Text(plain(problem), style="yellow"))
        for thing in begin(client.get_session(), stored_conversations(client), resumed):
            app.show(thing)
        app.run()
    return 0


def _piped(options: HostOptions, registry: PluginRegistry, problems: Sequence[str], resumed: str | None) -> int:
    from shared.cli.chat.conversations import begin
    from shared.cli.chat.piped import PipedChat
    from shared.cli.chat.stored import stored_conversations

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a letter that cannot be written is no reason to stop
    for problem in problems:
        click.echo(f"jaato: {problem}", err=True)
    with open_client(options, registry) as client:
        begin(client.get_session(), stored_conversations(client), resumed)
        lines = (line.decode("utf-8", "replace") for line in sys.stdin.buffer)
        return PipedChat(client, out=sys.stdout, err=sys.stderr).run(lines)
