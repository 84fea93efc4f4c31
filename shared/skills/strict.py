"""Strict: the Agent Skills specification to the letter, with every complaint of its reference validator.

The reference reads YAML strictly: everything is text, and flow style (`[a, b]`, `{a: b}`), anchors, tags
and keys that stand twice are errors. A file that passes here passes there, and the other way round; only
for U+0085, U+2028 and U+2029, which are line breaks in some versions of YAML, the two may differ.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any

import yaml

from shared.definitions.source import Problem
from shared.skills.reader import (
    MAX_COMPATIBILITY,
    MAX_DESCRIPTION,
    MAX_NAME,
    SPEC_FIELDS,
    name_faults,
)

_MAX_DEPTH = 40
#: Line breaks of YAML 1.1, which the reference does not take for any: characters like others, and no letters.
_NO_BREAKS = str.maketrans(dict.fromkeys("\x85\u2028\u2029", "\u00b7"))


class _Refused(Exception):
    def __init__(self, code: str, text: str, line: int | None = None) -> None:
        super().__init__(text)
        self.code, self.line = code, line


def strict_problems(text: str, *, path: str, folder_name: str) -> list[Problem]:
    """Everything the specification has against a SKILL.md; empty if it complies."""
    try:
        fields, lines = _strict_fields(text)
    except _Refused as error:
        return [Problem(path, error.line, error.code, None, str(error))]
    check = _Check(path, lines)
    extra = sorted(set(fields) - set(SPEC_FIELDS))
    if extra:
        known = ", ".join(SPEC_FIELDS)
        check.say("strict-field", extra[0], f"not in the specification: {', '.join(extra)}; it has {known}")
    _check_name(check, fields, folder_name)
    _check_description(check, fields)
    if "compatibility" in fields:
        value = fields["compatibility"]
        if not isinstance(value, str):
            check.say("strict-compatibility", "compatibility", "must be text")
        elif len(value) > MAX_COMPATIBILITY:
            check.say("strict-compatibility", "compatibility", f"is longer than {MAX_COMPATIBILITY} characters")
    return check.problems


class _Check:
    def __init__(self, path: str, lines: Mapping[str, int]) -> None:
        self.problems: list[Problem] = []
        self._path, self._lines = path, lines

    def say(self, code: str, field: str, text: str) -> None:
        self.problems.append(Problem(self._path, self._lines.get(field, 1), code, field, text))


def _check_name(check: _Check, fields: Mapping[str, Any], folder_name: str) -> None:
    if "name" not in fields:
        check.say("strict-name", "name", "the field 'name' is required")
        return
    value = fields["name"]
    if not isinstance(value, str) or not value.strip():
        check.say("strict-name", "name", "the name must be a text that is not empty")
        return
    name = unicodedata.normalize("NFKC", value.strip())
    if len(name) > MAX_NAME:
        check.say("strict-name", "name", f"the name has {len(name)} characters; the most is {MAX_NAME}")
    for wrong in name_faults(name):
        check.say("strict-name", "name", f"the name '{name}' {wrong}")
    if unicodedata.normalize("NFKC", folder_name) != name:
        check.say("strict-name", "name", f"the folder '{folder_name}' must have the skill's name '{name}'")


def _check_description(check: _Check, fields: Mapping[str, Any]) -> None:
    if "description" not in fields:
        check.say("strict-description", "description", "the field 'description' is required")
        return
    value = fields["description"]
    if not isinstance(value, str) or not value.strip():
        check.say("strict-description", "description", "the description must be a text that is not empty")
    elif len(value) > MAX_DESCRIPTION:
        text = f"the description has {len(value):,} characters; the most is {MAX_DESCRIPTION:,}"
        check.say("strict-description", "description", text)


def _strict_fields(text: str) -> tuple[dict[str, Any], dict[str, int]]:
    if not text.startswith("---"):
        raise _Refused("strict-frontmatter", "the file must begin with '---'", 1)
    parts = text.split("---", 2)
    if len(parts) < 3:
        raise _Refused("strict-frontmatter", "the front matter is not closed with '---'", 1)
    try:
        return _strict_yaml(parts[1].translate(_NO_BREAKS))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise _Refused("strict-yaml", f"not valid YAML: {error.problem}", mark.line + 1 if mark else None) from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise _Refused("strict-yaml", f"not valid YAML: {str(error).splitlines()[0]}") from None


def _strict_yaml(block: str) -> tuple[dict[str, Any], dict[str, int]]:
    depth = 0
    for event in yaml.parse(block, Loader=yaml.SafeLoader):  # flat, so that nothing can nest too deeply below
        line = event.start_mark.line + 1 if event.start_mark else 1
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _MAX_DEPTH:
            raise _Refused("strict-yaml", f"nested deeper than {_MAX_DEPTH} levels", line)
        if isinstance(event, yaml.CollectionStartEvent) and event.flow_style:
            raise _Refused("strict-yaml", "flow style such as [a, b] or {a: b} is not allowed: use lines", line)
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise _Refused("strict-yaml", "anchors and aliases are not allowed", line)
        if getattr(event, "tag", None):
            raise _Refused("strict-yaml", "tags are not allowed: write a plain value", line)
    node = yaml.compose(block, Loader=yaml.SafeLoader)
    if not isinstance(node, yaml.MappingNode):
        raise _Refused("strict-frontmatter", "the front matter must be 'key: value' lines", 1)
    lines = {str(key.value): key.start_mark.line + 1 for key, _ in node.value}
    return _plain(node), lines


def _plain(node: yaml.Node) -> Any:
    """Everything as text, in lists and objects; keys that stand twice and uneven indentation are refused."""
    if isinstance(node, yaml.SequenceNode):
        return [_plain(each) for each in node.value]
    if not isinstance(node, yaml.MappingNode):
        return str(node.value)
    found: dict[str, Any] = {}
    column: int | None = None
    for key, value in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            raise _Refused("strict-yaml", "a key must be plain text", line)
        if key.value in found:
            raise _Refused("strict-yaml", f"'{key.value}' is written twice", line)
        if isinstance(value, yaml.MappingNode):
            column = value.start_mark.column if column is None else column
            if value.start_mark.column != column:
                raise _Refused("strict-yaml", "objects must be indented alike", value.start_mark.line + 1)
        found[key.value] = _plain(value)
    return found
