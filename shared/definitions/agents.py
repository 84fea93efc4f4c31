"""Agents in markdown: front matter as any known host writes it, the body as instructions; they become profiles."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from shared.definitions.agent_dialects import dialect_of
from shared.definitions.agent_fields import AGENT_FIELDS, Taken
from shared.definitions.agent_models import model_and_provider
from shared.definitions.agent_overlay import Overlay
from shared.definitions.agent_rights import ALLOWING_KEYS, AgentRights
from shared.definitions.document import Document, Unreadable
from shared.definitions.frontmatter import FrontMatter, read_front_matter
from shared.definitions.profile_fields import FIELDS, Unfit
from shared.definitions.profile_file import Reading, profile_reading, suggestion, unreadable
from shared.definitions.rights_keys import is_rights_key, nearly_narrowing_key, plain
from shared.definitions.source import Problem, Severity, Source, bounded
from shared.definitions.tool_list import tool_entries
from shared.definitions.tool_names import our_names

MAX_DESCRIPTION = 1024
_NAME = re.compile(r"[a-z0-9]+(?:[-_][a-z0-9]+)*")
#: Single words that are hardly meant as anything but a tool.
_ALONE = [
    [name] for name in ("Read", "Write", "Edit", "Grep", "Glob", "LS", "Bash", "WebSearch", "WebFetch", "TodoWrite")
]
_ACTIONS = ("allow", "ask", "deny")
_ELSEWHERE_FIRST = frozenset({"model", "skills", "visibility", "icon", "reasoning_effort"})


def read_agent(text: str, *, stem: str, source: Source, overlay: Overlay | None = None) -> Reading:
    """A profile from the text of a markdown file; a file with any error gives none at all."""
    try:
        front = read_front_matter(text) if overlay is None else overlay.front_matter(text)
    except Unreadable as error:
        return unreadable(error, stem=stem, source=source)
    return _AgentDraft(front, stem, source, overlay or Overlay(dialect_of(source.path, front.fields))).reading()


class _AgentDraft:
    """An agent on its way to a profile: each field is translated, then judged as those of any profile are."""

    def __init__(self, front: FrontMatter, stem: str, source: Source, overlay: Overlay) -> None:
        self._front, self._stem, self._source = front, stem, source
        self._dialect, self._overlay = overlay.dialect, overlay.fields
        self._fields = {key: value for key, value in front.fields.items() if not self._is_replaced(key)}
        self._path = source.path or stem
        self._problems = [fault.at(self._path) for fault in front.faults]
        self._given: dict[str, Any] = {}
        self._from: dict[str, str] = {}  # our field → the key it came from
        self._disabled = False
        self._doubtful = bool(front.swallowing)
        self._fixed: frozenset[str] = frozenset()
        self._rights = AgentRights(self._report, own=overlay.own_tools)

    def reading(self) -> Reading:
        """The profile if nothing is wrong with it."""
        self._take_all(self._overlay)
        self._fixed = frozenset((*self._given, "provider") if "model" in self._overlay else self._given)
        self._take_all(self._fields)
        self._take_body()
        self._settle_rights()
        self._check_presence()
        return self._judged()

    # -- the fields ------------------------------------------------------------------------------

    def _is_replaced(self, key: str) -> bool:
        return "tools" in self._overlay and plain(key) in ALLOWING_KEYS

    def _take_all(self, fields: Mapping[str, Any]) -> None:
        for key, value in fields.items():
            try:
                self._take(key, value)
            except Unfit as error:
                self._report(key, error.code, f"'{key}' {error}", "error", *error.inside)

    def _take(self, key: str, value: Any) -> None:
        if not key.isprintable():
            raise Unfit("holds characters that cannot be seen: which field is meant is a guess", code="unknown-field")
        if is_rights_key(key):
            self._rights.take(key, value)
        elif key in FIELDS and key not in _ELSEWHERE_FIRST and key != "system_instructions":
            if value is not None or key not in ("name", "description"):
                self._put(key, {key: value})
        elif key == "provider" or (key == "model" and self._is_models_own_name(value)):
            self._put(key, {key: value})
        elif (take := AGENT_FIELDS.get(plain(key))) is not None:
            self._accept(key, take(key, value))
        elif key != "$schema":
            self._unknown(key, value)

    def _is_models_own_name(self, value: Any) -> bool:
        """Whether a model is taken as it is written: beside its provider, or where all that is known is its name."""
        if "provider" in self._fields:
            return True
        return self._dialect.any_model and isinstance(value, str) and model_and_provider(value) is None

    def _accept(self, key: str, taken: Taken) -> None:
        self._disabled = self._disabled or taken.disabled
        for remark in taken.remarks:
            self._report(key, remark.code, remark.text, remark.level)
        self._put(key, taken.values)

    def _put(self, key: str, values: Mapping[str, Any]) -> None:
        for name, value in values.items():
            if name in self._fixed:
                continue
            if name in self._given and self._given[name] != value and name != "visibility":
                raise Unfit(f"says otherwise than '{self._from[name]}': keep one of the two", code="duplicate-key")
            if name != "visibility" or self._given.get(name) != "internal":
                self._given[name], self._from[name] = value, key

    def _unknown(self, key: str, value: Any) -> None:
        """A field that nobody knows is left out, unless it may have been meant to narrow rights."""
        if not key.strip():
            raise Unfit("is no name of a field", code="unknown-field")
        meant = nearly_narrowing_key(key) or (
            "tools" if _is_rule(key, value) or self._looks_like_tools(value) else None
        )
        if meant is not None:
            text = f"unknown field '{key}': did you mean '{meant}'? It may narrow rights, so it is not left out"
            self._report(key, "unknown-field", text, "error")
        else:
            self._doubtful = self._doubtful or bool(self._front.damaged)
            self._report(key, "unknown-field", f"{suggestion(key, FIELDS)} It is left out.", "info")

    def _says_rights(self) -> bool:
        return any(is_rights_key(key) for key in (*self._fields, *self._overlay))

    def _looks_like_tools(self, value: Any) -> bool:
        """Whether a value is a list of known tools, in a file that has none elsewhere."""
        if not isinstance(value, str | list) or self._says_rights():
            return False
        try:
            entries = tool_entries(value)
        except Unfit:
            return False
        known = [entry.name for entry in entries if entry.name is not None and our_names(entry.name) is not None]
        return len(known) == len(entries) and (len(known) > 1 or known in _ALONE)

    def _take_body(self) -> None:
        body = self._front.body.lstrip("\r\n").rstrip()
        if body:
            self._given["system_instructions"] = body
            return
        level: Severity = "error" if "body" in self._dialect.required else "warning"
        self._problems.append(
            Problem(
                self._path,
                self._front.body_line,
                "body-empty",
                None,
                "has no text that says what the agent does",
                level,
            )
        )

    # -- what follows from them ------------------------------------------------------------------

    def _settle_rights(self) -> None:
        rights, own_plugins = self._rights, "plugins" in self._given
        allowing = (*ALLOWING_KEYS, "permission", "permissions")
        says = any(plain(key) in allowing for key in (*self._fields, *self._overlay))
        if not says and not own_plugins and not self._dialect.silent_tools:
            rights.forbid_all()
            text = f"no 'tools': an agent of {self._dialect.name} has none then"
            self._problems.append(Problem(self._path, None, "tools-missing", "tools", text, "info"))
        elif self._doubtful and not self._says_rights():
            rights.forbid_all()
            text = "no 'tools', but what was mended may have held them: none are given; mend the file"
            self._problems.append(Problem(self._path, None, "tools-doubtful", "tools", text, "warning"))
        self._given["tools"] = None if rights.allowed is None else list(rights.allowed)
        self._given["disallowed_tools"] = list(rights.denied)
        if not own_plugins:
            self._given["plugins"] = rights.plugins
        if rights.agents is not None:
            self._given.setdefault("allow_agents", list(rights.agents))
        if self._dialect.max_turns is not None:
            self._given.setdefault("max_turns", self._dialect.max_turns)

    def _check_presence(self) -> None:
        if not isinstance(self._given.get("name", ""), str):
            return  # judged below
        name = self._given.get("name")
        if not name:
            self._given.pop("name", None)
            level: Severity = "error" if "name" in self._dialect.required else "warning"
            self._report("name", "name-missing", f"no name: that of the file is used, '{self._stem}'", level)
        elif not _NAME.fullmatch(name):
            self._report("name", "name-format", f"name '{name}' is not in lower case with hyphens", "warning")
        description = self._given.get("description") or ""
        if isinstance(description, str) and len(description) > MAX_DESCRIPTION:
            text = f"the description has {len(description):,} characters; more than {MAX_DESCRIPTION:,} are a burden"
            self._report("description", "description-too-long", text, "warning")

    def _judged(self) -> Reading:
        document = Document({key: value for key, value in self._given.items() if value is not None}, self._lines)
        judged = profile_reading(document, stem=self._stem, source=self._source)
        problems = [*self._problems, *(self._stricter(problem) for problem in judged.problems)]
        profile = judged.profile
        if self._disabled and profile is not None:
            problems.append(
                Problem(self._path, None, "disabled", "disable", "is switched off by its author", "warning")
            )
            profile = None
        if profile is not None and not any(problem.severity == "error" for problem in problems):
            unmapped, denied = tuple(self._rights.unmapped), tuple(self._rights.unmapped_denied)
            profile = (
                replace(profile, unmapped_tools=unmapped, unmapped_denied=denied) if unmapped or denied else profile
            )
        else:
            profile = None
        return Reading(judged.name, self._source, profile, bounded(problems))

    def _stricter(self, problem: Problem) -> Problem:
        if problem.code != "description-missing":
            return problem
        return replace(problem, severity="error" if "description" in self._dialect.required else "warning")

    def _lines(self) -> dict[tuple[str | int, ...], int]:
        """Where each of our fields was written, under the name it has there."""
        found = {(name,): self._front.line(key) for name, key in self._from.items()}
        return {place: line for place, line in found.items() if line is not None}

    def _report(self, key: str, code: str, text: str, level: Severity, *inside: str | int) -> None:
        self._problems.append(Problem(self._path, self._front.line(key, *inside), code, key, text, level))


def _is_rule(key: str, value: Any) -> bool:
    """Whether a field looks like a rule about one tool that slipped out of its map."""
    if isinstance(value, str):
        return value in _ACTIONS
    of_a_tool = our_names("".join(char for char in key if char.isalnum() or char in "_-")) is not None
    if isinstance(value, Mapping):
        return of_a_tool and any(each in _ACTIONS for each in value.values())
    return of_a_tool and isinstance(value, bool)
