"""`jaato demo`: a scripted model works on a folder of yours with real tools; no key, no network."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import click

from shared.cli.view import TurnView
from shared.client import JaatoClient
from shared.providers.base import ModelRequest
from shared.providers.script import Reply, ScriptProvider, Step
from shared.registry import PluginRegistry
from shared.types import Role, ToolResult

QUESTION = "What is in this folder, and what looks worth reading first?"

# Only reading is allowed without a question; the model will try something else and be told no.
POLICY = {
    "version": "1.0",
    "defaultPolicy": "deny",
    "whitelist": {"tools": [], "patterns": ["ls -la", "git log *"], "arguments": {}},
}


@click.command(epilog="Example: jaato demo ~/code/my-project")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path), default=".")
def demo(folder: Path) -> None:
    """Watch a scripted model work on FOLDER with real tools, offline."""
    registry = PluginRegistry()
    registry.discover()
    for name in ("cli", "file_edit", "todo"):
        registry.expose_tool(name)
    view = TurnView(sys.stdout, speaks=True)
    with JaatoClient(provider_name="script", workspace=folder) as client:
        client.register_provider("script", ScriptProvider(play))
        client.connect()
        client.configure_tools(registry, permissions=POLICY)
        client.set_ui_hooks(view)
        view.say("you  ", QUESTION, "bold green")
        client.send_message(QUESTION)
        view.flush()
        used = client.get_runtime().ledger.summarize()
        turn = client.get_turn_accounting()[-1]
        view.console.print(
            f"[dim]{turn['model_calls']} model calls (scripted), {len(turn['function_calls'])} tool calls (real), "
            f"{used['total_tokens']:,} tokens estimated, {turn['duration_seconds']:.2f} s[/]"
        )


def play(request: ModelRequest) -> Step:
    """The scripted model: what it says next depends on what the tools really answered."""
    results = {result.name: result for message in request.messages for result in message.results}
    spoken = sum(message.role is Role.MODEL for message in request.messages)
    match spoken:
        case 0:
            steps = ["List the files", "Read the most telling one", "Sum up"]
            return Reply("I will plan, then look.", (("create_plan", {"title": "Get to know it", "steps": steps}),))
        case 1:
            return Reply(
                "Listing files and recent history at the same time.",
                (
                    ("list_files", {}),
                    ("search_files", {"pattern": "TODO|FIXME", "max_results": 50}),
                    ("cli", {"command": "git log --oneline -5"}),
                ),
            )
        case 2:
            return Reply("", (("read_file", {"path": _telling(results.get("list_files")), "end_line": 40}),))
        case 3:
            return Reply("Tidying up, if I may.", (("cli", {"command": "ls -la && rm -rf build"}),))
        case 4:
            done = [("update_step", {"step": step, "status": "completed"}) for step in (1, 2, 3)]
            return Reply("That was not allowed, so I leave everything as it is.", tuple(done))
        case _:
            return Reply(_summary(results))


def _files(result: ToolResult | None) -> list[str]:
    lines = result.text.splitlines() if result is not None and not result.is_error else []
    return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("[")]


def _telling(result: ToolResult | None) -> str:
    files = _files(result)
    preferred = [name for name in files if re.search(r"(?i)(^|/)readme", name)]
    texts = [name for name in files if name.endswith((".md", ".txt", ".py", ".toml", ".json"))]
    return (sorted(preferred, key=len) or texts or files or ["README.md"])[0]


def _summary(results: dict[str, ToolResult]) -> str:
    files = _files(results.get("list_files"))
    suffixes: dict[str, int] = {}
    for name in files:
        suffix = Path(name).suffix or "no suffix"
        suffixes[suffix] = suffixes.get(suffix, 0) + 1
    common = sorted(suffixes.items(), key=lambda item: -item[1])[:4]
    kinds = ", ".join(f"{count} {suffix}" for suffix, count in common) or "nothing"
    notes = len(_files(results.get("search_files")))
    return (
        f"The folder holds {len(files)} files ({kinds}). "
        f"I would begin with {_telling(results.get('list_files'))}. "
        f"{notes} lines mention TODO or FIXME."
    )
