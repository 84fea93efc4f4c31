"""Reading a SKILL.md: tolerant of what is common, honest about what was tolerated, never widening a right."""

from __future__ import annotations

import os
import re
import sys
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from shared.definitions.document import Fault, Unreadable
from shared.definitions.frontmatter import FrontMatter, read_front_matter
from shared.definitions.profile_fields import Unfit
from shared.definitions.source import Problem, Severity, bounded
from shared.definitions.tool_list import tool_entries
from shared.skills.info import SkillDetails, SkillInfo, SkillScope, TrustLevel
from shared.skills.requirements import metadata_of, requirements_of

SPEC_FIELDS = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")
EXTENSIONS = (
    "when_to_use",
    "argument-hint",
    "arguments",
    "disable-model-invocation",
    "user-invocable",
    "disallowed-tools",
    "model",
    "effort",
    "context",
    "agent",
    "background",
    "hooks",
    "paths",
    "shell",
)
MAX_NAME, MAX_DESCRIPTION, MAX_COMPATIBILITY = 64, 1024, 500
MAX_BODY_LINES, MAX_BODY_CHARS = 500, 20_000  # 5,000 tokens
_DETAILS = ("license", "compatibility", "metadata", "hooks")
_NO_DETAILS = SkillDetails()
_SWITCHES = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


@dataclass(frozen=True, slots=True)
class SkillReading:
    """What became of one file: what is known of the skill, unless it cannot be used, and what is to be said."""

    name: str
    folder: str
    info: SkillInfo | None
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True)
class SkillText:
    """A SKILL.md as read: its reading, its body, and the fields that wait until somebody asks."""

    reading: SkillReading
    body: str = ""
    details: SkillDetails = _NO_DETAILS


def read_skill(
    text: str,
    *,
    path: str,
    scope: SkillScope = SkillScope.CUSTOM,
    trust: TrustLevel = TrustLevel.UNTRUSTED,
    folder: str | None = None,
) -> SkillText:
    """What a SKILL.md says; never raises for what the text says."""
    folder = folder if folder is not None else os.path.dirname(path)
    stem = os.path.basename(folder)
    try:
        front = read_front_matter(text)
    except Unreadable as error:
        # A SKILL.md is meant to be one: what would be no problem of another file is an error of this one.
        faults = [Problem(path, fault.line, fault.code, fault.field, fault.text) for fault in error.faults]
        return SkillText(SkillReading(stem, folder, None, bounded(faults)))
    fields = _Fields(front, path)
    info = fields.info(stem, folder, scope, trust)
    details = fields.details()
    fields.check_body()
    usable = info if not any(problem.severity == "error" for problem in fields.problems) else None
    return SkillText(
        SkillReading(info.name, folder, usable, bounded(fields.problems)), front.body.strip("\r\n"), details
    )


class _Fields:
    """The fields of one file, checked one after the other; notes what is wrong on the way."""

    def __init__(self, front: FrontMatter, path: str) -> None:
        self._front, self._values, self._path = front, front.fields, path
        self.problems: list[Problem] = [fault.at(path) for fault in front.faults]

    def info(self, stem: str, folder: str, scope: SkillScope, trust: TrustLevel) -> SkillInfo:
        self._check_names()
        name, description = self._name(stem), self._description()
        metadata = self._metadata()
        conduit = metadata_of(metadata.get("conduit")) or {}
        return SkillInfo(
            name,
            description,
            folder,
            scope,
            trust,
            allowed_tools=self._tools("allowed-tools"),
            disallowed_tools=self._tools("disallowed-tools") or (),
            model=self._text("model"),
            context=self._context(),
            agent=self._text("agent", needed=True),
            affinity=conduit["agent"] if isinstance(conduit.get("agent"), str) else None,
            disable_model_invocation=self._switch("disable-model-invocation", False, cautious=True),
            user_invocable=self._switch("user-invocable", True, cautious=False),
            argument_hint=self._hint(),
            requires=requirements_of(metadata),
            has_hooks=bool(self._values.get("hooks")),
        )

    def details(self) -> SkillDetails:
        compatibility = self._text("compatibility")
        if compatibility is not None and len(compatibility) > MAX_COMPATIBILITY:
            self._say("compatibility-too-long", "compatibility", f"is longer than {MAX_COMPATIBILITY} characters")
        hooks = self._values.get("hooks")
        known = {*SPEC_FIELDS, *EXTENSIONS} - {"when_to_use", "arguments", "effort", "background", "paths", "shell"}
        return SkillDetails(
            license=self._text("license"),
            compatibility=compatibility,
            metadata=metadata_of(self._values.get("metadata")) or {},
            hooks=hooks if isinstance(hooks, Mapping) else None,
            extra={key: value for key, value in self._values.items() if key not in known},
        )

    def check_body(self) -> None:
        body = self._front.body
        lines = body.count("\n") + 1
        if lines > MAX_BODY_LINES or len(body) > MAX_BODY_CHARS:
            text = f"the body has {lines:,} lines and {len(body):,} characters; better at most {MAX_BODY_LINES} lines"
            self._say("body-long", None, f"{text} and {MAX_BODY_CHARS:,} characters: move parts to references/")

    # -- single fields ---------------------------------------------------------------------------

    def _check_names(self) -> None:
        for key in self._values:
            if key in SPEC_FIELDS or key in EXTENSIONS:
                continue
            plain = key.lower().replace("_", "-")
            close = get_close_matches(plain, (*SPEC_FIELDS, *EXTENSIONS), n=1, cutoff=0.8)
            if close:
                self._say("unknown-field", key, f"unknown field '{key}'. Did you mean '{close[0]}'?")

    def _name(self, stem: str) -> str:
        value = self._values.get("name")
        if value is None or (isinstance(value, str) and not value.strip()):
            self._say("name-missing", "name", f"there is no name; its folder's is used: '{stem}'")
            value = stem
        elif not isinstance(value, str):
            self._say("name-type", "name", f"expected text, got {value!r}: put it in quotes")
            value = str(value)
        name = unicodedata.normalize("NFKC", value.strip())
        if unsafe_name(name):
            self._say("name-unsafe", "name", f"{name!a} cannot name a skill: use letters, digits and '-'", "error")
            return name
        for wrong in name_faults(name):
            self._say("name-format", "name", f"the name '{name}' {wrong}")
        if len(name) > MAX_NAME:
            self._say("name-too-long", "name", f"the name has {len(name)} characters; the most is {MAX_NAME}")
        if name != unicodedata.normalize("NFKC", stem):
            self._say("name-folder-mismatch", "name", f"the name '{name}' is not that of its folder '{stem}'")
        return name

    def _description(self) -> str:
        value = self._values.get("description")
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            value = str(value)
        if not isinstance(value, str) or not value.strip():
            what = "there is no description" if value is None or value == "" else "the description is not text"
            self._say(
                "description-missing", "description", f"{what}: say what the skill does and when to use it", "error"
            )
            return ""
        description = value.strip()
        if len(description) > MAX_DESCRIPTION:
            text = f"the description has {len(description):,} characters; the most is {MAX_DESCRIPTION:,}"
            self._say("description-too-long", "description", text)
        return description

    def _metadata(self) -> Mapping[str, Any]:
        value = self._values.get("metadata")
        if value is None:
            return {}
        found = metadata_of(value)
        if found is None:
            self._say("field-type", "metadata", "expected 'key: value' lines; it is not used")
        return found or {}

    def _tools(self, key: str) -> tuple[str, ...] | None:
        value = next((self._values[each] for each in (key, key.replace("-", "_")) if each in self._values), _ABSENT)
        if value is _ABSENT:
            return None
        if value is None:
            self._say("tools-empty", key, "the list is empty: it grants nothing")
            return ()
        found = _tool_names(value)
        if found is None:
            level: Severity = "warning" if key == "allowed-tools" else "error"
            self._say("tools-unreadable", key, f"expected a list of tools, got {value!r:.80}: it grants nothing", level)
        return found or ()

    def _context(self) -> str | None:
        value = self._text("context")
        if value not in (None, "fork"):
            self._say("unknown-value", "context", f"expected 'fork', got '{value:.40}': it runs in the conversation")
            return None
        return value

    def _hint(self) -> str | None:
        value = self._values.get("argument-hint")
        if isinstance(value, list):  # `[file] [line]` without quotes is a list for YAML
            return " ".join(f"[{each}]" for each in value)
        return self._text("argument-hint")

    def _switch(self, key: str, default: bool, *, cautious: bool) -> bool:
        value = next((self._values[each] for each in (key, key.replace("-", "_")) if each in self._values), None)
        if value is None:
            return default
        if isinstance(value, str):
            value = _SWITCHES.get(value.strip().lower(), value)
        if isinstance(value, bool):
            return value
        self._say("field-type", key, f"expected true or false, got {value!r:.40}: taken as {str(cautious).lower()}")
        return cautious

    def _text(self, key: str, *, needed: bool = False) -> str | None:
        """A field of text; `needed` says that doing without would change what the skill may do."""
        value = self._values.get(key)
        if value is None:
            return None
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return str(value)
        if isinstance(value, str):
            return value.strip() or None
        self._say("field-type", key, f"expected text, got {value!r:.40}", "error" if needed else "warning")
        return None

    def _say(self, code: str, field: str | None, text: str, severity: Severity = "warning") -> None:
        line = self._front.line(field) if field is not None else self._front.body_line
        self.problems.append(Fault(code, text, line or 1, field, severity).at(self._path))


def _tool_names(value: Any) -> tuple[str, ...] | None:
    """The entries of a tool list as they are written; None if its shape cannot be read."""
    try:
        entries = tool_entries(value)
    except Unfit:
        return None
    if any(entry.name is None for entry in entries):
        return None
    # Interned, because thousands of skills name the same few tools.
    return tuple(dict.fromkeys(sys.intern(entry.text) for entry in entries))


_ABSENT = object()
_UNSAFE = re.compile(r"[/\\\x00-\x1f\x7f]")


def unsafe_name(name: str) -> bool:
    """Whether a name could lead somewhere else, or look like another, where it becomes a file or a command."""
    return not name or name in (".", "..") or _UNSAFE.search(name) is not None or not name.isprintable()


def name_faults(name: str) -> list[str]:
    """What the specification has against a name, besides its length."""
    found = []
    if name != name.lower():
        found.append("must be in lower case")
    if name.startswith("-") or name.endswith("-"):
        found.append("must not begin or end with '-'")
    if "--" in name:
        found.append("must not have two '-' in a row")
    if not all(char.isalnum() or char == "-" for char in name):
        found.append("may only have letters, digits and '-'")
    return found
