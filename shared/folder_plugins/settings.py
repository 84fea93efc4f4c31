"""The settings of a folder plugin: from the host, else from named environment variables, else their defaults."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from shared.config import env
from shared.definitions.manifest_entries import SettingEntry
from shared.errors import ConfigError, unknown_name
from shared.schema import Validator

_NAMES_A_VARIABLE = "_env"


def resolved(plugin: str, settings: Mapping[str, SettingEntry], given: Mapping[str, Any]) -> dict[str, Any]:
    """The value of every setting that has one; raises ConfigError for an unknown, missing or unfit one.

    A setting `x_env` holds the name of a variable; its value is there as `x`, unless `x` is a setting itself.
    """
    for key in given:
        if key not in settings and key != "agent_name":
            raise ConfigError(f"plugin '{plugin}': {unknown_name('setting', key, settings)}")
    values: dict[str, Any] = {}
    for name, entry in settings.items():
        value = given[name] if given.get(name) is not None else _elsewhere(plugin, entry)
        if value is None:
            if entry.required:
                where = f", or set the environment variable {entry.env}" if entry.env else ""
                raise ConfigError(f"plugin '{plugin}': setting '{name}' is required: give it on exposure{where}")
            continue
        if wrong := Validator(entry.schema).problems(value):
            said = wrong[0].replace("'arguments'", f"setting '{name}'")
            raise ConfigError(f"plugin '{plugin}': {said}")
        values[name] = value
    for name in [name for name in values if name.endswith(_NAMES_A_VARIABLE)]:
        plain = name.removesuffix(_NAMES_A_VARIABLE)
        if plain and plain not in settings and isinstance(values[name], str) and (held := env(values[name])):
            values[plain] = held
    return values


def _elsewhere(plugin: str, entry: SettingEntry) -> Any:
    text = env(entry.env) if entry.env else None
    if text is None:
        return entry.default
    if entry.schema.get("type") == "string":
        return text
    try:
        return json.loads(text)
    except ValueError:
        kind = entry.schema.get("type")
        raise ConfigError(
            f"plugin '{plugin}': {entry.env} must hold a JSON {kind} for setting '{entry.name}'"
        ) from None
