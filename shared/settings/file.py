"""Reading one settings file: the tree of its values, or everything that is wrong with it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared.definitions.document import Document, Fault, Unreadable
from shared.definitions.files import read_file
from shared.definitions.profile_fields import shown
from shared.definitions.source import Problem, bounded
from shared.definitions.yaml_text import read_yaml
from shared.file_tree import TreeFile, TreeRefused, read_one
from shared.settings import tree
from shared.settings.check import faults
from shared.settings.keys import KEYS
from shared.settings.origin import Origin, OriginKind

PROJECT_FILE = ".jaato/config.yaml"
MAX_BYTES = 1 << 20


@dataclass(frozen=True)
class SettingsFile:
    """A file that was found: its values, its fingerprint if it is the project's, and what is to be said about it."""

    kind: OriginKind
    path: str
    entries: Mapping[str, tree.Node]
    problems: tuple[Problem, ...] = ()
    digest: str | None = None


def read_user_file(kind: OriginKind, path: Path) -> SettingsFile | None:
    """A file of the user's own, who may well link it from elsewhere; None if there is none."""
    if not os.path.lexists(path):
        return None
    real = os.path.realpath(path)
    try:
        return _parsed(kind, str(path), read_file(real, root=os.path.dirname(real)).text)
    except Unreadable as error:
        return SettingsFile(kind, str(path), {}, _problems(str(path), error.faults))


def read_project_file(workspace: Path) -> SettingsFile | None:
    """The project's file, reached without following links, with the fingerprint that trust goes by."""
    path = str(workspace / PROJECT_FILE)
    try:
        found = read_one(workspace, PROJECT_FILE)
        if found is None:
            return None
        return _parsed("project", path, _text(found), found.digest)
    except TreeRefused as error:
        return SettingsFile("project", path, {}, _problems(path, [Fault("unreadable", f"{error}")]))
    except Unreadable as error:
        return SettingsFile("project", path, {}, _problems(path, error.faults))


def _text(file: TreeFile) -> str:
    if len(file.data) > MAX_BYTES:
        raise Unreadable(Fault("too-large", f"is larger than {MAX_BYTES:,} bytes"))
    try:
        return file.data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = file.data.count(b"\n", 0, error.start) + 1
        raise Unreadable(Fault("not-utf8", "is not UTF-8 text; save it as UTF-8", line)) from None


def _parsed(kind: OriginKind, path: str, text: str, digest: str | None = None) -> SettingsFile:
    document = read_yaml(text)
    if document.value is None:
        return SettingsFile(kind, path, {}, digest=digest)
    if not isinstance(document.value, Mapping):
        raise Unreadable(Fault("not-an-object", f"expected settings as 'key: value', got {shown(document.value)}", 1))
    given = {key: value for key, value in document.value.items() if value is not None}
    found = _problems(path, faults(document, given))
    if any(problem.severity == "error" for problem in found):
        return SettingsFile(kind, path, {}, found, digest)
    return SettingsFile(kind, path, _entries(kind, path, document, given), found, digest)


def _entries(kind: OriginKind, path: str, document: Document, given: Mapping[str, Any]) -> dict[str, tree.Node]:
    def node(key: str) -> tree.Node:
        return tree.grown(
            _long_form(key, given[key]),
            lambda inside: Origin(kind, path, document.line((key, *inside))),
            depth=KEYS[key].depth,
        )

    return {key: node(key) for key in given if key in KEYS}


def _long_form(key: str, value: Any) -> Any:
    """The object that a shorthand stands for."""
    if key == "gc" and isinstance(value, str):
        return {"type": value}
    if key == "plugins" and isinstance(value, list):
        return {name: {} for name in value}
    if key == "plugins":
        return {name: {} if each is None or each is True else each for name, each in value.items()}
    return value


def _problems(path: str, found: Any) -> tuple[Problem, ...]:
    return bounded([fault.at(path) for fault in found])
