"""The fields of a profile: what each one may hold, and the immutable value it becomes."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import PurePath
from typing import Any

from shared.budget import KINDS, Limits
from shared.definitions.document import MAX_DEPTH, Step
from shared.errors import ConfigError
from shared.gc.base import GCConfig
from shared.gc.loader import gc_config_from
from shared.schema import Validator

EFFORTS = ("low", "medium", "high", "inherit")
VISIBILITIES = ("user-facing", "internal")
MAX_NAME = 128
MAX_WHOLE = 2**53  # what JSON numbers hold exactly everywhere
MAX_BITS = 1024  # of a number in settings that are passed on
MAX_SECONDS = 1_000_000_000  # what a thread can wait
_HALF = re.compile("[\ud800-\udfff]")

Convert = Callable[[Any], Any]


class Unfit(ValueError):
    """A value that a field cannot take: a sentence that goes on after the field's name, and where inside it is."""

    def __init__(self, text: str, *, inside: tuple[Step, ...] = (), code: str = "wrong-value") -> None:
        super().__init__(text)
        self.inside = inside
        self.code = code


def shown(value: Any) -> str:
    """A value as it is quoted in a sentence, in the words of JSON and never long."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        return "a number beyond all use"  # Python refuses to print such ones
    text = ascii(value) if isinstance(value, str) and not value.isprintable() else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _whole_characters(value: str, *inside: Step) -> str:
    """Half of a surrogate pair can be written in JSON, but sent to nobody."""
    if _HALF.search(value) is not None:
        raise Unfit("must not hold half a character (a lone \\ud800 to \\udfff)", inside=inside)
    return value


def _must(expected: str, value: Any, *inside: Step) -> Unfit:
    return Unfit(f"must be {expected}, not {shown(value)}", inside=inside)


def _name(value: Any) -> str:
    if not isinstance(value, str):
        raise Unfit(f"must be text, not {shown(value)}: put it in quotes")
    if not value.strip() or value != value.strip():
        raise Unfit(f"must be text without spaces around it, not {shown(value)}")
    if value in (".", "..") or any(char in "/\\" or not char.isprintable() for char in value):
        raise Unfit(
            f"must not be '.' or '..', nor hold '/', '\\' or invisible characters, as {shown(value)} does",
            code="name-unsafe",
        )
    if len(value) > MAX_NAME:
        raise Unfit(f"must have at most {MAX_NAME} characters, not {len(value)}")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _must("text" if not isinstance(value, bool | int | float) else "text (put it in quotes)", value)
    return _whole_characters(value)


def _word(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _must("a name", value)
    return _whole_characters(value.strip())


def _inheritable(value: Any) -> str | None:
    """A model or provider; the word `inherit` says the same as leaving it out."""
    word = _word(value)
    return None if word == "inherit" else word


def _words(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        example = f", such as [{value.strip()}]" if isinstance(value, str) and value.strip().isidentifier() else ""
        raise _must(f"a list of names{example}", value)
    for index, item in enumerate(value):
        if not isinstance(item, str) or not item.strip():
            raise Unfit(f"must hold names only, but entry {index + 1} is {shown(item)}", inside=(index,))
    return tuple(dict.fromkeys(_whole_characters(item.strip(), index) for index, item in enumerate(value)))


def _plugins(value: Any) -> tuple[str, ...] | str:
    if value == "inherit":
        return "inherit"
    try:
        return _words(value)
    except Unfit as error:
        raise Unfit(f"{error} (or the word inherit)", inside=error.inside) from None


def _whole(least: int) -> Convert:
    def convert(value: Any) -> int:
        if not _counts(value) or value < least:
            raise _must(f"a whole number of at least {least}", value)
        return int(value)

    return convert


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= MAX_WHOLE


def _seconds(value: Any) -> float:
    if not _is_number(value) or not 0 < value <= MAX_SECONDS:
        raise _must(f"a number of seconds above 0 and up to {MAX_SECONDS:,}", value)
    return float(value)


def _temperature(value: Any) -> float:
    if not _is_number(value) or not 0 <= value <= 2:
        raise _must("a number from 0 to 2", value)
    return float(value)


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _must("true or false", value)
    return value


def _one_of(choices: tuple[str, ...]) -> Convert:
    def convert(value: Any) -> str:
        if not isinstance(value, str) or value not in choices:
            raise _must(f"one of {', '.join(choices)}", value)
        return value

    return convert


def _icon(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or len(value) != 3:
        raise _must("a list of exactly three lines of text", value)
    for index, line in enumerate(value):
        if not isinstance(line, str) or "\n" in line:
            raise Unfit(f"must be three lines of text, but entry {index + 1} is {shown(line)}", inside=(index,))
        _whole_characters(line, index)
    return tuple(value)


def _budget(value: Any) -> Limits:
    if isinstance(value, Limits):
        return value
    if not isinstance(value, Mapping):
        raise _must(f"an object with some of {', '.join(KINDS)}", value)
    for key, amount in value.items():
        if key == "cost_usd" and (_is_number(amount) or isinstance(amount, Decimal)) and amount >= 0:
            continue
        if key in KINDS and (amount is None or (key != "cost_usd" and _counts(amount))):
            continue
        if key in KINDS:
            kind = "number" if key == "cost_usd" else "whole number"
            raise Unfit(f"must have a {kind} of at least 0 as {key}, not {shown(amount)}", inside=(key,))
    try:
        return Limits.of(value)
    except ConfigError as error:
        raise Unfit(f"is wrong: {str(error).removeprefix('budget: ')}") from None


def _counts(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_WHOLE


def _gc(value: Any) -> GCConfig:
    try:
        return gc_config_from(_json(value, ()) if isinstance(value, Mapping) else value)
    except ConfigError as error:
        text = str(error)
        raise Unfit(text.removeprefix("gc ") if text.startswith("gc must") else f"is wrong: {text[4:]}") from None


def _output_schema(value: Any) -> dict[str, Any]:
    schema = _object(value)
    try:
        Validator(schema, what="it")
    except ConfigError as error:
        raise Unfit(f"is no schema: {error}") from None
    return schema


def _plugin_configs(value: Any) -> dict[str, Any]:
    configs = _object(value)
    for name, config in configs.items():
        if not isinstance(config, dict):
            raise Unfit(f"must have an object of settings for '{name}', not {shown(config)}", inside=(name,))
    return configs


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise _must("an object", value)
    copied: dict[str, Any] = _json(value, ())
    return copied


def _json(value: Any, inside: tuple[Step, ...]) -> Any:
    """A deep copy with nothing in it that JSON cannot hold."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _whole_characters(value, *inside)
    if math.isfinite(value) if isinstance(value, float) else isinstance(value, int) and value.bit_length() <= MAX_BITS:
        return value
    if len(inside) >= MAX_DEPTH:
        raise Unfit(f"must not be nested deeper than {MAX_DEPTH} levels", inside=inside[:1])
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise Unfit(f"must have text as keys, not {shown(key)}", inside=inside)
            _whole_characters(key, *inside)
        return {key: _json(item, (*inside, key)) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_json(item, (*inside, index)) for index, item in enumerate(value)]
    if isinstance(value, PurePath):
        return str(value)
    raise Unfit(f"must hold JSON values only, but {'.'.join(map(str, inside))} is {shown(value)}", inside=inside)


def _or_none(convert: Convert) -> Convert:
    return lambda value: None if value is None else convert(value)


#: Every field of a profile, in the order in which it is documented.
FIELDS: Mapping[str, Convert] = {
    "name": _name,
    "description": _text,
    "plugins": _plugins,
    "tools": _or_none(_words),
    "disallowed_tools": lambda value: () if value is None else _words(value),
    "plugin_configs": _plugin_configs,
    "system_instructions": _or_none(_text),
    "skills": _words,
    "model": _or_none(_inheritable),
    "provider": _or_none(_inheritable),
    "fallback_models": _words,
    "temperature": _or_none(_temperature),
    "reasoning_effort": _or_none(_one_of(EFFORTS)),
    "max_output_tokens": _or_none(_whole(1)),
    "max_turns": _whole(1),
    "timeout_seconds": _or_none(_seconds),
    "idle_timeout_seconds": _or_none(_seconds),
    "budget": _or_none(_budget),
    "auto_approved": _truth,
    "visibility": _one_of(VISIBILITIES),
    "output_schema": _or_none(_output_schema),
    "emit_findings": _truth,
    "gc": _or_none(_gc),
    "icon": _or_none(_icon),
    "icon_name": _or_none(_word),
    "allow_agents": _words,
    "max_children": _or_none(_whole(0)),
    "max_depth": _or_none(_whole(0)),
    "reuse": _truth,
}
