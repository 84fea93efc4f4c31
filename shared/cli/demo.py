"""`jaato demo`: a scripted model and its subagents work on a folder of yours with real tools; no key, no network."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

import click
from rich.live import Live

from shared.cli.agent_tree import AgentTree
from shared.cli.view import TurnView
from shared.client import JaatoClient
from shared.providers.base import ModelRequest
from shared.providers.script import Reply, ScriptProvider, Step, last_user_text
from shared.registry import PluginRegistry
from shared.types import Role, ToolResult

QUESTION = "What is in this folder, and what looks worth reading first?"

# Reading, planning and delegating need no question; the model will try something else and be told no.
POLICY = {
    "version": "1.0",
    "defaultPolicy": "deny",
    "whitelist": {
        "tools": ["spawn_subagent", "cancel_subagent", "set_shared_state", "get_shared_state"],
        "patterns": ["git log *"],
        "arguments": {},
    },
}
TASKS = {
    "reader": "Read the most telling file and say in a line what it is about.",
    "note-hunter": "Count the lines that mention TODO or FIXME.",
    "historian": "Say in a line what was committed last.",
}
WANDERER = "Think about everything, for as long as it takes."
PACE = 0.6  # seconds that a scripted answer takes when somebody watches


@click.command(epilog="Example: jaato demo ~/code/my-project")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path), default=".")
def demo(folder: Path) -> None:
    """Watch a scripted model and its subagents work on FOLDER with real tools, offline."""
    registry = PluginRegistry()
    registry.discover()
    for name in ("cli", "file_edit", "todo"):
        registry.expose_tool(name)
    registry.expose_tool("subagent", {"auto_discover_profiles": False})
    view = TurnView(sys.stdout, speaks=True)
    tree = AgentTree()
    watched = view.console.is_terminal
    with JaatoClient(provider_name="script", workspace=folder) as client:
        client.register_provider("script", ScriptProvider(partial(play, pace=PACE if watched else 0.0)))
        client.connect()
        client.configure_tools(registry, permissions=POLICY)
        client.set_ui_hooks(tree)
        client.set_ui_hooks(view)
        view.say("you", QUESTION, "bold green")
        with Live(tree, console=view.console, refresh_per_second=8) if watched else nullcontext():
            client.send_message(QUESTION)
            view.flush()
        if not watched:
            view.console.print(tree)
        used = client.get_runtime().ledger.summarize()
        seconds = client.get_turn_accounting()[-1]["duration_seconds"]
        view.console.print(
            f"[dim]{used['calls']} model calls (scripted), {view.calls} tool calls (real), "
            f"{used['total_tokens']:,} tokens (estimated), {seconds:.2f} s[/]"
        )


def play(request: ModelRequest, *, pace: float = 0.0) -> Step:
    """The scripted model: what it says next depends on what the tools really answered."""
    reply = _reply(request)
    return replace(reply, delay=reply.delay or pace)


def _reply(request: ModelRequest) -> Reply:
    task = last_user_text(request)
    spoken = sum(message.role is Role.MODEL for message in request.messages)
    results = {result.name: result for message in request.messages for result in message.results}
    for name, wording in TASKS.items():
        if wording in task:
            return _child(name, spoken, task, results)
    if WANDERER in task:
        return Reply("never said", delay=600)
    return _main(spoken, results)


def _main(spoken: int, results: Mapping[str, ToolResult]) -> Reply:
    match spoken:
        case 0:
            steps = ["List the files", "Let subagents look closer", "Sum up"]
            plan = ("create_plan", {"title": "Get to know the folder", "steps": steps})
            return Reply("I will plan and list the files.", (plan, ("list_files", {})))
        case 1:
            telling = _telling(results.get("list_files"))
            spawns: list[dict[str, object]] = [
                {"name": name, "task": task, "context": telling} for name, task in TASKS.items()
            ]
            idle: dict[str, object] = {"name": "wanderer", "task": WANDERER, "background": True}
            calls = tuple(("spawn_subagent", spawn) for spawn in [idle, *spawns])
            return Reply("Three subagents can look at the same time; one more may wander about.", calls)
        case 2:
            stop = {"agent_id": "wanderer", "reason": "the others have found enough"}
            return Reply("Enough: the wanderer can stop.", (("cancel_subagent", stop),))
        case 3:
            return Reply("Tidying up, if I may.", (("cli", {"command": "git log -1 && rm -rf build"}),))
        case 4:
            done = [("update_step", {"step": step, "status": "completed"}) for step in (1, 2, 3)]
            return Reply("That was not allowed, so everything stays as it is.", (*done, ("list_shared_state", {})))
        case 5:
            keys = ("get_shared_state", {"key": "findings/reader"})
            return Reply("", (keys,))
        case _:
            return Reply(_summary(results))


def _child(name: str, spoken: int, task: str, results: Mapping[str, ToolResult]) -> Reply:
    looks: dict[str, tuple[str, dict[str, object]]] = {
        "reader": ("read_file", {"path": _context(task), "end_line": 5}),
        "note-hunter": ("search_files", {"pattern": "TODO|FIXME", "max_results": 200}),
        "historian": ("cli", {"command": "git log -1 --format=%s"}),
    }
    tool, args = looks[name]
    finding = _finding(name, results.get(tool))
    match spoken:
        case 0:
            return Reply("", ((tool, args),))
        case 1:
            return Reply("", (("set_shared_state", {"key": f"findings/{name}", "value": finding}),))
        case _:
            return Reply(finding)


def _finding(name: str, result: ToolResult | None) -> str:
    if result is None or result.is_error:
        return "nothing to see"
    if name == "note-hunter":
        return f"{len(_lines(result))} lines mention TODO or FIXME"
    if name == "historian":
        said = result.result if isinstance(result.result, Mapping) else {}
        return f"last commit: {str(said.get('output', '')).strip() or 'none'}"
    first = next((line for line in _lines(result) if re.search(r"\w", line.split("\t")[-1])), "an empty file")
    return re.sub(r"^\s*\d+\W+", "", first).strip("# ") or "an empty file"


def _context(task: str) -> str:
    found = re.search(r"<context>\n(.*?)\n</context>", task, re.DOTALL)
    return found[1].strip() if found else "README.md"


def _lines(result: ToolResult | None) -> list[str]:
    lines = result.text.splitlines() if result is not None and not result.is_error else []
    return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("[")]


def _telling(result: ToolResult | None) -> str:
    files = _lines(result)
    preferred = [name for name in files if re.search(r"(?i)(^|/)readme", name)]
    texts = [name for name in files if name.endswith((".md", ".txt", ".py", ".toml", ".json"))]
    return (sorted(preferred, key=len) or texts or files or ["README.md"])[0]


def _summary(results: Mapping[str, ToolResult]) -> str:
    files = _lines(results.get("list_files"))
    suffixes: dict[str, int] = {}
    for name in files:
        suffix = Path(name).suffix or "no suffix"
        suffixes[suffix] = suffixes.get(suffix, 0) + 1
    common = sorted(suffixes.items(), key=lambda item: -item[1])[:4]
    kinds = ", ".join(f"{count} {suffix}" for suffix, count in common) or "nothing"
    state = results.get("get_shared_state")
    about = state.result.get("value") if state is not None and isinstance(state.result, Mapping) else None
    return (
        f"The folder holds {len(files)} files ({kinds}). Begin with {_telling(results.get('list_files'))}"
        f"{f' ({about})' if about else ''}; what the subagents found is in the shared state."
    )
