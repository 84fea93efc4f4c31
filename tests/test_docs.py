"""What README and docs say is true: snippets run, links lead somewhere, commands exist."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.labs import ANTHROPIC, OPENAI, WireLab
from support.wire import Reply, Script

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _blocks(language: str) -> list[tuple[str, str]]:
    return [
        (f"{page.name}:{page.read_text()[: match.start()].count(chr(10)) + 1}", match[2])
        for page in PAGES
        for match in BLOCK.finditer(page.read_text())
        if match[1] == language
    ]


def _run(command: list[str], folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(folder), "JAATO_TRACE_LOG": "", **variables}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(("where", "code"), [pytest.param(*block, id=block[0]) for block in _blocks("python")])
def test_python_snippet(where: str, code: str, tmp_path: Path) -> None:
    with ExitStack() as stack:
        server = WireLab(ANTHROPIC, stack).serve(Script(ANTHROPIC.render, Reply("It delegates."), repeat=True))
        done = _run([sys.executable, "-c", code], tmp_path, ANTHROPIC_API_KEY="k", ANTHROPIC_BASE_URL=server.url)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("where", "code"), [pytest.param(*block, id=block[0]) for block in _blocks("console")])
def test_console_snippet(where: str, code: str, tmp_path: Path) -> None:
    with ExitStack() as stack:
        server = WireLab(OPENAI, stack).serve(Script(OPENAI.render, Reply("A project."), repeat=True))
        for line in code.splitlines():
            if not line.startswith("$ "):
                continue
            words = shlex.split(re.sub(r"http://localhost:\d+", server.url, line[2:]))
            assert words[0] == "jaato", f"{where}: {line}"
            done = _run([sys.executable, "-m", "shared.cli", *words[1:]], tmp_path)
            assert done.returncode == 0, done.stderr


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", BLOCK.sub("", page.read_text())):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page.name} links to {target}, which does not exist"


def test_readme_has_the_two_commands_for_ci() -> None:
    text = (ROOT / "README.md").read_text()
    for name in ("run", "test"):
        assert re.search(rf"^<!-- command: {name} -->\n\n    python3 -m venv ", text, re.MULTILINE)


def test_the_table_of_commands_is_complete() -> None:
    from shared.cli.main import LazyGroup

    text = (ROOT / "README.md").read_text()
    for name in LazyGroup.COMMANDS:
        assert f"`jaato {name}" in text


def test_architecture_names_every_module_of_the_core() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    for path in (ROOT / "shared").iterdir():
        name = path.name + ("/" if path.is_dir() else "")
        if not name.startswith(("_", ".")) and name != "py.typed":
            assert f"`{name}" in text, f"docs/architecture.md does not mention {name}"
