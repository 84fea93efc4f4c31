"""For all tests: no settings, keys or definitions of whoever runs them; clients store nothing unless a test says so."""

from __future__ import annotations

import os
import signal
import tempfile
from pathlib import Path

import pytest

_VENDORS = ("ANTHROPIC_", "GEMINI_", "GOOGLE_", "OLLAMA_", "OPENAI_", "OTEL_", "JAATO_")
_PLAIN = {"LOCATION", "MODEL_NAME", "PERMISSION_CONFIG_PATH", "PROJECT_ID"}
for _name in [name for name in os.environ if name in _PLAIN or name.startswith(_VENDORS)]:
    del os.environ[_name]
_user = tempfile.TemporaryDirectory(prefix="jaato-tests-", ignore_cleanup_errors=True)
os.environ["HOME"] = _user.name  # what hosts keep for a user is looked for here
os.environ["JAATO_STORE"] = "off"  # or the checkout would fill with their runs

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # So it is for what a script starts in the background; the programs that tests interrupt would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What jaato keeps for a user is looked for here, whatever the machine has."""
    monkeypatch.setenv("JAATO_HOME", str(tmp_path / "home"))
    return tmp_path / "home"
