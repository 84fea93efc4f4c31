"""The `jaato` command as a process of its own, in a bare environment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def jaato(*args: str, cwd: Path, stdin: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a folder that is also its home, and check that it never shows a traceback."""
    keep = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    env = {**keep, "HOME": str(cwd), "PYTHONPATH": str(ROOT), "JAATO_TRACE_LOG": "", **variables}
    command = [sys.executable, "-m", "shared.cli", *args]
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=100, input=stdin)
    assert "Traceback" not in done.stderr + done.stdout, done
    return done
