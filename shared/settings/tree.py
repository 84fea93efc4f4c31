"""Settings as a tree in which every value knows where it comes from, and stronger trees cover weaker ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from shared.settings.origin import Origin

Path: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class Value:
    """One value and its origin."""

    value: Any
    origin: Origin


@dataclass(frozen=True)
class Branch:
    """Values by name, each of which may come from somewhere else."""

    entries: Mapping[str, Node]
    origin: Origin


Node: TypeAlias = Value | Branch


def grown(value: Any, origin_of: Callable[[Path], Origin], *, depth: int, path: Path = ()) -> Node:
    """A tree from plain values; objects are taken apart down to `depth`, deeper ones are single values."""
    if depth <= 0 or not isinstance(value, Mapping):
        return Value(value, origin_of(path))
    entries = {str(key): grown(each, origin_of, depth=depth - 1, path=(*path, str(key))) for key, each in value.items()}
    return Branch(entries, origin_of(path))


def merged(weak: Node | None, strong: Node) -> Node:
    """Both trees in one: where both have something to say, the strong one does."""
    if not isinstance(weak, Branch) or not isinstance(strong, Branch):
        return strong
    entries = {**weak.entries, **{key: merged(weak.entries.get(key), node) for key, node in strong.entries.items()}}
    origin = strong.origin if strong.entries or not weak.entries else weak.origin
    return Branch(entries, origin)


def plain(node: Node) -> Any:
    """The values alone."""
    if isinstance(node, Value):
        return node.value
    return {key: plain(entry) for key, entry in node.entries.items()}


def leaves(node: Node, path: Path = ()) -> Iterator[tuple[Path, Value]]:
    """Every value with the way to it; a branch without entries counts as an empty object."""
    if isinstance(node, Value):
        yield path, node
    elif not node.entries:
        yield path, Value({}, node.origin)
    else:
        for key, entry in node.entries.items():
            yield from leaves(entry, (*path, key))
