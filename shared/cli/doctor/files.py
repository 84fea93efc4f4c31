"""What the files of this folder and of the user say: settings, policy, trust, profiles, skills, plugins."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from shared.cli.doctor.finding import Finding, failed, from_problems
from shared.cli.settings_sense import misnamed
from shared.cli.tool_owners import known_plugins
from shared.definitions.catalogue import ProfileCatalogue
from shared.definitions.source import one_line
from shared.errors import JaatoError
from shared.folder_plugins.opened import RefusedFolder
from shared.permissions.gate import build_gate
from shared.registry import PluginRegistry
from shared.settings import Settings
from shared.skills import SkillConfig, SkillManager
from shared.trust import TrustStore, survey


def look_at_settings(settings: Settings, registry: PluginRegistry) -> Iterator[Finding]:
    """The settings files."""
    problems = [*settings.problems, *misnamed(settings, known_plugins(registry))]
    yield from from_problems("settings", problems, fix="jaato config check")
    if not problems:
        read = ", ".join(settings.files) or "no file: defaults and the environment"
        yield Finding("settings", "ok", one_line(read))


def look_at_trust(workspace: Path) -> Iterator[Finding]:
    """Whether the folder may run code and grant rights."""
    verdict, files = TrustStore().is_trusted(workspace), survey(workspace).files
    if verdict:
        yield Finding("trust", "ok", "this folder is trusted")
    elif files:
        text = f"{len(files)} files here could run code or grant rights; they count for nothing until you trust them"
        yield Finding("trust", "note", text, "jaato trust")
    else:
        yield Finding("trust", "ok", "nothing here runs code or grants rights")


def look_at_permissions(workspace: Path, settings: Settings, *, trusted: bool) -> Iterator[Finding]:
    """The policy in force."""
    policy = build_gate(settings.permissions, workspace=workspace, trust_workspace=trusted).policy
    if policy.problem:
        yield Finding("permissions", "problem", one_line(f"everything is denied: {policy.problem}"), "mend the policy")
        return
    where = policy.source or ("no policy of your own" if policy.warnings else "no policy file")
    yield Finding("permissions", "ok", one_line(f"{where}: tools that no rule covers: {policy.default}"))
    for warning in policy.warnings:
        yield Finding("permissions", "note", one_line(warning), "jaato trust, if you wrote it yourself")


def look_at_profiles(workspace: Path, settings: Settings, *, trusted: bool) -> Iterator[Finding]:
    """The profiles that can be spawned."""
    catalogue = ProfileCatalogue(
        workspace,
        profiles_dir=settings.get("profiles_dir"),
        extra_dirs=settings.extra_dirs,
        agent_dirs=tuple(settings.get("agent_dirs") or ()),
        trust_workspace=trusted,
    )
    names = [profile.name for profile in catalogue.list()]
    yield Finding("profiles", "ok", one_line(f"{len(names)}: {', '.join(names)}"))
    yield from from_problems("profiles", catalogue.problems(), fix="jaato profiles lint")


def look_at_skills(workspace: Path) -> Iterator[Finding]:
    """The skills that can be used."""
    manager = SkillManager(SkillConfig(workspace=str(workspace)))
    found = manager.list()
    yield Finding("skills", "ok", f"{len(found)} found" if found else "none here")
    yield from from_problems("skills", manager.problems(), fix="jaato skills validate")


def look_at_plugins(registry: PluginRegistry) -> Iterator[Finding]:
    """Plugins of folders and packages that cannot be used."""
    yield Finding("plugins", "ok", one_line(", ".join(registry.list_available())))
    for name, text in registry.problems.items():
        yield Finding("plugins", "problem", one_line(f"{name}: {text}"), "jaato plugins --load")
    for folder in registry.folders:
        if isinstance(folder, RefusedFolder):
            text = one_line(f"{folder.name}: {folder.reason}")
            if folder.untrusted:
                yield Finding("plugins", "note", text, "jaato trust")
            else:
                yield Finding("plugins", "problem", text, "jaato plugins")


def guarded(area: str, looks: Iterator[Finding]) -> Iterator[Finding]:
    """What a look finds; one that fails is a finding itself, and the others go on."""
    try:
        yield from looks
    except (JaatoError, OSError) as error:
        yield failed(area, error)
