"""JSON Schema from a Python signature, its type hints and its docstring."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import math
import re
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, Literal, Union, get_args, get_origin

from shared.errors import ConfigError

_SCALARS: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    bytes: {"type": "string", "contentEncoding": "base64"},
    Any: {},
    object: {},
}
_LISTS = (list, tuple, set, frozenset)


def parameters_schema(fn: Callable[..., Any], *, skip: frozenset[str] = frozenset()) -> dict[str, Any]:
    """The JSON Schema of a function's parameters, closed to unknown fields."""
    hints = hints_of(fn)
    described = parameter_docs(inspect.getdoc(fn) or "")
    properties: dict[str, Any] = {}
    required: list[str] = []
    for name, parameter in inspect.signature(fn).parameters.items():
        if name in skip or name == "self" or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise ConfigError(f"{_name_of(fn)}, parameter '{name}' is positional only; tools are called by keyword")
        properties[name] = _property(fn, name, parameter, hints.get(name, Any), described.get(name))
        if parameter.default is parameter.empty:
            required.append(name)
    schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    if required:
        schema["required"] = required
    return schema


def hints_of(fn: Callable[..., Any]) -> dict[str, Any]:
    """The type hints of a function, as types."""
    try:
        return typing.get_type_hints(fn, include_extras=True)
    except (AttributeError, NameError, SyntaxError, TypeError) as error:
        raise ConfigError(
            f"{_name_of(fn)}: its type hints cannot be read: {error}; import the types at run time, "
            "not only under TYPE_CHECKING"
        ) from error


def _name_of(fn: Callable[..., Any]) -> str:
    return getattr(fn, "__qualname__", repr(fn))


def _property(
    fn: Callable[..., Any], name: str, parameter: inspect.Parameter, hint: Any, doc: str | None
) -> dict[str, Any]:
    try:
        schema = type_schema(hint)
    except ConfigError as error:
        raise ConfigError(f"{_name_of(fn)}, parameter '{name}': {error}") from None
    except RecursionError:
        raise ConfigError(
            f"{_name_of(fn)}, parameter '{name}': type {hint!r} contains itself; use dict for the part that repeats"
        ) from None
    if doc:
        schema = {**schema, "description": doc}
    if parameter.default is not parameter.empty and parameter.default is not None:
        default = parameter.default.value if isinstance(parameter.default, enum.Enum) else parameter.default
        if isinstance(default, (str, int, bool, list, dict)) or (isinstance(default, float) and math.isfinite(default)):
            schema = {**schema, "default": default}
    return schema


def type_schema(hint: Any) -> dict[str, Any]:
    """The JSON Schema of one type hint."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is typing.Annotated:
        return _annotated(args)
    if origin is None and hint in _SCALARS:  # only bare types: one annotated with a dict cannot be hashed
        return dict(_SCALARS[hint])
    if origin is Literal:
        return _enum(list(args))
    if origin in (Union, types.UnionType):
        return _union(args)
    if origin is tuple and args and args[-1] is not Ellipsis:
        return _fixed_tuple(args)
    if (origin or hint) in _LISTS or _is_abc(origin or hint, "Sequence", "Iterable", "Set"):
        return {"type": "array", "items": type_schema(args[0]) if args else {}}
    if origin is dict or hint is dict or _is_abc(origin or hint, "Mapping", "MutableMapping"):
        values = type_schema(args[1]) if len(args) == 2 else {}
        return {"type": "object", "additionalProperties": values or True}
    if isinstance(hint, type):
        return _class(hint)
    raise ConfigError(
        f"type {hint!r} has no JSON Schema; use str, int, float, bool, Literal, list, dict or a dataclass"
    )


def _fixed_tuple(args: tuple[Any, ...]) -> dict[str, Any]:
    options = [type_schema(arg) for arg in args]
    size = {"minItems": len(args), "maxItems": len(args)}
    if all(option == options[0] for option in options):
        return {"type": "array", "items": options[0], **size}
    return {"type": "array", "prefixItems": options, **size}


def _is_abc(hint: Any, *names: str) -> bool:
    return getattr(hint, "__module__", "") == "collections.abc" and getattr(hint, "__name__", "") in names


def _annotated(args: tuple[Any, ...]) -> dict[str, Any]:
    schema = type_schema(args[0])
    for extra in args[1:]:
        if isinstance(extra, str):
            schema["description"] = extra
        elif isinstance(extra, Mapping):
            schema.update(extra)
    return schema


def _union(args: tuple[Any, ...]) -> dict[str, Any]:
    options = [type_schema(arg) for arg in args]
    if all(set(option) == {"type"} for option in options):
        kinds = [option["type"] for option in options]
        return {"type": kinds if len(kinds) > 1 else kinds[0]}
    return {"anyOf": options}


def _enum(values: list[Any]) -> dict[str, Any]:
    kinds = {str: "string", bool: "boolean", int: "integer", float: "number"}
    found = {kinds.get(type(value)) for value in values}
    schema: dict[str, Any] = {"enum": values}
    if len(found) == 1 and None not in found:
        schema = {"type": found.pop(), "enum": values}
    return schema


def _class(hint: type) -> dict[str, Any]:
    if issubclass(hint, enum.Enum):
        return _enum([member.value for member in hint])
    if typing.is_typeddict(hint):
        hints = typing.get_type_hints(hint, include_extras=True)
        required = [name for name, value in hints.items() if _is_required(hint, name, value)]
        return _object({name: _bare(value) for name, value in hints.items()}, required, inspect.getdoc(hint))
    if dataclasses.is_dataclass(hint):
        hints = typing.get_type_hints(hint, include_extras=True)
        fields = [item for item in dataclasses.fields(hint) if item.init]
        required = [
            item.name
            for item in fields
            if item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING
        ]
        return _object({item.name: hints[item.name] for item in fields}, required, None)
    raise ConfigError(f"class {hint.__name__} has no JSON Schema; use a dataclass, a TypedDict or an Enum")


def _is_required(cls: Any, name: str, hint: Any) -> bool:
    """Whether a TypedDict needs the field; its own record misses NotRequired[] in postponed annotations."""
    return name in cls.__required_keys__ and get_origin(hint) is not typing.NotRequired


def _bare(hint: Any) -> Any:
    """A TypedDict field without Required[] or NotRequired[]."""
    return get_args(hint)[0] if get_origin(hint) in (typing.Required, typing.NotRequired) else hint


def _object(hints: Mapping[str, Any], required: list[str], doc: str | None) -> dict[str, Any]:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: type_schema(hint) for name, hint in hints.items()},
        "additionalProperties": False,
    }
    described = parameter_docs(doc or "")
    for name, text in described.items():
        if name in schema["properties"]:
            schema["properties"][name]["description"] = text
    return {**schema, "required": required} if required else schema


_SECTION = re.compile(r"^(args|arguments|parameters|params)\s*:\s*$", re.IGNORECASE)
_GOOGLE = re.compile(r"^\s+\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.+)$")
_SPHINX = re.compile(r"^\s*:param(?: [\w\[\], |.]+)? (\w+):\s*(.+)$")


def parameter_docs(doc: str) -> dict[str, str]:
    """What a docstring says of each parameter: Google (`Args:`) and Sphinx (`:param x:`) style."""
    found: dict[str, str] = {}
    inside, current, indent = False, "", 0
    for line in doc.splitlines():
        if sphinx := _SPHINX.match(line):
            current = sphinx[1]
            found[current] = sphinx[2].strip()
        elif _SECTION.match(line.strip()):
            inside, current = True, ""
        elif inside and line.strip() and not line.startswith((" ", "\t")):
            inside, current = False, ""
        elif inside and (google := _GOOGLE.match(line)) and (not current or _indent(line) <= indent):
            current, indent = google[1], _indent(line)
            found[current] = google[2].strip()
        elif current and line.strip() and (_indent(line) > indent or not (inside or line.startswith(":"))):
            found[current] += " " + line.strip()
        elif not inside:
            current = ""
    return found


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def summary_of(doc: str | None) -> str:
    """A docstring without its parameter section: what the model reads as the tool's description."""
    kept: list[str] = []
    for line in inspect.cleandoc(doc or "").splitlines():
        if _SECTION.match(line) or _SPHINX.match(line) or re.match(r"^(Returns|Raises|Yields)\s*:", line):
            break
        kept.append(line)
    return "\n".join(kept).strip()
