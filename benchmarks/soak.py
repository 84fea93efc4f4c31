"""Runs thousands of subagents in one process and fails if anything grows: memory, threads, files, objects.

    python benchmarks/soak.py [COUNT]

Every tenth of the way it prints what the process holds. All kinds of runs are mixed: in the
foreground and background, with tools and plugins of their own, nested, continued, cancelled, failed.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import threading
import time
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from shared import JaatoClient, Plugin, PluginRegistry, TokenLedger, tool
from shared.plugins.subagent import SubagentPlugin, SubagentProfile
from shared.providers.base import ModelRequest
from shared.providers.script import Reply, ScriptProvider, Step
from shared.session import JaatoSession

WARM = 5  # tenths of the way after which nothing may grow any more: closed agents are remembered until then
LEAST = 2500
GROWTH_MB = 4.0  # what the allocator may take besides


class Desk(Plugin):
    """A plugin that each child of one profile has as an instance of its own, with an open file."""

    name = "desk"
    opened = 0

    def initialize(self, config: dict[str, Any] | None = None) -> None:
        """Open a file."""
        self.file = open(os.devnull) if config else None  # noqa: SIM115
        Desk.opened += self.file is not None

    def shutdown(self) -> None:
        """Close it."""
        if self.file is not None:
            self.file.close()
            Desk.opened -= 1

    @tool
    def look(self, text: str) -> str:
        """Say it back."""
        return text


class ShortLedger(TokenLedger):
    """Keeps few rows, so that it is full soon and what else grows can be seen."""

    KEPT_ROWS = 100


def child(request: ModelRequest) -> Step:
    """Do what the task says."""
    task = next(message.text for message in request.messages)
    answered = any(message.results for message in request.messages)
    match task.split()[0]:
        case "tool" if not answered:
            return Reply("", (("look", {"text": "x" * 200}),))
        case "nested" if not answered:
            calls = [("spawn_subagent", {"task": f"plain {n}", "background": bool(n)}) for n in range(2)]
            return Reply("", tuple(calls))
        case "blocked":
            return Reply("never", delay=600)
        case "failing":
            return RuntimeError("a bug")
    return "done"


@dataclass(frozen=True)
class Figures:
    """What the process holds."""

    runs: int
    rss_mb: float
    threads: int
    files: int
    objects: int
    sessions: int

    def __str__(self) -> str:
        return (
            f"{self.runs:>8,} runs  rss {self.rss_mb:7.1f} MB  threads {self.threads:3d}  files {self.files:3d}  "
            f"objects {self.objects:>9,}  sessions {self.sessions:3d}"
        )


class Soak:
    """One client, and the rounds that are done with it."""

    def __init__(self, store: Path | None) -> None:
        registry = PluginRegistry()
        registry.register_plugin(Desk(), expose=True)
        plugin = SubagentPlugin()
        registry.register_plugin(plugin)
        own = SubagentProfile("own", plugins=["desk"], plugin_configs={"desk": {"own": True}})
        deep = SubagentProfile("deep", plugins=["subagent", "desk"])
        settings = {
            "auto_discover_profiles": False,
            "max_total_spawns": 10**9,
            "max_children": 64,
            "max_depth": 2,
            "profiles": {"own": own, "deep": deep},
        }
        registry.expose_tool("subagent", settings)
        self._client = JaatoClient(provider_name="script", store=store or False)
        self._client.register_provider("script", ScriptProvider(child))
        self._client.connect(model="soak")
        self._client.configure_tools(registry, permissions="allow", ledger=ShortLedger())
        self._executors = plugin.get_executors()
        self.runs = 0

    def round(self) -> None:
        """A dozen runs of all kinds; all are closed in the end."""
        made = [
            self._call("spawn_subagent", task=f"plain {self.runs}"),
            self._call("spawn_subagent", task=f"tool {self.runs}"),
            self._call("spawn_subagent", task=f"tool {self.runs}", profile="own"),
            self._call("spawn_subagent", task=f"failing {self.runs}"),
            self._call("spawn_subagent", task=f"nested {self.runs}", profile="deep"),
            *(self._call("spawn_subagent", task=f"plain {self.runs} {n}", background=True) for n in range(3)),
        ]
        blocked = self._call("spawn_subagent", task=f"blocked {self.runs}", background=True)
        self._call("continue_subagent", agent_id=made[0]["agent_id"], message="more")
        self._call("wait_for_subagents", ids=[each["agent_id"] for each in made])
        self._call("cancel_subagent", agent_id=blocked["agent_id"])
        for each in (*made, blocked):
            self._call("close_subagent", agent_id=each["agent_id"])
        self.runs += len(made) + 2 + 2

    def figures(self) -> Figures:
        """What the process holds now."""
        gc.collect()
        objects = gc.get_objects()
        sessions = sum(isinstance(each, JaatoSession) for each in objects)
        files = len(os.listdir("/proc/self/fd"))
        return Figures(self.runs, _rss_mb(), threading.active_count(), files, len(objects), sessions)

    def close(self) -> weakref.ref[JaatoSession]:
        """End it; returns what should be gone."""
        session = weakref.ref(self._client.get_session())
        self._client.close()
        return session

    def _call(self, name: str, **args: Any) -> Any:
        answer = self._executors[name](args)
        assert "agent_id" in answer or "results" in answer, answer
        return answer


def _rss_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def grown(before: Figures, after: Figures) -> list[str]:
    """What is more than it was; memory may swing a little."""
    found = [name for name in ("files", "sessions") if getattr(after, name) > getattr(before, name)]
    if after.threads > before.threads + 2:
        found.append("threads")
    if after.objects > before.objects * 1.02 + 500:
        found.append("objects")
    if after.rss_mb > before.rss_mb + GROWTH_MB:
        found.append("rss_mb")
    return found


def main() -> int:
    """Do the rounds; 1 if anything grew."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int, nargs="?", default=10_000, help=f"how many runs, at least {LEAST}")
    parser.add_argument("--store", type=Path, help="keep the runs in this file")
    given = parser.parse_args()
    count = given.count
    if count < LEAST:
        parser.error(f"at least {LEAST}: with fewer, not even closed agents are forgotten")
    soak, history = Soak(given.store), list[Figures]()
    begun = time.perf_counter()
    for tenth in range(1, 11):
        while soak.runs < count * tenth / 10:
            soak.round()
        history.append(soak.figures())
        print(history[-1], flush=True)
    took = time.perf_counter() - begun
    wrong = grown(history[WARM - 1], history[-1])
    soak.close()
    if Desk.opened:
        wrong.append(f"{Desk.opened} plugins left open")
    print(f"{soak.runs:,} runs in {took:.1f} s; " + (f"grown: {', '.join(wrong)}" if wrong else "nothing grew"))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
