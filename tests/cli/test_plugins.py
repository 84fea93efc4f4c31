"""`jaato plugins` as a person meets it."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

from support.command import jaato as run_jaato
from support.plugin_folders import command, write_plugin


def jaato(*args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return run_jaato(*args, cwd=cwd, JAATO_HOME=str(cwd / "home"))


def test_every_plugin_is_listed_with_its_source_state_tools_agents_and_problems(tmp_path: Path) -> None:
    place = tmp_path / "home" / "plugins"
    write_plugin(place / "good", {"name": "good", "version": "1.2", "tools": [command("one"), command("two")]})
    write_plugin(place / "half", {"name": "half", "tools": [command("one"), {"name": "x", "comand": "y"}]})
    write_plugin(place / "broken", "{")
    write_plugin(tmp_path / ".jaato" / "plugins" / "theirs", {"name": "theirs"})
    done = jaato("plugins", "--json", cwd=tmp_path)
    assert done.returncode == 1, "one of them cannot be loaded"
    rows = {row["name"]: row for row in json.loads(done.stdout)}
    assert rows["cli"]["source"] == "built-in"
    assert rows["good"] == {
        "name": "good",
        "version": "1.2",
        "source": f"user {place / 'good'}",
        "state": "ok",
        "tools": ["one", "two"],
        "agents": [],
        "problems": [],
    }
    assert rows["half"]["state"] == "partly"
    assert "did you mean 'command'" in rows["half"]["problems"][0]
    assert rows["broken"]["state"] == "failed"
    assert "plugin.json:1: json-unreadable" in rows["broken"]["problems"][0]
    assert rows["theirs"]["state"] == "untrusted"
    assert rows["sqlite-analyst"]["agents"] == ["sqlite-analyst"]
    table = jaato("plugins", cwd=tmp_path).stdout
    assert table.splitlines()[0].split() == ["name", "version", "source", "state", "tools", "agents", "problems"]
    assert "did you mean 'command'" in table
    assert re.search(r"^theirs +project +untrusted", table, re.MULTILINE)
    assert re.search(r"^sqlite-analyst +1\.0\.0 +built-in +ok", table, re.MULTILINE), "not where it is installed"
    assert max(map(len, table.splitlines()[:5])) <= 80, "it fits into a terminal"
    assert not jaato("plugins", cwd=tmp_path).stderr, "the table says it all"


def test_code_is_tried_only_when_asked_for(tmp_path: Path) -> None:
    code = "import pathlib\npathlib.Path('ran').touch()\ndef register(api): raise RuntimeError('boom')"
    write_plugin(tmp_path / "home" / "plugins" / "bad", {"id": "bad"}, init_py=code)
    assert jaato("plugins", cwd=tmp_path).returncode == 0
    assert not (tmp_path / "ran").exists()
    done = jaato("plugins", "--load", cwd=tmp_path)
    assert done.returncode == 1
    assert "boom" in done.stdout


def test_nothing_of_an_untrusted_project_runs_even_when_asked_to_load(tmp_path: Path) -> None:
    code = "import pathlib\npathlib.Path('ran').touch()\ndef register(api): pass"
    write_plugin(tmp_path / ".jaato" / "plugins" / "p", {"id": "p"}, init_py=code)
    assert "untrusted" in jaato("plugins", "--load", cwd=tmp_path).stdout
    assert not (tmp_path / "ran").exists()


def test_names_cannot_draw_over_the_table(tmp_path: Path) -> None:
    write_plugin(tmp_path / "home" / "plugins" / "x", {"name": "x", "version": "1\x1b[2J\n0", "bad\x1b[2J": 1})
    assert "\x1b" not in jaato("plugins", cwd=tmp_path).stdout
