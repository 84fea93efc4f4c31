"""Real packages for tests: written, built and installed into a folder of their own, without a network."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

import shared

CHECKOUT = Path(shared.__file__).parent.parent


def install(target: Path, sources: Path, name: str, module: str, entry_points: Mapping[str, str]) -> None:
    """Build a package from one module's source and install it into `target`."""
    project = sources / name
    package = project / "src" / name.replace("-", "_")
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(dedent(module), encoding="utf-8")
    entries = "\n".join(f'{key} = "{package.name}:{value}"' for key, value in entry_points.items())
    (project / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
        f'[project]\nname = "{name}"\nversion = "1.0.0"\ndependencies = ["jaato>=1.0.0"]\n'
        f'[project.entry-points."jaato.plugins"]\n{entries}\n',
        encoding="utf-8",
    )
    quiet = ["--quiet", "--disable-pip-version-check", "--no-input"]
    alone = ["--no-index", "--no-deps", "--no-build-isolation", "--target", str(target)]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", *quiet, *alone, str(project)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


def run_with(target: Path, code: str, **environment: str) -> Any:
    """Run code in a fresh interpreter that has these packages; returns the JSON it prints last."""
    paths = os.pathsep.join([str(target), str(CHECKOUT)])
    done = subprocess.run(
        [sys.executable, "-c", dedent(code)],
        env={**os.environ, "PYTHONPATH": paths, "JAATO_TRACE_LOG": "", **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
