"""A process that is killed at any moment loses nothing it has told anybody, and nothing is told twice."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path

import pytest
from support.stores import python

KILLS = 240


@pytest.mark.timeout(900)
def test_kill_9_at_random_moments_under_load(tmp_path: Path) -> None:
    seed = random.randrange(10**6)
    process = python(
        "import support.kills as k, sys; k.begin(sys.argv[1:])",
        str(tmp_path),
        str(KILLS),
        str(seed),
        stderr=subprocess.PIPE,
    )
    output, errors = process.communicate(timeout=850)
    assert process.returncode == 0, f"seed {seed}: {errors[-4000:]}"
    seen = json.loads(output)
    assert seen["kills"] == KILLS
    assert seen["completed"] > 50, "it worked between the kills"
    assert seen["interrupted"] > 5, "some were killed at work"
    assert seen["letters"] > 5, "some were told something"
