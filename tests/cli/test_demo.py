"""`jaato demo`: the real engine and tools on a folder, and its recording."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from support.command import ROOT, jaato

from shared.cli.demo.record import recording
from shared.cli.demo.sample import FILES


def test_it_works_on_the_folder_it_is_given(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# Hello\n")
    (tmp_path / "main.py").write_text("# TODO: everything\n")
    done = jaato("demo", str(tmp_path), cwd=tmp_path)
    assert done.returncode == 0
    assert "2 files (1 .md, 1 .py)" in done.stdout or "2 files (1 .py, 1 .md)" in done.stdout
    assert "Begin with README.md (Hello)" in done.stdout
    assert "1 line mentions TODO or FIXME" in done.stdout
    assert "permission denied for cli" in done.stdout
    for name in ("reader", "note-hunter", "historian"):
        assert f"✓ {name} completed" in done.stdout
    assert "◐ essayist partial" in done.stdout, "it runs into its budget"
    assert "■ wanderer cancelled" in done.stdout
    assert "\x1b[" not in done.stdout, "no colours in a pipe"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["README.md", "main.py"]


def test_an_empty_folder(tmp_path: Path) -> None:
    done = jaato("demo", cwd=tmp_path)
    assert done.returncode == 0
    assert "The folder is empty" in done.stdout
    assert "0 lines mention TODO" in done.stdout


@pytest.fixture(scope="module")
def recorded() -> str:
    return recording()


def test_the_picture_in_the_readme_is_what_the_code_draws(recorded: str) -> None:
    assert (ROOT / "demo.svg").read_text(encoding="utf-8") == recorded, "run: jaato demo --record demo.svg"


def test_it_tells_the_whole_story(recorded: str) -> None:
    words = " ".join(re.sub("<[^>]+>", " ", recorded).split())
    for said in (
        "Five subagents can look at the same time.",
        "The reader and the historian came back in one digest.",
        "The essayist ran into its budget",
        "permission denied for cli",
        "2 lines mention TODO or FIXME",
        f"The folder holds {len(FILES)} files",
    ):
        assert said in words, said
    for mark in ("■ wanderer cancelled", "◐ essayist partial", "✓ main completed"):
        assert mark in words


def test_it_is_drawn_for_light_and_dark_ends_by_itself_and_needs_nothing_else(recorded: str) -> None:
    root = ElementTree.fromstring(recorded)
    style = "".join(each.text or "" for each in root.iter("{http://www.w3.org/2000/svg}style"))
    assert "prefers-color-scheme:dark" in style
    assert "prefers-reduced-motion" in style
    assert "infinite" not in style
    assert "http" not in recorded.replace("http://www.w3.org/2000/svg", ""), "nothing is loaded from anywhere"
    assert "<script" not in recorded


def test_a_recording_of_a_folder_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("<b>&amp;</b>\n")
    picture = tmp_path / "picture.svg"
    done = jaato("demo", str(tmp_path), "--record", str(picture), cwd=tmp_path)
    assert done.stdout == f"wrote {picture}\n"
    ElementTree.fromstring(picture.read_text())
    assert "&lt;b&gt;&amp;amp;&lt;/b&gt;" in picture.read_text()
