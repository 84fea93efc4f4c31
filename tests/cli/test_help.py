"""Help and completion: every command explains itself in whole sentences, with an example; shells know the names."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from shared.cli.main import cli

ROOT = Path(__file__).parents[2]


def _tree(command: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    """Every command below this one with its help."""
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            each = command.get_command(context, name)
            assert each is not None
            inner = click.Context(each, info_name=name, parent=context)
            yield inner.command_path, each.get_help(inner)
            yield from _tree(each, inner)


HELP = dict(_tree(cli, click.Context(cli, info_name="jaato")))


@pytest.mark.parametrize("name", HELP)
def test_no_help_is_cut_short(name: str) -> None:
    assert not [line for line in HELP[name].splitlines() if line.rstrip().endswith("...") and "Usage:" not in line]


@pytest.mark.parametrize("name", [name for name in HELP if name.count(" ") == 1])
def test_every_command_has_an_example_of_itself_on_a_line(name: str) -> None:
    examples = HELP[name].partition("Example")[2]
    assert any(name in line for line in examples.splitlines()), HELP[name]


def _completed(words: str, cwd: Path) -> list[str]:
    """What bash would be offered for the last word."""
    keep = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    typed = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" ")), "_JAATO_COMPLETE": "bash_complete"}
    env = {**keep, **typed, "HOME": str(cwd), "PYTHONPATH": str(ROOT), "JAATO_TRACE_LOG": ""}
    command = [sys.executable, "-c", "from shared.cli.main import main; main()"]
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=60)
    assert done.stderr == "", "it would land in what somebody is typing"
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


def test_a_shell_completes_names(tmp_path: Path) -> None:
    profile = tmp_path / ".jaato" / "profiles" / "scribe.yaml"
    skill = tmp_path / ".jaato" / "skills" / "greet" / "SKILL.md"
    plugin = tmp_path / ".jaato" / "plugins" / "theirs" / "plugin.json"
    for file, text in (
        (profile, "description: Writes\n"),
        (skill, "---\nname: greet\ndescription: Greets.\n---\nHi\n"),
        (plugin, '{"name": "theirs"}'),
    ):
        file.parent.mkdir(parents=True)
        file.write_text(text)
    assert _completed("jaato run --profile s", tmp_path) == ["scribe", "summarizer"]
    assert _completed("jaato profiles explain scr", tmp_path) == ["scribe"]
    assert _completed("jaato skills show ", tmp_path) == ["greet"]
    assert _completed("jaato chat --provider o", tmp_path) == ["openai_compatible"]
    assert _completed("jaato chat --plugin f", tmp_path) == ["file_edit"], "nothing of an untrusted project disturbs"


def test_a_folder_that_cannot_be_read_offers_nothing(tmp_path: Path) -> None:
    (tmp_path / ".jaato").mkdir()
    (tmp_path / ".jaato" / "skills").write_text("no folder")
    assert _completed("jaato skills show ", tmp_path) == []
