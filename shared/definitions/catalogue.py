"""ProfileCatalogue: all profiles a host can delegate to, from every source, with the strongest winning."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from shared import config
from shared.bundled import bundled_folder
from shared.definitions.agent_folders import wanted_folders
from shared.definitions.folder import DefinitionFolder
from shared.definitions.precedence import Candidate, Explanation, Ranking, Scope, rank
from shared.definitions.profile import SubagentProfile
from shared.definitions.profile_file import Reading, profile_from
from shared.definitions.source import Problem, Source, SourceKind
from shared.errors import ConfigError

PROFILES_DIR = ".jaato/profiles"
AGENTS_DIR = ".jaato/agents"

#: The profiles of each plugin; the same object as long as they are the same.
PluginProfileSource = Callable[[], Mapping[str, tuple[SubagentProfile, ...]]]


class ProfileCatalogue:
    """Looks at its folders whenever it is asked, so that edited files count at once; safe for threads.

    Project files and extra folders are data: without trust their `auto_approved` is not honoured. The
    folders of other hosts are read only if `agent_dirs` names them (`claude`, `opencode`, …), and never trusted.
    `still_trusted` is asked again whenever a file of a trusted project has changed; `plugin_profiles`, for what the
    plugins in use bring, before every look.
    """

    def __init__(
        self,
        workspace: Path | str | None = None,
        *,
        profiles_dir: Path | str = PROFILES_DIR,
        auto_discover: bool = True,
        extra_dirs: Sequence[Path | str] = (),
        agent_dirs: Sequence[str] = (),
        trust_workspace: bool = False,
        still_trusted: Callable[[], bool] = lambda: True,
        trust_extra: bool = False,
        home: Path | str | None = None,
        user_home: Path | str | None = None,
        plugin_profiles: PluginProfileSource | None = None,
    ) -> None:
        self._lock = threading.Lock()
        self._code: dict[str, SubagentProfile] = {}
        self._plugin_source = plugin_profiles
        self._brought: Mapping[str, tuple[SubagentProfile, ...]] = {}
        self._ranking: Ranking | None = None
        self._folders: list[DefinitionFolder] = []
        self._scopes: list[tuple[SourceKind, list[DefinitionFolder]]] = []
        self._still_trusted = still_trusted if trust_workspace else None
        if auto_discover:
            base = Path(workspace or Path.cwd()).absolute()
            own = Path(home or config.jaato_home()).expanduser()
            self._watch_project(base, base / Path(profiles_dir).expanduser(), own, trusted=trust_workspace)
            self._watch("user", [own / "profiles", own / "agents"], trusted=True)
            far = Path(user_home or config.user_home()).expanduser()
            for foreign in wanted_folders(agent_dirs, project=base, home=far):
                self._watch("extra", [foreign.path], trusted=False, root=foreign.root, recursive=foreign.recursive)
            for extra in extra_dirs:
                self._watch("extra", [base / Path(extra).expanduser()], trusted=trust_extra)
            self._watch("builtin", [bundled_folder("profiles")], trusted=True)

    # -- from code -------------------------------------------------------------------------------

    def add(self, profile: SubagentProfile | Mapping[str, Any], *, name: str | None = None) -> SubagentProfile:
        """Add a profile from code, or a mapping of its fields; one of the same name is replaced."""
        if not isinstance(profile, SubagentProfile):
            wanted = name or profile.get("name")
            if not isinstance(wanted, str):
                raise ConfigError("a profile needs a name: give 'name' in the mapping, or name=…")
            profile = profile_from(wanted, profile)
        with self._lock:
            self._code[profile.name] = profile
            self._ranking = None
        return profile

    def remove(self, name: str) -> bool:
        """Take back a profile that was added from code; False if there is none."""
        with self._lock:
            self._ranking = None
            return self._code.pop(name, None) is not None

    # -- questions -------------------------------------------------------------------------------

    def get(self, name: str) -> SubagentProfile:
        """The profile of that name; raises ConfigError with suggestions, or with what is wrong with its file."""
        return self._look().get(name)

    def find(self, name: str) -> SubagentProfile | None:
        """The profile of that name, if there is a usable one."""
        return self._look().winners.get(name)

    def list(self, *, internal: bool = True) -> tuple[SubagentProfile, ...]:
        """All usable profiles by name; without the internal ones for a model to choose from."""
        found = self._look().winners
        shown = (found[name] for name in sorted(found))
        return tuple(profile for profile in shown if internal or profile.visibility != "internal")

    def problems(self) -> tuple[Problem, ...]:
        """What is wrong or doubtful in any file."""
        return self._look().problems

    @property
    def shadowed(self) -> tuple[Candidate, ...]:
        """Profiles that lose to another one, each with the reason."""
        return self._look().losers

    def explain(self, name: str) -> Explanation:
        """Which source won a name, what lost to it and why, and what is said about their files."""
        return self._look().explain(name)

    # -- inside ----------------------------------------------------------------------------------

    def _look(self) -> Ranking:
        brought = self._plugin_source() if self._plugin_source is not None else self._brought
        with self._lock:
            if brought is not self._brought:
                self._brought, self._ranking = brought, None
            changed = [folder for folder in self._folders if folder.look()]
            self._vouch(changed)
            if self._ranking is None or changed:
                problems = [problem for folder in self._folders for problem in folder.problems]
                self._ranking = rank(list(self._ordered()), problems)
            return self._ranking

    def _vouch(self, changed: Sequence[DefinitionFolder]) -> None:
        """Trust is in files as they were: what was written since, by an agent perhaps, grants nothing."""
        project = [folder for kind, folders in self._scopes if kind == "project" for folder in folders]
        if self._still_trusted is not None and any(folder in project for folder in changed):
            trusted = self._still_trusted()
            for folder in project:
                folder.vouch(trusted)
                folder.look()

    def _ordered(self) -> Iterator[Scope]:
        """Everything there is, strongest scope first."""
        yield Scope("code", tuple(_given(profile) for profile in self._code.values()))
        plugins = Scope("plugin", tuple(_given(each) for every in self._brought.values() for each in every))
        for kind, folders in self._scopes:
            if kind == "builtin":
                yield plugins
            yield Scope(kind, tuple(reading for folder in folders for reading in folder.readings))
        if not self._scopes:
            yield plugins

    def _watch_project(self, base: Path, profiles: Path, own: Path, *, trusted: bool) -> None:
        """The project's folders, except where they are the user's own: then they count as the user's."""
        users = {os.path.realpath(own / "profiles"), os.path.realpath(own / "agents")}
        wanted = [path for path in (profiles, base / AGENTS_DIR) if os.path.realpath(path) not in users]
        self._watch("project", wanted, trusted=trusted, root=base)

    def _watch(
        self,
        kind: SourceKind,
        paths: Sequence[Path],
        *,
        trusted: bool,
        root: Path | None = None,
        recursive: bool = False,
    ) -> None:
        folders = []
        for path in paths:
            # A folder that a host put elsewhere was chosen on purpose: links are measured against it.
            within = root if root is not None and path.is_relative_to(root) else None
            folders.append(DefinitionFolder(path, Source(kind, None, trusted), root=within, recursive=recursive))
        self._folders += folders
        self._scopes.append((kind, folders))


def _given(profile: SubagentProfile) -> Reading:
    return Reading(profile.name, profile.source, profile)
