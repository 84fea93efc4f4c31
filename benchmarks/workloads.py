"""The workloads, each measured in a process of its own: `python benchmarks/workloads.py NAME` prints JSON."""

from __future__ import annotations

import itertools
import json
import resource
import sys
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from scan import scan_1000, skills_50

Figures = dict[str, float]


def import_shared() -> Figures:
    """Import the package with the names a host uses."""
    begun = time.perf_counter()
    from shared import JaatoClient, JaatoRuntime, PluginRegistry  # noqa: F401

    return {"import_ms": _ms(begun), "rss_mb": _rss_kb() / 1024}


def one_turn(count: int = 1000) -> Figures:
    """Create a session with five tools and run one model turn with an instant model."""
    runtime = _runtime(lambda request: "done")
    _time(lambda: runtime.create_session("m").send_message("go"), 50)
    spawn = _time(lambda: runtime.create_session("m").send_message("go"), count)
    return {"session_us": spawn * 1e6, "construct_us": _time(lambda: runtime.create_session("m"), count) * 1e6}


def turns_20() -> Figures:
    """One session, 20 model turns with one trivial tool call each."""
    return _turns(20)


def turns_200() -> Figures:
    """One session, 200 model turns with one trivial tool call each."""
    return _turns(200)


def sessions_200() -> Figures:
    """200 sessions at once, 5 turns each, at 50 ms latency; the ideal is 0.25 s."""
    return _concurrent(200)


def sessions_1000() -> Figures:
    """1000 sessions at once, 5 turns each, at 50 ms latency; the ideal is 0.25 s."""
    return _concurrent(1000)


def cancel_100() -> Figures:
    """100 sessions inside a 5 s model call are cancelled; time until all have returned."""
    from shared.providers.script import Reply

    entered = threading.Semaphore(0)

    def script(request: Any) -> Any:
        entered.release()
        return Reply("never", delay=5.0)

    runtime = _runtime(script)
    sessions = [runtime.create_session("m") for _ in range(100)]
    threads = [threading.Thread(target=session.send_message, args=("go",)) for session in sessions]
    for thread in threads:
        thread.start()
    for _ in threads:
        entered.acquire()
    begun = time.perf_counter()
    for session in sessions:
        session.request_stop()
    for thread in threads:
        thread.join()
    return {"cancel_ms": _ms(begun)}


def spawn_one(count: int = 300) -> Figures:
    """Spawn a subagent with five tools and wait for its one model turn, with an instant model."""
    spawn = _host(lambda request: "done", max_total_spawns=10 * count)
    numbers = itertools.count()
    _time(lambda: spawn(task=f"task {next(numbers)}"), 30)
    return {"spawn_us": _time(lambda: spawn(task=f"task {next(numbers)}"), count) * 1e6}


def subagents_200() -> Figures:
    """200 background subagents at once, 5 turns each, at 50 ms latency; the ideal is 0.25 s."""
    return _background(200)


def subagents_1000() -> Figures:
    """1000 background subagents at once, 5 turns each, at 50 ms latency; the ideal is 0.25 s."""
    return _background(1000)


def parallel_10() -> Figures:
    """A parent that makes 10 parallel spawn calls in one turn; three model calls of 50 ms are the ideal 150 ms."""
    from shared.providers.script import Reply
    from shared.types import Role

    def script(request: Any) -> Any:
        if "You are a subagent" in request.system:
            return Reply("done", delay=0.05)
        spoken = sum(message.role is Role.MODEL for message in request.messages)
        calls = tuple(("spawn_subagent", {"task": f"part {part}"}) for part in range(10))
        return Reply("", calls, delay=0.05) if spoken == 0 else Reply("all done", delay=0.05)

    client = _client(script, max_concurrent=10)
    begun = time.perf_counter()
    client.send_message("go")
    wall = _ms(begun)
    return {"wall_ms": wall, "times_ideal": wall / 150}


def cancel_children_100() -> Figures:
    """A parent with 100 children inside a 5 s model call is stopped; time until all have ended and it has returned."""
    from shared.providers.script import Reply

    entered = threading.Semaphore(0)

    def script(request: Any) -> Any:
        if "You are a subagent" in request.system:
            entered.release()
            return Reply("never", delay=5.0)
        return Reply("", tuple(("spawn_subagent", {"task": f"part {part}"}) for part in range(100)))

    client = _client(script, max_concurrent=100, max_children=100)
    thread = threading.Thread(target=client.send_message, args=("go",))
    thread.start()
    for _ in range(100):
        entered.acquire()
    begun = time.perf_counter()
    client.stop()
    thread.join()
    return {"cancel_ms": _ms(begun)}


def _background(count: int) -> Figures:
    from shared.providers.script import Reply
    from shared.types import Role

    def script(request: Any) -> Any:
        spoken = sum(message.role is Role.MODEL for message in request.messages)
        return Reply("", (("tool_1", {"value": 1}),), delay=0.05) if spoken < 4 else Reply("done", delay=0.05)

    limits = {"max_concurrent": count, "max_children": count, "max_total_spawns": 2 * count}
    client = _client(script, **limits)
    tools = client.get_runtime().registry.get_plugin("subagent").get_executors()
    before = _rss_kb()
    begun = time.perf_counter()
    started = [tools["spawn_subagent"](task=f"task {number}", background=True) for number in range(count)]
    answer = tools["wait_for_subagents"](ids=[each["agent_id"] for each in started])
    wall = time.perf_counter() - begun
    assert answer["count"] == count
    assert all(result["success"] for result in answer["results"])
    return {"wall_s": wall, "times_ideal": wall / 0.25, "kb_each": (_rss_kb() - before) / count}


def _host(script: Callable[[Any], Any], **limits: int) -> Callable[..., Any]:
    """The spawn tool as host code calls it."""
    tools = _client(script, **limits).get_runtime().registry.get_plugin("subagent").get_executors()
    executor: Callable[..., Any] = tools["spawn_subagent"]
    return executor


def _client(script: Callable[[Any], Any], **limits: int) -> Any:
    from shared import JaatoClient, PluginRegistry
    from shared.providers.script import ScriptProvider

    registry = PluginRegistry()
    registry.discover()
    registry.register_plugin(_five(), expose=True)
    registry.expose_tool("subagent", {"auto_discover_profiles": False, **limits})
    client = JaatoClient(provider_name="script")
    client.register_provider("script", ScriptProvider(script))
    client.connect()
    client.configure_tools(registry, permissions="allow")
    _clients.append(client)  # host code acts for the main session, which must live
    return client


_clients: list[Any] = []


def _turns(count: int) -> Figures:
    from shared.providers.script import Reply, ScriptProvider

    stamps: list[float] = []

    def script(request: Any) -> Any:
        stamps.append(time.perf_counter())
        return Reply("", (("tool_1", {"value": 1}),)) if len(stamps) <= count else "done"

    runtime = _runtime(lambda request: "warm")
    runtime.create_session("m").send_message("warm up")
    runtime.register_provider("script", ScriptProvider(script))
    session = runtime.create_session("m")
    begun = time.perf_counter()
    session.send_message("go")
    total = time.perf_counter() - begun
    gaps = [later - earlier for earlier, later in pairwise(stamps)]
    edge = max(1, len(gaps) // 10)
    return {
        "turn_us": total / count * 1e6,
        "first_us": sum(gaps[:edge]) / edge * 1e6,
        "last_us": sum(gaps[-edge:]) / edge * 1e6,
    }


def _concurrent(count: int) -> Figures:
    from shared.providers.script import Reply
    from shared.types import Role

    def script(request: Any) -> Any:
        spoken = sum(message.role is Role.MODEL for message in request.messages)
        return Reply("", (("tool_1", {"value": 1}),), delay=0.05) if spoken < 4 else Reply("done", delay=0.05)

    runtime = _runtime(script)
    runtime.create_session("m")
    before = _rss_kb()
    begun = time.perf_counter()
    threads = [threading.Thread(target=lambda: runtime.create_session("m").send_message("go")) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wall = time.perf_counter() - begun
    return {"wall_s": wall, "times_ideal": wall / 0.25, "kb_each": (_rss_kb() - before) / count}


def _runtime(script: Callable[[Any], Any]) -> Any:
    from shared import JaatoRuntime, PluginRegistry
    from shared.providers.script import ScriptProvider

    registry = PluginRegistry()
    registry.register_plugin(_five(), expose=True)
    runtime = JaatoRuntime("script")
    runtime.register_provider("script", ScriptProvider(script))
    runtime.configure_plugins(registry, permissions="allow")
    return runtime


def _five() -> Any:
    from shared import Plugin, tool

    class Five(Plugin):
        """Five trivial tools."""

        name = "five"

        @tool
        def tool_1(self, value: int) -> int:
            """Add one."""
            return value + 1

        @tool
        def tool_2(self, text: str) -> str:
            """Give it back."""
            return text

        tool_3 = tool(name="tool_3")(lambda self: "3")
        tool_4 = tool(name="tool_4")(lambda self: "4")
        tool_5 = tool(name="tool_5")(lambda self: "5")

    return Five()


def _time(call: Callable[[], object], count: int) -> float:
    begun = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - begun) / count


def _ms(begun: float) -> float:
    return (time.perf_counter() - begun) * 1000


def _rss_kb() -> float:
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


WORKLOADS: dict[str, Callable[[], Figures]] = {
    work.__name__: work
    for work in (
        *(import_shared, one_turn, turns_20, turns_200, sessions_200, sessions_1000, cancel_100),
        *(spawn_one, subagents_200, subagents_1000, parallel_10, cancel_children_100),
        *(scan_1000, skills_50),
    )
}

if __name__ == "__main__":
    print(json.dumps(WORKLOADS[sys.argv[1]]()))
