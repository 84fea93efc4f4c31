"""From checked JSON arguments to the Python values a signature asks for (dataclasses, enums, sets)."""

from __future__ import annotations

import base64
import dataclasses
import enum
import types
import typing
from collections.abc import Callable
from typing import Any, Union, cast, get_args, get_origin

Converter = Callable[[Any], Any]


def converter(hint: Any) -> Converter | None:
    """A function that builds a value of this type from JSON; None when JSON is the value already."""
    origin, args = get_origin(hint), get_args(hint)
    if origin in (typing.Annotated, typing.Required, typing.NotRequired):
        return converter(args[0])
    if origin in (Union, types.UnionType):
        return _optional(args)
    if hint is bytes:
        return base64.b64decode
    if isinstance(hint, type) and origin is None:
        if issubclass(hint, enum.Enum):
            return hint
        if dataclasses.is_dataclass(hint):
            return _dataclass(hint)
        return hint if hint in (tuple, set, frozenset) else None
    return _container(origin, args)


def _optional(args: tuple[Any, ...]) -> Converter | None:
    """Only `X | None` is converted: for a wider union JSON does not say which member is meant."""
    inner = [arg for arg in args if arg is not type(None)]
    convert = converter(inner[0]) if len(inner) == 1 else None
    return (lambda value: None if value is None else convert(value)) if convert else None


def _container(origin: Any, args: tuple[Any, ...]) -> Converter | None:
    if origin is dict and len(args) == 2 and (each := converter(args[1])):
        return lambda value: {key: each(item) for key, item in value.items()}
    if origin not in (list, tuple, set, frozenset) or not args:
        return None
    item = converter(args[0])
    if item is None:
        return None if origin is list else cast(Converter, origin)
    return lambda value: origin(item(each) for each in value)


def _dataclass(cls: Any) -> Converter:
    hints = typing.get_type_hints(cls, include_extras=True)
    fields = {name: convert for name, hint in hints.items() if (convert := converter(hint))}

    def build(value: dict[str, Any]) -> Any:
        return cls(**{key: fields[key](item) if key in fields else item for key, item in value.items()})

    return build
