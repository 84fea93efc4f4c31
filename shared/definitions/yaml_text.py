"""Reading YAML text safely: plain values only, no bombs, dates stay text, with the lines of its keys.

The text is surveyed as a flat stream of events first, because the C loader recurses without a bound
and a deeply nested text would end the process; only what passes the survey is loaded.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import yaml

from shared.definitions.document import (
    MAX_DEPTH,
    MAX_VALUES,
    Document,
    Fault,
    Place,
    Step,
    Unreadable,
    too_deep,
    twice,
)

_CORE = "tag:yaml.org,2002:"
_PLAIN_TAGS = {"!", *(_CORE + kind for kind in ("str", "int", "float", "bool", "null", "map", "seq"))}
_NOT_RESOLVED = {_CORE + "timestamp", _CORE + "value"}
_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # where PyYAML was built without libyaml

_HINTS = {
    "mapping values are not allowed": "a value that holds ': ' must be in quotes",
    "that cannot start any token": "indent with spaces, and put values that begin with such a character in quotes",
    "tab character": "indent with spaces",
    "undefined alias": "a value that begins with '*' must be in quotes",
    "could not find expected ':'": "a line without 'key:' stands where a key is expected",
    "expected a single document": "a file holds one profile; remove what follows '---'",
}


class _Loader(_Base):  # type: ignore[misc]
    """The safe loader, for which a date is a text like any other, and a key always one."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag not in _NOT_RESOLVED]
        for first, resolvers in _Base.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """An object; without this a key such as `on` or `1` would not be the text that was written."""
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != _CORE + "merge":
                key.tag = _CORE + "str"
        made: dict[Any, Any] = super().construct_mapping(node, deep=deep)
        return made


def read_yaml(text: str) -> Document:
    """The value of a YAML text; raises Unreadable for anything doubtful."""
    try:
        survey = _Survey()
        for event in yaml.parse(text, Loader=_Loader):
            survey.take(event)
        if survey.faults:
            raise Unreadable(*survey.faults)
        value = yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise Unreadable(Fault("yaml-unreadable", _reason(error), mark.line + 1 if mark else None)) from None
    except yaml.YAMLError as error:  # characters that YAML does not allow
        raise Unreadable(Fault("yaml-unreadable", f"not valid YAML: {str(error).splitlines()[0]}")) from None
    except RecursionError:
        raise Unreadable(too_deep()) from None
    except (ValueError, TypeError, KeyError) as error:  # what the loader lets through, such as a number of 5000 digits
        raise Unreadable(Fault("yaml-unreadable", f"not valid YAML: {error}")) from None
    return Document(value, lambda: survey.lines)


def _reason(error: yaml.MarkedYAMLError) -> str:
    problem = error.problem or error.context or "it cannot be parsed"
    hint = next((hint for part, hint in _HINTS.items() if part in problem or part in (error.context or "")), None)
    return f"not valid YAML: {problem}{f' ({hint})' if hint else ''}"


@dataclass
class _Level:
    """An open list or object: how many values it holds so far, and the key or index that is being read."""

    anchor: str | None
    is_map: bool
    size: int = 1
    index: int = 0
    key: str = ""
    in_value: bool = False  # of an object: whether a key was read and its value is next
    seen: dict[str, int] = field(default_factory=dict)


class _Survey:
    """One pass over the events: bounds on nesting and size, duplicate keys, foreign tags, and lines."""

    def __init__(self) -> None:
        self.lines: dict[Place, int] = {}
        self.faults: list[Fault] = []
        self._levels: list[_Level] = []
        self._sizes: dict[str, int] = {}  # of what each finished anchor stands for

    def take(self, event: yaml.Event) -> None:
        """Look at the next event."""
        line = event.start_mark.line + 1 if event.start_mark else 0
        if isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent):
            self._check_tag(event, line)
        if isinstance(event, yaml.CollectionStartEvent):
            self._begin(None, line)
            self._levels.append(_Level(event.anchor, isinstance(event, yaml.MappingStartEvent)))
            if len(self._levels) > MAX_DEPTH:
                raise Unreadable(too_deep(line))
        elif isinstance(event, yaml.CollectionEndEvent):
            level = self._levels.pop()
            self._finish(level.anchor, level.size, line)
        elif isinstance(event, yaml.ScalarEvent):
            self._begin(event.value, line)
            self._finish(event.anchor, 1, line)
        elif isinstance(event, yaml.AliasEvent):
            self._begin(None, line)
            self._finish(None, self._size_of(event.anchor or "", line), line)

    def _check_tag(self, event: yaml.ScalarEvent | yaml.CollectionStartEvent, line: int) -> None:
        if event.tag is not None and event.tag not in _PLAIN_TAGS:
            self.faults.append(Fault("yaml-tag", f"the tag '{event.tag}' is not allowed; write a plain value", line))

    def _begin(self, text: str | None, line: int) -> None:
        """A key, value or list entry begins; note where."""
        if not self._levels:
            return
        level = self._levels[-1]
        if not level.is_map:
            self.lines.setdefault(self._place(level.index), line)
        elif not level.in_value:
            level.key = text or ""
            place = self._place(level.key)
            if text is not None and text in level.seen:
                self.faults.append(twice(place, line, level.seen[text]))
            level.seen.setdefault(level.key, line)
            self.lines.setdefault(place, line)

    def _finish(self, anchor: str | None, size: int, line: int) -> None:
        """A key, value or list entry is whole; count it."""
        if anchor is not None:
            self._sizes[anchor] = size
        if not self._levels:
            return
        level = self._levels[-1]
        level.size += size
        if level.size > MAX_VALUES:
            raise Unreadable(Fault("too-complex", f"more than {MAX_VALUES:,} values, aliases counted", line))
        if level.is_map:
            level.in_value = not level.in_value
        else:
            level.index += 1

    def _size_of(self, anchor: str, line: int) -> int:
        if anchor in {level.anchor for level in self._levels}:
            raise Unreadable(Fault("too-complex", f"'*{anchor}' stands inside what it refers to", line))
        return self._sizes.get(anchor, 1)

    def _place(self, last: Step) -> Place:
        return (*(level.key if level.is_map else level.index for level in self._levels[:-1]), last)
