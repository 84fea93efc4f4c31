"""`jaato mcp`: the subagent tools for any MCP host, on standard input and output or over HTTP."""

from __future__ import annotations

import logging
import secrets
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from shared import config
from shared.cli.host import HostOptions, host_options
from shared.errors import ConfigError, MissingDependency
from shared.mcp_server.names import LONGEST
from shared.mcp_server.settings import ServerSettings

_EXAMPLES = """\b
Examples:
  claude mcp add jaato -- jaato mcp --provider google_genai --model gemini-3-pro
  jaato mcp --http --port 8765 --provider anthropic --model claude-sonnet-4-5"""


@click.command(epilog=_EXAMPLES)
@host_options
@click.option(
    "--workspace",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=".",
    help="Where subagents work; default: the current folder.",
)
@click.option(
    "--conversation",
    metavar="NAME",
    help="Go on with what an earlier server of this name left; default: JAATO_MCP_CONVERSATION, else a new one.",
)
@click.option("--http", is_flag=True, help="Serve streamable HTTP instead of standard input and output.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8765, show_default=True, type=click.IntRange(0, 65535), help="Port; 0: a free one.")
@click.option("--allow-host", "names", multiple=True, help="A name by which clients may call this server.")
@click.option(
    "--token-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File with the bearer token; default: JAATO_MCP_TOKEN, else a new one is printed.",
)
@click.option(
    "--keep-minutes",
    default=60.0,
    show_default=True,
    type=click.FloatRange(min=0.01),
    help="How long an idle client is kept.",
)
@click.option("--verbose", "-v", is_flag=True, help="Log to standard error.")
def mcp(
    workspace: Path,
    conversation: str | None,
    http: bool,
    host: str,
    port: int,
    names: tuple[str, ...],
    token_file: Path | None,
    keep_minutes: float,
    verbose: bool,
    **given: Any,
) -> None:
    """Give any MCP host subagents on any provider.

    The host starts this program itself (see docs/mcp.md for Claude Code, Codex, Gemini CLI, Cursor and VS Code); with
    --http one server serves many clients, each with a conversation of its own.
    """
    if find_spec("mcp") is None:
        raise MissingDependency("jaato mcp needs the extra 'mcp': pip install 'jaato-subagent[mcp]'")
    logging.basicConfig(level=logging.INFO if verbose else logging.CRITICAL)
    options = HostOptions.of(**given)
    settings = ServerSettings(
        workspace=workspace.resolve(),
        provider=options.provider,
        model=options.model,
        base_url=options.base_url,
        plugins=options.plugins,
        plugin_settings=options.settings,
        permissions=options.permissions,
        keep_seconds=keep_minutes * 60,
        conversation=_name(conversation, http=http),
    )
    if http:
        _serve_http(settings, host, port, names, token_file)
    else:
        from shared.mcp_server.stdio import serve_stdio

        if sys.stdin.isatty():
            click.echo("jaato mcp: waiting for an MCP host on standard input (see docs/mcp.md); Ctrl+C ends", err=True)
        serve_stdio(settings)


def _serve_http(
    settings: ServerSettings, host: str, port: int, names: tuple[str, ...], token_file: Path | None
) -> None:
    from shared.mcp_server.web import Address, serve_http

    given = _token(token_file)
    token = given or secrets.token_urlsafe(32)

    def ready(url: str) -> None:
        click.echo(f"jaato mcp: listening on {url}", err=True)
        if given is None:
            click.echo(f"jaato mcp: bearer token {token}", err=True)

    serve_http(settings, Address(host, port, names), token=token, ready=ready)


def _name(given: str | None, *, http: bool) -> str | None:
    if http:
        if given is not None:
            raise ConfigError(
                "--conversation is for standard input and output: over HTTP each client sends the header "
                "Jaato-Conversation"
            )
        return None
    name = config.mcp_conversation() if given is None else given.strip()
    if name is not None and not 0 < len(name) <= LONGEST:
        raise ConfigError(f"--conversation: expected a name of 1 to {LONGEST} characters, got {len(name)}")
    return name


def _token(path: Path | None) -> str | None:
    if path is None:
        return config.mcp_token()
    token = path.read_text(encoding="utf-8").strip()
    if not token or any(character.isspace() for character in token):
        raise ConfigError(f"{path}: expected one token, got {'nothing' if not token else 'several words'}")
    return token
