"""Tool names of other hosts and what they are called here: the one table."""

from __future__ import annotations

import re
from collections.abc import Mapping

#: The plugin of each tool that comes with the package.
OWNERS: Mapping[str, str] = {
    "cli": "cli",
    **dict.fromkeys(
        ("read_file", "write_file", "edit_file", "undo_edit", "list_files", "search_files"),
        "file_edit",
    ),
    **dict.fromkeys(("create_plan", "update_step", "add_step", "complete_plan", "get_plan"), "todo"),
    "web_search": "web_search",
    **dict.fromkeys(("selectReferences", "listReferences", "readReference"), "references"),
    **dict.fromkeys(
        (
            "spawn_subagent",
            "continue_subagent",
            "send_to_subagent",
            "close_subagent",
            "cancel_subagent",
            "get_subagent_result",
            "wait_for_subagents",
            "list_active_subagents",
            "list_subagent_profiles",
            "set_shared_state",
            "get_shared_state",
            "list_shared_state",
        ),
        "subagent",
    ),
}
_READ, _WRITE, _EDIT = ("read_file",), ("write_file",), ("edit_file",)
_LIST, _SEARCH, _RUN, _WEB = ("list_files",), ("search_files",), ("cli",), ("web_search",)
_PLAN = ("create_plan", "update_step", "add_step", "complete_plan", "get_plan")
_SPAWN = (
    "spawn_subagent",
    "continue_subagent",
    "send_to_subagent",
    "close_subagent",
    "cancel_subagent",
    "get_subagent_result",
    "wait_for_subagents",
    "list_active_subagents",
    "list_subagent_profiles",
)
_NOTHING: tuple[str, ...] = ()  # a tool of that host for which there is none here

#: Without regard to case. A name is mapped to no more than it can do at home: what reads only notebooks reads nothing.
ELSEWHERE: Mapping[str, tuple[str, ...]] = {
    # Claude Code, and the many who follow it
    "read": _READ,
    "write": _WRITE,
    "edit": _EDIT,
    "multiedit": _EDIT,
    "glob": _LIST,
    "ls": _LIST,
    "grep": _SEARCH,
    "bash": _RUN,
    "websearch": _WEB,
    "todowrite": _PLAN,
    "todoread": ("get_plan",),
    "task": _SPAWN,
    "agent": _SPAWN,
    **dict.fromkeys(
        (
            "notebookread",
            "notebookedit",
            "webfetch",
            "bashoutput",
            "killshell",
            "killbash",
            "exitplanmode",
            "enterplanmode",
            "askuserquestion",
            "slashcommand",
            "skill",
            "listmcpresourcestool",
            "readmcpresourcetool",
            "taskoutput",
            "taskstop",
            "toolsearch",
        ),
        _NOTHING,
    ),
    # opencode
    "list": _LIST,
    "patch": _EDIT,
    "apply_patch": _EDIT,
    **dict.fromkeys(("lsp", "question", "external_directory", "doom_loop", "codesearch"), _NOTHING),
    # Gemini CLI
    "read_many_files": _READ,
    "list_directory": _LIST,
    "search_file_content": _SEARCH,
    "grep_search": _SEARCH,
    "replace": _EDIT,
    "run_shell_command": _RUN,
    "google_web_search": _WEB,
    "write_todos": _PLAN,
    **dict.fromkeys(
        ("web_fetch", "save_memory", "activate_skill", "get_internal_docs", "ask_user", "codebase_investigator"),
        _NOTHING,
    ),
    # pi
    "find": _LIST,
    # Code-Ally
    "line-edit": _EDIT,
    "todo-write": _PLAN,
    **dict.fromkeys(("tree", "batch", "explore", "bash-output", "kill-shell", "ask-user-question"), _NOTHING),
    # netclaw
    "file_read": _READ,
    "file_write": _WRITE,
    "file_edit": _EDIT,
    "file_list": _LIST,
    "shell_execute": _RUN,
    "spawn_agent": _SPAWN,
}
#: The tools that change something, which an agent that only plans must not have.
CHANGING = ("write_file", "edit_file", "undo_edit", "cli")

_MCP = re.compile(r"mcp__([^_](?:[^_]|_(?!_))*)(?:__(.+))?\Z", re.DOTALL)


def our_names(name: str) -> tuple[str, ...] | None:
    """What a tool is called here; empty if there is none like it, None if the name is nobody's."""
    if name in OWNERS:
        return (name,)
    return ELSEWHERE.get(name.lower())


def mcp_name(name: str) -> str | None:
    """The name of an MCP server's tool here, where a model sees `server__tool`; None if it is none."""
    if name in ("mcp__*", "mcp_*"):
        return "*__*"
    found = _MCP.match(name)
    return f"{found[1]}__{found[2] or '*'}" if found is not None else None


def plugin_of(tool: str) -> str | None:
    """The plugin that has a tool, if it comes with the package."""
    return OWNERS.get(tool)
