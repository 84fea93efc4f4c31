"""From the mapping in a profile file to a profile, or to all that is wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from functools import cache
from typing import Any

from shared.definitions.document import Document, Unreadable
from shared.definitions.profile import SubagentProfile
from shared.definitions.profile_fields import FIELDS, Unfit, shown
from shared.definitions.source import CODE, Problem, Severity, Source, bounded
from shared.errors import ConfigError, unknown_name
from shared.gc.base import GCConfig
from shared.gc.loader import known_strategies
from shared.providers import known_providers

#: Providers that no longer take a temperature (their traits say so; a test compares).
NO_TEMPERATURE = frozenset({"anthropic"})
#: Where null could mean more than was intended: the default of these fields is not their narrowest value.
_NULL_REFUSED = {
    "tools": "write [] for no tools, or leave it out for all tools of the plugins",
    "disallowed_tools": "write [] or leave it out to deny none",
    "allow_agents": "write [] for none, or leave it out for all",
    "visibility": "write user-facing or internal",
}
_NULL_IS_DEFAULT = frozenset(
    ("name", "description", "plugins", "plugin_configs", "skills", "fallback_models", "max_turns", "auto_approved")
)
#: Names that other programs have for our fields, and that look more like another one of ours.
_ELSEWHERE = {
    "allowed_tools": "tools",
    "allowedtools": "tools",
    "prompt": "system_instructions",
    "system_prompt": "system_instructions",
    "systemprompt": "system_instructions",
    "instructions": "system_instructions",
    "effort": "reasoning_effort",
}
_GC_FIELDS = tuple(entry.name for entry in fields(GCConfig))
_SHIPPED_GC = ("truncate", "summarize", "hybrid")  # known without a look at what is installed


@dataclass(frozen=True)
class Reading:
    """What became of one definition: a profile, or the name it would have had; and what is to be said about it."""

    name: str
    source: Source
    profile: SubagentProfile | None
    problems: tuple[Problem, ...] = ()


def read_profile(text: str, *, parse: Callable[[str], Document], stem: str, source: Source) -> Reading:
    """A profile from the text of a file; a file with any error gives none at all."""
    path = source.path or stem
    try:
        document = parse(text)
    except Unreadable as error:
        return unreadable(error, stem=stem, source=source)
    if not isinstance(document.value, Mapping):
        what = "nothing" if document.value is None else shown(document.value)
        fault = Problem(path, 1, "not-an-object", None, f"expected an object with the fields of a profile, got {what}")
        return Reading(stem, source, None, (fault,))
    return profile_reading(document, stem=stem, source=source)


def profile_reading(document: Document, *, stem: str, source: Source) -> Reading:
    """A profile from the fields in a document, which must be an object."""
    return _Draft(document, stem, source).reading()


def unreadable(error: Unreadable, *, stem: str, source: Source) -> Reading:
    """The outcome for a file whose text cannot be used."""
    path = source.path or stem
    return Reading(stem, source, None, bounded([fault.at(path) for fault in error.faults]))


def profile_from(name: str, given: Mapping[str, Any]) -> SubagentProfile:
    """A profile from a mapping in code; raises ConfigError with all that is wrong."""
    if given.get("name") not in (None, name):
        raise ConfigError(f"profile {shown(name)}: 'name' says {shown(given['name'])}; leave it out or use one name")
    reading = _Draft(Document({**given, "name": name}, dict), name, CODE).reading()
    if reading.profile is None:
        wrong = "; ".join(problem.text for problem in reading.problems if problem.severity == "error")
        raise ConfigError(f"profile {shown(name)}: {wrong}")
    return reading.profile


class _Draft:
    """A profile in the making: takes each field, gathers what is wrong, and decides at the end."""

    def __init__(self, document: Document, stem: str, source: Source) -> None:
        self._document = document
        self._stem = stem
        self._source = source
        self._problems: list[Problem] = []
        self._values: dict[str, Any] = {}

    def reading(self) -> Reading:
        """The profile if nothing is wrong with it."""
        self._take({"name": self._stem, **self._document.value})
        name = self._values.get("name", self._stem)
        profile: SubagentProfile | None = None
        if not any(problem.severity == "error" for problem in self._problems):
            profile = self._trusted(SubagentProfile(**self._values, source=self._source))
            self._warn(profile)
        return Reading(name, self._source, profile, bounded(self._problems))

    def _take(self, given: Mapping[Any, Any]) -> None:
        for key, value in given.items():
            if key == "$schema":
                continue
            if key not in FIELDS:
                self._report(str(key), suggestion(key, FIELDS), code="unknown-field")
            elif value is None and (key in _NULL_REFUSED or key in _NULL_IS_DEFAULT):
                self._null(key)
            else:
                self._convert(key, self._known_gc(value) if key == "gc" else value)

    def _convert(self, key: str, value: Any) -> None:
        try:
            self._values[key] = FIELDS[key](value)
        except Unfit as error:
            self._report(key, f"'{key}' {error}", *error.inside, code=error.code)

    def _null(self, key: str) -> None:
        if key == "name":
            self._convert("name", self._stem)
        if self._source.kind == "code":  # None is how Python says "the default"
            return
        if key in _NULL_REFUSED:
            self._report(key, f"'{key}' is null: {_NULL_REFUSED[key]}", code="null-value")
        else:
            text = f"'{key}' is null, so its default is used; leave it out"
            self._report(key, text, code="null-value", level="warning")

    def _known_gc(self, value: Any) -> Any:
        """Context collection gives no rights: settings of other versions are left out with a warning."""
        if isinstance(value, str):
            value = {"type": value}
        if not isinstance(value, Mapping):
            return value
        for key in value:
            if key not in _GC_FIELDS:
                text = f"{suggestion(key, _GC_FIELDS, kind='gc setting', cutoff=0.8)} It is left out."
                self._report("gc", text, key, code="gc-unknown-setting", level="warning")
        kept = {key: item for key, item in value.items() if key in _GC_FIELDS}
        kind = kept.get("type")
        if isinstance(kind, str) and kind.strip() and kind not in _SHIPPED_GC and kind not in _installed_gc():
            text = f"gc.type: {unknown_name('gc strategy', kind, _installed_gc())} The default, truncate, is used."
            self._report("gc", text, "type", code="gc-unknown-type", level="warning")
            del kept["type"]
        return kept

    def _trusted(self, profile: SubagentProfile) -> SubagentProfile:
        """What only a trusted source may ask for is taken back from any other."""
        if self._source.trusted or not profile.auto_approved:
            return profile
        text = "auto_approved is not honoured: the file's place is not trusted, so each spawn is asked about"
        self._report("auto_approved", text, code="untrusted-auto-approved", level="warning")
        return replace(profile, auto_approved=False)

    def _warn(self, profile: SubagentProfile) -> None:
        if not profile.description.strip():
            text = "no description: a model cannot know what to delegate to this profile"
            self._report("description", text, code="description-missing", level="info")
        if profile.model is not None and profile.provider is None:
            text = f"model '{profile.model}' is set without provider: the caller's provider may not have it"
            self._report("model", text, code="model-without-provider", level="warning")
        if profile.provider is not None and profile.provider not in known_providers():
            text = unknown_name("provider", profile.provider, known_providers())
            self._report("provider", text, code="unknown-provider", level="warning")
        if profile.temperature is not None and profile.provider in NO_TEMPERATURE:
            text = f"{profile.provider} takes no temperature any more: it is left out of requests"
            self._report("temperature", text, code="temperature-dropped", level="warning")

    def _report(self, field: str, text: str, *inside: Any, code: str, level: Severity = "error") -> None:
        path = self._source.path or self._stem
        line = self._document.line((field, *inside))
        self._problems.append(Problem(path, line, code, field, text, level))


def suggestion(key: Any, known: Collection[str], *, kind: str = "field", cutoff: float = 0.6) -> str:
    """As `errors.unknown_name`, but with one suggestion instead of the long list where there is one."""
    if not isinstance(key, str):
        return f"unknown {kind} {shown(key)}: names are text."
    plain = key.replace("-", "_").lower()
    meant = _ELSEWHERE.get(plain, "")
    close = [meant] if meant in known else get_close_matches(plain, known, n=1, cutoff=cutoff)
    guess = f"Did you mean '{close[0]}'?" if close else f"Known: {', '.join(known)}."
    return f"unknown {kind} {shown(key)}. {guess}"


@cache
def _installed_gc() -> tuple[str, ...]:
    """Asked once: it reads the metadata of every installed package."""
    return tuple(known_strategies())
