"""From checked JSON arguments to the Python values a signature asks for (dataclasses, enums, sets)."""

from __future__ import annotations

import base64
import dataclasses
import enum
import types
import typing
from collections import abc
from collections.abc import Callable
from typing import Any, Union, get_args, get_origin

Converter = Callable[[Any], Any]

#: What is built for a container type of a signature; JSON itself has lists and dicts.
_LISTS: dict[Any, Callable[[Any], Any]] = {
    list: list,
    abc.Sequence: list,
    abc.Iterable: list,
    tuple: tuple,
    set: set,
    abc.Set: set,
    frozenset: frozenset,
}


def converter(hint: Any) -> Converter | None:
    """A function that builds a value of this type from JSON; None when JSON is the value already."""
    origin, args = get_origin(hint), get_args(hint)
    if origin in (typing.Annotated, typing.Required, typing.NotRequired):
        return converter(args[0])
    if origin in (Union, types.UnionType):
        return _optional(args)
    if hint is int:
        return _whole
    if hint is bytes:
        return base64.b64decode
    if isinstance(hint, type) and origin is None:
        if issubclass(hint, enum.Enum):
            return hint
        if dataclasses.is_dataclass(hint):
            return _fields(hint, hint)
        if typing.is_typeddict(hint):
            return _fields(hint, dict)
        return hint if hint in (tuple, set, frozenset) else None
    return _container(origin, args)


def _whole(value: Any) -> Any:
    """JSON Schema takes 5.0 for an integer; Python does not."""
    return int(value) if isinstance(value, float) else value


def _optional(args: tuple[Any, ...]) -> Converter | None:
    """Only `X | None` is converted: for a wider union JSON does not say which member is meant."""
    inner = [arg for arg in args if arg is not type(None)]
    convert = converter(inner[0]) if len(inner) == 1 else None
    return (lambda value: None if value is None else convert(value)) if convert else None


def _container(origin: Any, args: tuple[Any, ...]) -> Converter | None:
    if origin in (dict, abc.Mapping, abc.MutableMapping) and len(args) == 2 and (each := converter(args[1])):
        return lambda value: {key: each(item) for key, item in value.items()}
    if origin is tuple and args and args[-1] is not Ellipsis:
        return _fixed_tuple(args)
    make = _LISTS.get(origin)
    if make is None or not args:
        return None
    item = converter(args[0])
    if item is None:
        return None if make is list else make
    return lambda value: make(item(each) for each in value)


def _fixed_tuple(args: tuple[Any, ...]) -> Converter:
    items = [converter(arg) or _same for arg in args]
    return lambda value: tuple(convert(each) for convert, each in zip(items, value, strict=True))


def _same(value: Any) -> Any:
    return value


def _fields(cls: Any, make: Callable[..., Any]) -> Converter:
    """For a class with typed fields: a dataclass, or a TypedDict, which stays a dict."""
    hints = typing.get_type_hints(cls, include_extras=True)
    fields = {name: convert for name, hint in hints.items() if (convert := converter(hint))}

    def build(value: dict[str, Any]) -> Any:
        return make(**{key: fields[key](item) if key in fields else item for key, item in value.items()})

    return build
