"""What is wrong with the content of a settings file: shapes by the schema, meaning by those who use the values."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from shared.definitions.document import Document, Fault, Place
from shared.definitions.profile_file import suggestion
from shared.errors import ConfigError
from shared.gc.loader import gc_config_from
from shared.providers import known_providers
from shared.schema import Validator
from shared.settings.keys import KEYS

SCHEMA_PATH = Path(__file__).parent / "config.schema.json"
#: Keys that somebody may look for in vain, and what to do instead.
_NOT_HERE = {
    "trust_workspace": "trust is never a matter of the project's own files: run `jaato trust`, or say it in code",
    "api_key": "keys belong in the vendor's environment variable, or in providers.<name>.api_key of the user's file",
    "base_url": "write it as providers.<name>.base_url",
    "mcp": "write it as plugins.mcp",
    "subagent": "its settings stand at the top level of this file",
}


def settings_schema() -> dict[str, Any]:
    """The JSON Schema of settings files; editors complete and check them with it."""
    schema: dict[str, Any] = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
    return schema


def faults(document: Document, value: Mapping[str, Any]) -> list[Fault]:
    """Everything that is wrong with an object of settings, each with its line."""
    found = [*_unknown(document, value), *_unfit(document, value)]
    if not any(fault.severity == "error" for fault in found):
        found += _meaningless(document, value)
    return sorted(found, key=lambda fault: fault.line or 0)


def _unknown(document: Document, value: Mapping[str, Any]) -> Iterator[Fault]:
    for key in value:
        if key not in KEYS and key != "$schema":
            text = f"'{key}' is no setting of its own: {_NOT_HERE[key]}" if key in _NOT_HERE else None
            yield _fault(document, (key,), text or suggestion(key, KEYS, kind="setting"), "unknown-setting")
    known = settings_schema()
    retry, connection = known["properties"]["retry"], known["$defs"]["connection"]
    yield from _unknown_inside(document, ("retry",), value.get("retry"), retry)
    yield from _unknown_inside(document, ("gc",), value.get("gc"), known["$defs"]["gc"])
    providers = value.get("providers")
    for name, entry in providers.items() if isinstance(providers, Mapping) else ():
        yield from _unknown_inside(document, ("providers", name), entry, connection)
        if name not in known_providers():
            text = suggestion(name, known_providers(), kind="provider")
            yield _fault(document, ("providers", name), text, "unknown-provider", warn=True)


def _unknown_inside(document: Document, place: Place, value: Any, schema: Mapping[str, Any]) -> Iterator[Fault]:
    for key in value if isinstance(value, Mapping) else ():
        if key not in schema["properties"]:
            text = suggestion(key, list(schema["properties"]), kind=f"setting in '{'.'.join(map(str, place))}',")
            yield _fault(document, (*place, key), text, "unknown-setting")


def _unfit(document: Document, value: Mapping[str, Any]) -> Iterator[Fault]:
    for place, text in _validator().located(value):
        if "api_key" in place:
            text = f"'{'.'.join(map(str, place))}': expected text"  # without what is there
        if ": unknown field " not in text:  # told above, each at its own line
            yield _fault(document, place, text, "wrong-value")


def _meaningless(document: Document, value: Mapping[str, Any]) -> Iterator[Fault]:
    """What has the right shape and yet cannot be used, in the words of those who would use it."""
    from shared.subagents.config import SubagentConfig  # here: the engine stands above the settings

    taken = SubagentConfig.__dataclass_fields__
    for key in value:
        try:
            if key == "gc":
                gc_config_from(value[key])
            elif key in KEYS and KEYS[key].subagent and key in taken:
                SubagentConfig.from_dict({key: value[key]})
        except ConfigError as error:
            yield _fault(document, (key,), str(error).removeprefix("plugin 'subagent': "), "wrong-value")


def _fault(document: Document, place: Place, text: str, code: str, *, warn: bool = False) -> Fault:
    field = str(place[0]) if place else None
    return Fault(code, text, document.line(place), field, "warning" if warn else "error")


@cache
def _validator() -> Validator:
    return Validator(settings_schema())
