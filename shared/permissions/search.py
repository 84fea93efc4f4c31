"""Where a policy comes from when the host names none, and how far a project's own file is trusted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from shared.config import jaato_home, permission_config_path
from shared.permissions.call import SHELL_TOOLS
from shared.permissions.policy import Policy, stricter
from shared.permissions.policy_file import load_policy

PROJECT_FILES = ("permissions.json", ".permissions.json", ".jaato/permissions.json")


def find_policy(workspace: Path, *, trust_workspace: bool | Callable[[], bool] = False) -> Policy:
    """The policy in force: environment, project, user; without any, every call is asked about.

    Whether the workspace is trusted is asked after its file was read, so that the answer is about what was read.
    """
    if (named := permission_config_path()) is not None:
        return load_policy(named)
    user = list(_user_files())
    project = next(_existing(workspace / name for name in PROJECT_FILES), None)
    mine = next(_existing(iter(user)), None)
    if project is None or any(_same(project, path) for path in user):
        found = project or mine
        return load_policy(found) if found else Policy(default="ask")
    theirs = load_policy(project)
    if trust_workspace() if callable(trust_workspace) else trust_workspace:
        return theirs
    return narrowed(load_policy(mine) if mine else Policy(default="ask"), theirs)


def narrowed(base: Policy, project: Policy) -> Policy:
    """The base policy with the restrictions of an untrusted project file, and nothing that widens."""
    if base.problem or project.problem:
        return base if base.problem else project
    return replace(
        base,
        default=stricter(base.default, project.default) if project.states_default else base.default,
        blacklist=base.blacklist | project.blacklist,
        warnings=(*base.warnings, *_ignored(project)),
    )


def _ignored(project: Policy) -> Iterator[str]:
    parts = {
        "its whitelist": bool(project.whitelist),
        "defaultPolicy 'allow'": project.default == "allow",
        "its channel": project.channel is not None,
        "shellTools": project.shell_tools != SHELL_TOOLS,
    }
    hint = "the workspace is not trusted, so its policy may only narrow (look at it with `jaato trust`)"
    for what, present in parts.items():
        if present:
            yield f"{project.source}: {what} is ignored: {hint}"


def _user_files() -> Iterator[Path]:
    yield jaato_home() / "permissions.json"
    yield Path.home() / ".config" / "jaato" / "permissions.json"


def _existing(paths: Iterator[Path]) -> Iterator[Path]:
    """Files that are there; a broken link or an unreadable folder counts, so that it is reported and not skipped."""
    for path in paths:
        try:
            path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            pass
        yield path


def _same(first: Path, second: Path) -> bool:
    try:
        return first.samefile(second)
    except OSError:
        return False
