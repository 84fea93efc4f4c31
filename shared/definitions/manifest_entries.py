"""The entries of a manifest — command tools, agents, settings, paths — each taken whole or not at all."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from shared.definitions.document import Step
from shared.definitions.manifest_values import Values
from shared.definitions.profile_fields import FIELDS, Unfit, shown
from shared.errors import ConfigError
from shared.schema import Validator

TextMap = Mapping[str, str]
E = TypeVar("E", bound="CommandEntry | AgentEntry")

TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
SETTING_TYPES = ("string", "number", "integer", "boolean", "array", "object")

_TOOL_FIELDS = (
    *("name", "description", "schema", "command", "args", "required_agent", "visible_to", "timeout_seconds"),
    "auto_approved",
)
_TOOL_DESCRIBING = ("subtext", "interactive", "display_name", "usageGuidance", "output", "requiresConfirmation")
_AGENT_FIELDS = (
    *("name", "description", "system_prompt_file", "model", "temperature", "reasoning_effort", "tools"),
    *("max_turns", "timeout_seconds", "can_delegate_to_agents", "reuse"),
)
_AGENT_DESCRIBING = ("usage_guidelines", "created_at", "updated_at", "requirements", "visible_from_agents")
_AGENT_DESCRIBING_TOO = ("can_see_agents",)


@dataclass(frozen=True)
class CommandEntry:
    """A tool that is a program: it reads JSON on stdin and answers on stdout."""

    name: str
    description: str
    command: str
    args: tuple[str, ...] = ()
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})
    agents: tuple[str, ...] | None = None  # the only agents that may call it
    timeout_seconds: float = 60.0
    auto_approved: bool = False


@dataclass(frozen=True)
class AgentEntry:
    """An agent whose prompt is in a file of the plugin; `fields` are those of a profile and beat the file's."""

    name: str
    system_prompt_file: str
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class SettingEntry:
    """A setting of a plugin: its JSON Schema, its default and the environment variable that may hold it."""

    name: str
    schema: Mapping[str, Any]
    default: Any = None
    env: str | None = None
    required: bool = False


class Entries(Values):
    """Takes entries out of a document and gathers what is wrong with them."""

    def tools(self, given: Any) -> tuple[CommandEntry, ...]:
        """The command tools that can be used."""
        return self._list("tools", given, self._tool)

    def agents(self, given: Any) -> tuple[AgentEntry, ...]:
        """The agents that can be used."""
        return self._list("agents", given, self._agent)

    def settings(self, manifest: Mapping[str, Any]) -> dict[str, SettingEntry]:
        """The settings, from `config_schema` or Ally's `config.schema`."""
        key, given = "config_schema", manifest.get("config_schema")
        inside: tuple[Step, ...] = (key,)
        if given is None and isinstance(config := manifest.get("config"), dict):
            inside, given = ("config", "schema"), config.get("schema")
        if isinstance(given, dict) and isinstance(given.get("properties"), dict):
            required = given.get("required")
            inside, given = (*inside, "properties"), given["properties"]
        else:
            required = None
        if given is None:
            return {}
        if not isinstance(given, dict):
            self.report(inside, f"'{key}' must be an object from setting to its schema, not {shown(given)}")
            return {}
        listed = required if isinstance(required, list) else []
        found = [self._setting((*inside, name), name, value, listed) for name, value in given.items()]
        return {each.name: each for each in found if each is not None}

    def paths(self, key: str, given: Any) -> tuple[str, ...] | None:
        """Relative paths inside the plugin; None where the manifest says nothing."""
        if given is None:
            return None
        listed = [given] if isinstance(given, str) else given
        if not isinstance(listed, list):
            self.report((key,), f"'{key}' must be a path or a list of paths, not {shown(given)}")
            return ()
        return tuple(path for index, each in enumerate(listed) if (path := self.path_in((key, index), each)))

    # -- inside ----------------------------------------------------------------------------------

    def _list(
        self, key: str, given: Any, take: Callable[[tuple[Step, ...], dict[str, Any]], E | None]
    ) -> tuple[E, ...]:
        if given is None:
            return ()
        if not isinstance(given, list):
            self.report((key,), f"'{key}' must be a list of objects, not {shown(given)}")
            return ()
        found: dict[str, E] = {}
        for index, each in enumerate(given):
            if not isinstance(each, dict):
                self.report((key, index), f"{key}[{index}] must be an object, not {shown(each)}")
            elif (entry := self._whole((key, index), each, take)) is None:
                continue
            elif entry.name in found:
                text = f"'{entry.name}' stands twice in {key}; the second is left out"
                self.report((key, index), text, code="duplicate-name", level="warning")
            else:
                found[entry.name] = entry
        return tuple(found.values())

    def _whole(
        self,
        place: tuple[Step, ...],
        given: dict[str, Any],
        take: Callable[[tuple[Step, ...], dict[str, Any]], E | None],
    ) -> E | None:
        """An entry without any error, or nothing: half an entry may lack what narrows it."""
        before = len(self.problems)
        entry = take(place, given)
        wrong = any(problem.severity == "error" for problem in self.problems[before:])
        return None if wrong else entry

    def _tool(self, place: tuple[Step, ...], given: dict[str, Any]) -> CommandEntry | None:
        self.check_keys(place, given, _TOOL_FIELDS, _TOOL_DESCRIBING)
        name, schema = given.get("name"), given.get("schema", {"type": "object", "properties": {}})
        if not isinstance(name, str) or not TOOL_NAME.fullmatch(name):
            text = f"'name' must be letters, digits, '-' and '_', at most 64, not {shown(name)}"
            self.report((*place, "name"), text, code="name-unsafe")
            return None
        self.check_schema((*place, "schema"), name, schema)
        if given.get("requiresConfirmation") is False:
            text = f"tool '{name}': the permission policy decides; requiresConfirmation changes nothing"
            self.report((*place, "requiresConfirmation"), text, code="not-used", level="info")
        return CommandEntry(
            name=name,
            description=self.text(place, given, "description", ""),
            command=self.text(place, given, "command"),
            args=self.words(place, given, "args") or (),
            schema=schema if isinstance(schema, dict) else {},
            agents=self._callers(place, given),
            timeout_seconds=self.seconds(place, given),
            auto_approved=self.flag(place, given, "auto_approved"),
        )

    def _callers(self, place: tuple[Step, ...], given: dict[str, Any]) -> tuple[str, ...] | None:
        """Which agents may call a tool: `required_agent` is one, `visible_to` are several."""
        if "required_agent" in given:
            return (self.text(place, given, "required_agent"),)
        return self.words(place, given, "visible_to") if "visible_to" in given else None

    def _agent(self, place: tuple[Step, ...], given: dict[str, Any]) -> AgentEntry | None:
        self.check_keys(place, given, _AGENT_FIELDS, (*_AGENT_DESCRIBING, *_AGENT_DESCRIBING_TOO))
        fields: dict[str, Any] = {}
        for key, value in given.items():
            target = "allow_agents" if key == "can_delegate_to_agents" else key
            if target not in FIELDS or key not in _AGENT_FIELDS or (value is None and key in ("description", "model")):
                continue
            try:
                fields[target] = FIELDS[target](value)
            except Unfit as error:
                self.report((*place, key, *error.inside), f"'{key}' {error}", code=error.code)
            if value is None:
                text = f"'{key}' is null: leave it out, or write what is meant"
                self.report((*place, key), text, code="null-value")
        if "visible_from_agents" in given or "requirements" in given:
            text = "'visible_from_agents' and 'requirements' are not enforced here"
            self.report(place, text, code="not-used", level="warning")
        file = self.path_in((*place, "system_prompt_file"), given.get("system_prompt_file"))
        name = fields.pop("name", None)
        if name is None and "name" not in given:
            self.report(place, "an agent needs a 'name'", code="name-missing")
        return AgentEntry(name, file, fields) if name and file else None

    def _setting(self, place: tuple[Step, ...], name: str, given: Any, required: list[Any]) -> SettingEntry | None:
        if not isinstance(given, dict) or given.get("type", "string") not in SETTING_TYPES:
            kind = given.get("type") if isinstance(given, dict) else given
            self.report(place, f"setting '{name}' needs a 'type' of {', '.join(SETTING_TYPES)}, not {shown(kind)}")
            return None
        env = given.get("env")
        if env is not None and not (isinstance(env, str) and env.isidentifier()):
            self.report((*place, "env"), f"'env' must be the name of an environment variable, not {shown(env)}")
            return None
        own = ("env", "required", "secret", "default")
        schema = {"type": "string", **{key: value for key, value in given.items() if key not in own}}
        try:
            Validator(schema, what=f"setting '{name}'")
        except ConfigError as error:
            self.report(place, str(error))
            return None
        return SettingEntry(name, schema, given.get("default"), env, given.get("required") is True or name in required)
