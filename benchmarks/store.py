"""What storing everything costs: the workloads with subagents, without a store and with one.

python benchmarks/store.py [--repeat 3]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from run import measure  # noqa: E402

NAMES = ("spawn_one", "parallel_10", "subagents_200", "subagents_1000", "cancel_children_100")


def main() -> None:
    """Measure both, print them side by side, and write JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3)
    repeat = parser.parse_args().repeat
    results = {}
    for name in NAMES:
        off = measure(name, repeat)
        with tempfile.TemporaryDirectory() as folder:
            on = measure(name, repeat, store=f"{folder}/runs{{}}.db")
        results[name] = {"off": off, "on": on}
        figures = "  ".join(f"{figure} {off[figure]:,.2f} → {on[figure]:,.2f}" for figure in off)
        print(f"{name:<20} {figures}", flush=True)
    place = HERE / "results" / "store.json"
    place.write_text(json.dumps({"python": sys.version.split()[0], "results": results}, indent=2) + "\n")
    print(f"written to {place}")


if __name__ == "__main__":
    main()
