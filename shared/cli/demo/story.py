"""The story of the demo: what the scripted model and its subagents say; what they find is up to the real tools."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from shared.providers.base import ModelRequest
from shared.providers.script import Reply
from shared.subagents.inbox import HEAD
from shared.types import Role, TokenUsage, ToolResult

QUESTION = "What is in this folder, and what is worth reading first?"

# Reading, planning and delegating need no question; the model will try something else and be told no.
POLICY = {
    "version": "1.0",
    "defaultPolicy": "deny",
    "whitelist": {
        "tools": ["spawn_subagent", "cancel_subagent", "wait_for_subagents", "set_shared_state", "get_shared_state"],
        "patterns": ["git log *"],
        "arguments": {},
    },
}
TASKS = {
    "reader": "Read the most telling file and say in a line what it is about.",
    "note-hunter": "Count the lines that mention TODO or FIXME.",
    "historian": "Say in a line what was committed last.",
    "essayist": "Read file after file and write a chapter about each.",
    "wanderer": "Think about everything, for as long as it takes.",
}
MAIN, ESSAYIST, WANDERER = "main", "essayist", "wanderer"
BUDGET = 5_000  # tokens of the essayist, who needs more
FOREVER = 600.0
PACE = 1.6  # how slowly the model speaks, so that a person can follow

Results = Mapping[str, ToolResult]


def speaker(request: ModelRequest) -> str:
    """Who asks for a reply: the agent whose task stands at the beginning of the history."""
    first = request.messages[0].text or "" if request.messages else ""
    return next((name for name, task in TASKS.items() if task in first), MAIN)


def reply_to(request: ModelRequest) -> Reply:
    """What the model says next, which depends on what the tools really answered."""
    name = speaker(request)
    spoken = sum(message.role is Role.MODEL for message in request.messages)
    results = {result.name: result for message in request.messages for result in message.results}
    if name == WANDERER:
        return Reply("never said", delay=FOREVER)
    if name == ESSAYIST:
        return _essay(spoken, request.messages[0].text or "")
    if name == MAIN:
        return _main(spoken, results, request)
    return _child(name, spoken, request.messages[0].text or "", results)


def _main(spoken: int, results: Results, request: ModelRequest) -> Reply:
    match spoken:
        case 0:
            steps = ["List the files", "Let subagents look closer", "Sum up"]
            plan = ("create_plan", {"title": "Get to know the folder", "steps": steps})
            return _said("I will plan and list the files.", plan, ("list_files", {}), delay=1.2, tokens=900)
        case 1:
            calls = [("spawn_subagent", spawn) for spawn in _spawns(results.get("list_files"))]
            return _said("Five subagents can look at the same time.", *calls, delay=1.6, tokens=1100)
        case 2:
            done = ("update_step", {"step": 1, "status": "completed"})
            return _said("While they work I tick off the first step.", done, delay=5.2, tokens=1900)
        case 3:
            wait = ("wait_for_subagents", {"ids": ["note-hunter", "historian", "reader", ESSAYIST], "mode": "all"})
            return _said(_reported(request), wait, delay=1.4, tokens=2300)
        case 4:
            stop = {"agent_id": WANDERER, "reason": "the others have found enough"}
            return _said(_of_the_essayist(results), ("cancel_subagent", stop), delay=1.8, tokens=3000)
        case 5:
            tidy = ("cli", {"command": "git log -1 && rm -rf build"})
            return _said("Tidying up, if I may.", tidy, delay=1.4, tokens=3200)
        case 6:
            ticks = [("update_step", {"step": step, "status": "completed"}) for step in (2, 3)]
            read = ("get_shared_state", {"key": "findings/reader"})
            text = "That was not allowed, so everything stays as it is. What did they note down?"
            return _said(text, *ticks, ("list_shared_state", {}), read, delay=1.6, tokens=3400)
        case _:
            return _said(_summary(results), delay=1.8, tokens=3800)


def _spawns(listed: ToolResult | None) -> list[dict[str, object]]:
    telling, files = _telling(listed), _files(listed)
    spawns: list[dict[str, object]] = []
    for name, task in TASKS.items():
        spawn: dict[str, object] = {"name": name, "task": task, "background": True}
        if name == "reader":
            spawn["context"] = telling
        if name == ESSAYIST:
            spawn["context"] = "\n".join(files[:6]) or telling
            spawn["inline_config"] = {"budget": {"total_tokens": BUDGET}}
        spawns.append(spawn)
    return spawns


def _child(name: str, spoken: int, task: str, results: Results) -> Reply:
    looks: dict[str, tuple[str, dict[str, object], float]] = {
        "reader": ("read_file", {"path": _context(task), "end_line": 5}, 0.9),
        "note-hunter": ("search_files", {"pattern": "TODO|FIXME", "max_results": 200}, 2.3),
        "historian": ("cli", {"command": "git log -1 --format=%s"}, 1.3),
    }
    tool, args, delay = looks[name]
    finding = _finding(name, results.get(tool))
    match spoken:
        case 0:
            return _said("", (tool, args), delay=delay, tokens=600)
        case 1:
            note = ("set_shared_state", {"key": f"findings/{name}", "value": finding})
            return _said("", note, delay=delay, tokens=800)
        case _:
            return _said(finding, delay=delay, tokens=900)


def _essay(spoken: int, task: str) -> Reply:
    files = _context(task).splitlines()
    chapter = f"Chapter {spoken}, which I owe to {files[(spoken - 1) % len(files)]}." if spoken else ""
    read = ("read_file", {"path": files[spoken % len(files)], "end_line": 10})
    return _said(chapter, read, delay=1.9, tokens=800 + 350 * spoken)


def _said(text: str, *calls: tuple[str, Mapping[str, object]], delay: float, tokens: int) -> Reply:
    made = tuple((name, dict(args)) for name, args in calls)
    return Reply(text, made, delay=delay * PACE, usage=TokenUsage.of(tokens, 40 + len(text) // 3))


def _reported(request: ModelRequest) -> str:
    """Who came back by itself: the engine announces finished subagents in one digest."""
    texts = [message.text or "" for message in request.messages]
    digests = [text for text in texts if HEAD in text]
    names = [name for name in TASKS if any(f"'{name}'" in digest for digest in digests)]
    if not names:
        return "Now I wait for them; that costs no model call."
    return f"{_listed(names)} came back in one digest. I wait for the others; that costs no model call."


def _of_the_essayist(results: Results) -> str:
    waited = results.get("wait_for_subagents")
    found = waited.result.get("results", []) if waited is not None and isinstance(waited.result, Mapping) else []
    reasons = [each.get("reason") for each in found if isinstance(each, Mapping)]
    if "budget" in reasons:
        return "The essayist ran into its budget and handed over what it had. The wanderer can stop."
    return "That is enough: the wanderer can stop."


def _finding(name: str, result: ToolResult | None) -> str:
    if result is None or result.is_error:
        return "nothing to see"
    if name == "note-hunter":
        count = 0 if result.text.startswith("No line") else len(_lines(result))
        return f"{count} {'line mentions' if count == 1 else 'lines mention'} TODO or FIXME"
    if name == "historian":
        said = result.result if isinstance(result.result, Mapping) else {}
        output = str(said.get("output", "")).strip()
        return f"last commit: {output}" if output and not said.get("exit_code") else "nothing was committed yet"
    first = next((line for line in _lines(result) if re.search(r"\w", line.split("\t")[-1])), "an empty file")
    return re.sub(r"^\s*\d+\t", "", first).strip("# ") or "an empty file"


def _context(task: str) -> str:
    found = re.search(r"<context>\n(.*?)\n</context>", task, re.DOTALL)
    return found[1].strip() if found else "README.md"


def _lines(result: ToolResult | None) -> list[str]:
    lines = result.text.splitlines() if result is not None and not result.is_error else []
    return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("[")]


def _files(result: ToolResult | None) -> list[str]:
    return [line for line in _lines(result) if not line.startswith("No file ")]


def _telling(result: ToolResult | None) -> str:
    files = _files(result)
    preferred = [name for name in files if re.search(r"(?i)(^|/)readme", name)]
    texts = [name for name in files if name.endswith((".md", ".txt", ".py", ".toml", ".json"))]
    return (sorted(preferred, key=len) or texts or files or ["README.md"])[0]


def _listed(names: list[str]) -> str:
    shown = [f"The {names[0]}", *(f"the {name}" for name in names[1:])]
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def _summary(results: Results) -> str:
    files = _files(results.get("list_files"))
    if not files:
        return "The folder is empty: there is nothing to read yet."
    suffixes: dict[str, int] = {}
    for name in files:
        suffix = Path(name).suffix or "no suffix"
        suffixes[suffix] = suffixes.get(suffix, 0) + 1
    common = sorted(suffixes.items(), key=lambda item: -item[1])[:4]
    kinds = ", ".join(f"{count} {suffix}" for suffix, count in common) or "nothing"
    state = results.get("get_shared_state")
    about = state.result.get("value") if state is not None and isinstance(state.result, Mapping) else None
    many = "1 file" if len(files) == 1 else f"{len(files)} files"
    return (
        f"The folder holds {many} ({kinds}). Begin with {_telling(results.get('list_files'))}"
        f"{f' ({about})' if about else ''}; what the subagents found is in the shared state."
    )
