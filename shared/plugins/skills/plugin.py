"""SkillsPlugin: the catalogue in the prompt, the `skill` tool, commands for people, and installation."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from shared.cancel import CancelToken
from shared.errors import SkillError, ToolError
from shared.hooks import HookBus
from shared.plugin import CommandCompletion, Executor, PermissionDisplayInfo, UserCommand
from shared.plugins._base import WORKSPACE_SCHEMA, WorkspacePlugin
from shared.plugins.skills.answers import told, untrusted_note
from shared.plugins.skills.commands import SkillCommands
from shared.plugins.skills.forking import fork, profile_for
from shared.plugins.skills.matcher import Matcher
from shared.skills.catalogue import catalogue_text
from shared.skills.config import PROJECT_DIRS, SkillConfig
from shared.skills.fetch import CLAWHUB
from shared.skills.guards import guards_for
from shared.skills.info import Skill, SkillInfo
from shared.skills.install import Installed, Installer
from shared.skills.manager import Invoker, SkillManager
from shared.skills.plugin_skills import PluginSkills
from shared.skills.preload import Preloaded, preload
from shared.skills.requirements import missing
from shared.tools import Tool, ToolContext, tool

if TYPE_CHECKING:
    from shared.runtime import JaatoRuntime

_PATHS = {"type": "array", "items": {"type": "string", "minLength": 1}}


class SkillsPlugin(WorkspacePlugin):
    """Skills for one host: found in the project, in the user's own folder and wherever the settings say."""

    name = "skills"
    config_keys: ClassVar[Mapping[str, Any]] = {
        "workspace": None,
        "skills_dirs": list(PROJECT_DIRS),
        "user_dir": None,
        "extra_dirs": [],
        "trusted_paths": [],
        "namespace_tools": True,
        "auto_match": True,
        "max_per_turn": 2,
        "classifier_model": None,
        "clawhub_url": CLAWHUB,
    }
    config_schema: ClassVar[Mapping[str, Any]] = {
        "workspace": WORKSPACE_SCHEMA,
        "skills_dirs": _PATHS,
        "user_dir": WORKSPACE_SCHEMA,
        "extra_dirs": _PATHS,
        "trusted_paths": _PATHS,
        "namespace_tools": {"type": "boolean"},
        "auto_match": {"type": "boolean"},
        "max_per_turn": {"type": "integer", "minimum": 0, "maximum": 10},
        "classifier_model": {"type": ["string", "null"], "minLength": 1},
        "clawhub_url": {"type": "string", "pattern": "^https?://"},
    }
    harmless_settings: ClassVar[frozenset[str]] = frozenset({"auto_match"})

    def __init__(self) -> None:
        super().__init__()
        self.on_tools_changed: list[Callable[[], object]] = []
        self._runtime: JaatoRuntime | None = None
        self._bus: HookBus | None = None
        self._manager: SkillManager | None = None
        self._kept: list[Skill] = []  # from code; they outlive a change of settings

    def initialize(self, config: dict[str, Any] | None = None) -> None:
        """Take settings; skills are looked for again."""
        super().initialize(config)
        self._renew()

    def attach(self, runtime: JaatoRuntime) -> None:
        """Learn the workspace, and whether it is trusted; what skills set up for another conversation is gone."""
        super().attach(runtime)
        if self._runtime is not runtime or self._bus is not runtime.hooks:
            self._renew()
            self._runtime, self._bus = runtime, runtime.hooks

    @property
    def manager(self) -> SkillManager:
        """The skills of this plugin."""
        if self._manager is None:
            runtime = self._runtime
            made = SkillManager(
                self._settings(),
                agent_tools=self._agent_tools,
                brought=PluginSkills(lambda: runtime.registry if runtime is not None else None),
                guards=guards_for(runtime) if runtime is not None else None,
                still_trusted=lambda: runtime is not None and runtime.is_trusted_now(),
            )
            for skill in self._kept:
                made.register(skill)
            self._manager = made
        return self._manager

    # -- for models ------------------------------------------------------------------------------

    def tools(self) -> list[Tool]:
        """The plugin's own tools, and those of active skills."""
        active = self._manager.get_all_tools() if self._manager is not None else []
        return [*super().tools(), *(Tool.from_function(each, plugin=self.name) for each in active)]

    @tool(auto_approved=True)
    def skill(
        self,
        context: ToolContext,
        name: Annotated[str, "Name of the skill"],
        arguments: Annotated[str, "What the skill is to be applied to"] = "",
        file: Annotated[str | None, "Read this file of the skill instead, by its path in the skill's folder"] = None,
    ) -> dict[str, Any]:
        """Load a skill: instructions to follow for a certain kind of work."""
        try:
            if file is not None:
                return self._file(name, file)
            return self.use(name, arguments, context, invoked_by="model")
        except SkillError as error:
            raise ToolError(str(error)) from None

    @tool
    def skill_install(
        self,
        context: ToolContext,
        source: Annotated[str, "A folder or archive in the workspace, an http address, or a name at ClawHub"],
        replace: Annotated[bool, "Replace an installed skill of the same name"] = False,
    ) -> dict[str, Any]:
        """Install a skill for this user; it stays untrusted until the user trusts it."""
        workspace = self.workspace(context)
        # What a model names must not reach anything on this machine outside its workspace.
        local = "://" not in source and os.path.lexists(os.path.join(workspace.root, source))
        place = workspace.locate(source).absolute if local else source
        try:
            return told(self.install(place, replace=replace, cancel=context.cancel, local=local))
        except SkillError as error:
            raise ToolError(str(error)) from None

    def use(self, name: str, arguments: str, context: ToolContext, *, invoked_by: Invoker = "code") -> dict[str, Any]:
        """Put a skill to use: its instructions, or the result of the subagent that it runs as."""
        skill, text = self.manager.render(name, arguments, invoked_by=invoked_by)
        info = skill.info
        forks, profile = profile_for(info, self._runtime)
        if forks:
            return fork(self._runtime, skill, text, profile, context)
        until = context.session.cancel_token if context.session is not None else None
        text = self.manager.activate(name, arguments, invoked_by=invoked_by, agent_id=context.agent_id, until=until)
        if skill.tools:
            self._tools_changed()
        answer: dict[str, Any] = {"skill": name, "instructions": text}
        if skill.tools and info.is_trusted and (context.session is None or context.session.spec.tool_names is None):
            names = [self.manager.tool_name(skill, each) for each in skill.tools]
            answer["tools"] = f"{', '.join(names)}: yours from the user's next message on"
        if skill.files:
            answer["files"] = list(skill.files)
        if info.folder:
            answer["folder"] = info.folder
        if not info.is_trusted:
            answer["note"] = untrusted_note(info)
        return answer

    def get_system_instructions(self) -> str | None:
        """The catalogue: the same bytes as long as the skills are the same."""
        return catalogue_text(self._offered())

    def get_hooks(self) -> list[tuple[str, Callable[..., Any]]]:
        """Skills that a message is about are added to it; asked for when plugins come or go, as skills do with them."""
        if self._manager is not None and self._manager.drop_lost():
            self._tools_changed()
        if not self.config["auto_match"] or not self.config["max_per_turn"]:
            return []
        return [("message_received", self.match_message)]

    def match_message(self, content: str, conversation_id: str = "main") -> str | None:
        """A user's message with the skills that it is about; None if there are none, or it calls one by its name."""
        called = content.removeprefix("/").split(maxsplit=1) if content.startswith("/") else []
        if called and any(info.name == called[0] for info in self.manager.list()):
            return None
        most, classifier = self.config["max_per_turn"], self.config["classifier_model"]
        matcher = Matcher(self.manager, self._offered, most=most, classifier=classifier)
        return matcher.extended(content, self._runtime)

    def preload(self, names: Sequence[str]) -> Preloaded:
        """The bodies and tools of skills, for an agent that starts with them."""
        return preload(self.manager, names, plugin=self.name)

    # -- for people ------------------------------------------------------------------------------

    def get_user_commands(self) -> list[UserCommand]:
        """`skills`, `install`, and one command for each skill that people may call."""
        return self._commands().all()

    def get_command_completions(self, command: str, args: Sequence[str]) -> list[CommandCompletion]:
        """Names of skills."""
        return self._commands().completions(command, args)

    def get_executors(self) -> dict[str, Executor]:
        """The tools for host code, and the commands."""
        return {**super().get_executors(), **self._commands().executors()}

    def format_permission_request(
        self, tool_name: str, arguments: dict[str, Any], channel_type: str
    ) -> PermissionDisplayInfo | None:
        """What a person sees before a skill is installed."""
        if tool_name != "skill_install":
            return None
        what = "and replace the one of that name" if arguments.get("replace") else "for this user"
        return PermissionDisplayInfo(f"install a skill {what}", f"from: {arguments.get('source')}")

    def install(
        self, source: str, *, replace: bool = False, cancel: CancelToken | None = None, local: bool = True
    ) -> Installed:
        """Install a skill into the user's folder; raises SkillError."""
        settings = self.manager.config
        installer = Installer(settings.user_dir, self.manager.record, clawhub=self.config["clawhub_url"])
        return installer.install(source, replace=replace, cancel=cancel, local=local)

    def deactivate(self, name: str) -> None:
        """Put a skill out of use; its tools go with it."""
        self.manager.deactivate(name)
        self._tools_changed()

    def shutdown(self) -> None:
        """Forget which skills are active."""
        self._renew()

    # -- inside ----------------------------------------------------------------------------------

    def _renew(self) -> None:
        """Begin anew with the present settings; skills from code stay, and none is active."""
        if self._manager is not None:
            self._manager.end_all()
            self._kept, self._manager = self._manager.registered(), None

    def _settings(self) -> SkillConfig:
        config, runtime = self.config, self._runtime
        return SkillConfig(
            workspace=self.workspace().root,
            skills_dirs=config["skills_dirs"],
            user_skills_dir=config["user_dir"],
            custom_paths=[*config["extra_dirs"], *(runtime.settings.skill_dirs if runtime is not None else ())],
            trusted_paths=config["trusted_paths"],
            trust_workspace=bool(runtime.trust_workspace) if runtime is not None else False,
            namespace_tools=config["namespace_tools"],
        )

    def _agent_tools(self) -> list[str]:
        registry = self._runtime.registry if self._runtime is not None else None
        return [each.name for each in registry.tools()] if registry is not None else []

    def _offered(self) -> list[SkillInfo]:
        """The skills that a model may call, on this machine."""
        found = self.manager.list()
        return [info for info in found if not info.disable_model_invocation and missing(info.requires) is None]

    def _commands(self) -> SkillCommands:
        return SkillCommands(self, self._context)

    def _context(self) -> ToolContext:
        runtime = self._runtime
        session = runtime.main_session if runtime is not None else None
        return ToolContext("main", CancelToken(), session=session, workspace=Path(self.workspace().root))

    def _file(self, name: str, path: str) -> dict[str, Any]:
        skill, _ = self.manager.render(name, invoked_by="model")
        return {"skill": name, "file": path, "text": skill.read(path)}

    def _tools_changed(self) -> None:
        for tell in [*self.on_tools_changed]:
            tell()
