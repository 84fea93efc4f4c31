"""Entry point of the `jaato` command: subcommands, and errors as one line instead of a traceback."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from typing import ClassVar

import click

from shared import __version__
from shared.errors import JaatoError
from shared.extras import missing

GARBAGE = 20_000  # new objects after which the interpreter looks for garbage: modules that are loaded leave none
EXIT_ERROR, EXIT_INTERRUPTED = 2, 130


class LazyGroup(click.Group):
    """Subcommands by dotted path: `jaato --help` imports none of them."""

    COMMANDS: ClassVar[dict[str, tuple[str, str, str]]] = {
        "chat": ("shared.cli.chat.command", "chat", "Talk with a model that has tools and subagents."),
        "config": ("shared.cli.config", "config", "Show and check the settings, with the origin of each."),
        "demo": ("shared.cli.demo.command", "demo", "Watch a scripted model and real tools work on a folder, offline."),
        "doctor": ("shared.cli.doctor.command", "doctor", "Check keys, models and files, and say how to mend them."),
        "init": ("shared.cli.init", "init", "Seed a folder with profiles, settings and a permission policy."),
        "mcp": ("shared.cli.mcp", "mcp", "Give any MCP host subagents on any provider."),
        "plugins": ("shared.cli.plugins", "plugins", "List plugins, where they come from and what is wrong with them."),
        "profiles": ("shared.cli.profiles", "profiles", "List, check and explain the profiles of this folder."),
        "run": ("shared.cli.run", "run", "Give a model one task and print its answer."),
        "runs": ("shared.cli.runs.command", "runs", "List, show, follow, cancel, continue and prune runs."),
        "skills": ("shared.cli.skills", "skills", "List, show and check skills."),
        "trust": ("shared.cli.trust", "trust", "Let a workspace run code and grant rights, after a look at it."),
    }

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.COMMANDS:
            return None
        from importlib import import_module

        module, name, _ = self.COMMANDS[cmd_name]
        command: click.Command = getattr(import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, _, text) in self.COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="jaato")
def cli() -> None:
    """Subagents you can trust, for models that call tools."""


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command and leave with its exit code; nobody who mistyped sees a traceback."""
    gc.set_threshold(GARBAGE)
    try:
        code = cli.main(args=None if argv is None else list(argv), prog_name="jaato", standalone_mode=False)
    except click.exceptions.Exit as leaving:
        sys.exit(leaving.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, click.Abort) as stop:
        if isinstance(stop.__context__, EOFError):
            click.echo("jaato: nobody answered: there is no terminal to ask on", err=True)
            sys.exit(EXIT_ERROR)
        click.echo("jaato: interrupted", err=True)
        sys.exit(EXIT_INTERRUPTED)
    except ModuleNotFoundError as error:
        click.echo(f"jaato: {missing('this command', error)}", err=True)
        sys.exit(EXIT_ERROR)
    except (JaatoError, OSError) as error:
        click.echo(f"jaato: {error}", err=True)
        sys.exit(EXIT_ERROR)
    sys.exit(code if isinstance(code, int) else 0)  # click hands over the code of a command that left early
