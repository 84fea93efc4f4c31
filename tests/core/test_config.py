"""The environment is read in one place, and empty values count as not set."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import shared
from shared import config


def test_nothing_else_reads_the_environment() -> None:
    package = Path(shared.__file__).parent
    for path in package.rglob("*.py"):
        if path.name != "config.py" and re.search(r"\bos\.(environ|getenv)\b", path.read_text(encoding="utf-8")):
            pytest.fail(f"{path.relative_to(package)} reads the environment")


def test_empty_and_blank_values_are_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIRST", "  ")
    monkeypatch.setenv("SECOND", " two ")
    assert config.env("FIRST") is None
    assert config.env("FIRST", "SECOND") == "two"
    monkeypatch.delenv("SECOND")
    assert config.env("FIRST", "SECOND") is None


def test_the_home_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("JAATO_HOME", raising=False)
    assert config.jaato_home() == tmp_path / ".jaato"
    monkeypatch.setenv("JAATO_HOME", "~/elsewhere")
    assert config.jaato_home() == tmp_path / "elsewhere"
