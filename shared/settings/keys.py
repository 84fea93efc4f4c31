"""The settings there are: default, how deep they merge, and what an untrusted project may say about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

#: (the way inside the setting, the value there, what weaker places say there) → why it does not count, or None
Rule: TypeAlias = Callable[[tuple[str, ...], Any, Any], str | None]

#: Built-in plugins that neither run programs nor talk to anybody: an untrusted project may ask for them.
HARMLESS_PLUGINS = frozenset({"file_edit", "references", "skills", "subagent", "todo"})


def anyone(inside: tuple[str, ...], value: Any, below: Any) -> str | None:
    """A matter of taste: every project may decide it."""
    return None


def trusted(reason: str) -> Rule:
    """Counts from a trusted place only."""
    return lambda inside, value, below: reason


def no_more(inside: tuple[str, ...], value: Any, below: Any) -> str | None:
    """A limit that an untrusted project may only lower."""
    return None if value <= below else f"it would raise the limit from {below} to {value}"


def _provider(inside: tuple[str, ...], value: Any, below: Any) -> str | None:
    return "a script of the project would act as the model" if value == "script" else None


def _model(inside: tuple[str, ...], value: Any, below: Any) -> str | None:
    is_script = value.endswith((".yaml", ".yml", ".json"))  # which the scripted provider would play
    return "a script of the project would act as the model" if is_script else None


def _only_false(inside: tuple[str, ...], value: Any, below: Any) -> str | None:
    return None if value is False or value == below else "it would switch on what was switched off"


def _fewer(inside: tuple[str, ...], value: Any, below: Any) -> str | None:
    narrows = bool(value) and (not below or set(value) <= set(below))  # an empty list is: all of them
    return None if narrows or value == below else "it would widen what a spawn may ask for"


def _permissions(inside: tuple[str, ...], value: Any, below: Any) -> str | None:
    return None if value == "deny" else "it would decide what runs without a question"


def _plugins(inside: tuple[str, ...], value: Any, below: Any) -> str | None:
    if not inside or value is False or (len(inside) == 1 and isinstance(below, dict)):
        return None  # the whole, one that is withdrawn, one that stands below already
    if len(inside) > 1:
        return "settings of a plugin can widen what it does"
    return None if inside[0] in HARMLESS_PLUGINS else f"plugin '{inside[0]}' can run code or talk to others"


@dataclass(frozen=True)
class Key:
    """One setting."""

    default: Any = None
    depth: int = 0  # of objects whose entries merge one by one
    rule: Rule = anyone
    subagent: bool = False  # whether the subagent plugin's `initialize` takes it under the same name


_ELSEWHERE = trusted("it would send prompts and keys elsewhere")
_FILES = trusted("it says where files are written")
_FOLDERS = trusted("it would take definitions from folders that nobody looked at")

KEYS: Mapping[str, Key] = {
    "provider": Key("google_genai", rule=_provider),
    "model": Key(rule=_model),
    "project": Key(rule=_ELSEWHERE),
    "location": Key(rule=_ELSEWHERE),
    "providers": Key({}, depth=2, rule=_ELSEWHERE),
    "system_instructions": Key(),
    "temperature": Key(),
    "reasoning_effort": Key(),
    "max_output_tokens": Key(),
    "gc": Key({}, depth=1),
    "retry": Key({}, depth=1),
    "permissions": Key(rule=_permissions),
    "plugins": Key({}, depth=2, rule=_plugins),
    "skill_dirs": Key((), rule=_FOLDERS),
    "trace": Key(rule=_FILES),
    "default_model": Key(rule=_model, subagent=True),
    "default_provider": Key(rule=_provider, subagent=True),
    "profiles": Key(
        {}, depth=1, rule=trusted("a profile here counts as the host's own; put it into .jaato/profiles"), subagent=True
    ),
    "allow_inline": Key(True, rule=_only_false, subagent=True),
    "inline_allowed_plugins": Key((), rule=_fewer, subagent=True),
    "auto_discover_profiles": Key(True, rule=_only_false, subagent=True),
    "profiles_dir": Key(".jaato/profiles", rule=_FOLDERS, subagent=True),
    "extra_dirs": Key((), rule=_FOLDERS, subagent=True),
    "agent_dirs": Key((), subagent=True),
    "allowed_variables": Key((), rule=trusted("it would show environment variables"), subagent=True),
    "max_concurrent": Key(8, rule=no_more, subagent=True),
    "max_depth": Key(1, rule=no_more, subagent=True),
    "max_children": Key(16, rule=no_more, subagent=True),
    "max_total_spawns": Key(200, rule=no_more, subagent=True),
    "result_tokens": Key(4000, subagent=True),
    "digest_tokens": Key(2000, subagent=True),
    "store": Key(rule=_FILES, subagent=True),
    "session_ttl_minutes": Key(60, subagent=True),
    "keep_days": Key(90, rule=trusted("it decides whether records are deleted"), subagent=True),
    "cleanup": Key("keep", rule=trusted("it decides whether records are deleted"), subagent=True),
}
