"""For all tests: clients store nothing unless a test says so, and may have a user's folder of their own."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

os.environ["JAATO_STORE"] = "off"  # or the checkout would fill with their runs

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # So it is for what a script starts in the background; the programs that tests interrupt would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What jaato keeps for a user is looked for here, whatever the machine has."""
    monkeypatch.setenv("JAATO_HOME", str(tmp_path / "home"))
    return tmp_path / "home"
