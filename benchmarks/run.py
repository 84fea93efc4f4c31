"""Runs every workload in fresh processes, prints a table of medians and writes JSON.

    python benchmarks/run.py [NAME ...] [--repeat 3] [--json FILE]

Figures depend on the machine; ratios (times_ideal, first to last turn) travel better than seconds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from workloads import WORKLOADS  # noqa: E402


def measure(name: str, repeat: int, *, store: str = "off") -> dict[str, float]:
    """Medians over fresh processes, one at a time; `store` is what JAATO_STORE says, `{}` the number of the run."""
    runs = []
    for number in range(repeat):
        command = [sys.executable, str(HERE / "workloads.py"), name]
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=HERE.parent, env=_environment(store.format(number))
        )
        if done.returncode:
            sys.exit(f"{name} failed:\n{done.stderr}")
        runs.append(json.loads(done.stdout))
    return {figure: statistics.median(run[figure] for run in runs) for figure in runs[0]}


def _environment(store: str) -> dict[str, str]:
    import os

    return {**os.environ, "PYTHONPATH": str(HERE.parent), "JAATO_STORE": store}


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"workloads: {', '.join(WORKLOADS)}")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", type=Path, default=HERE / "results" / "latest.json")
    given = parser.parse_args()
    if unknown := set(given.names) - set(WORKLOADS):
        parser.error(f"unknown workload {', '.join(sorted(unknown))}; known: {', '.join(WORKLOADS)}")
    results = {}
    for name in given.names or WORKLOADS:
        results[name] = measure(name, given.repeat)
        figures = "  ".join(f"{figure} {value:,.2f}" for figure, value in results[name].items())
        print(f"{name:<15} {figures}", flush=True)
    given.json.parent.mkdir(parents=True, exist_ok=True)
    given.json.write_text(json.dumps({"python": sys.version.split()[0], "results": results}, indent=2) + "\n")
    print(f"written to {given.json}")


if __name__ == "__main__":
    main()
