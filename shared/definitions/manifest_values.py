"""Single values of a manifest, each taken as it should be or reported."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import Any

from shared.definitions.document import Document, Step
from shared.definitions.profile_fields import shown
from shared.definitions.source import Problem, Severity
from shared.errors import ConfigError
from shared.schema import Validator

PLUGIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
MAX_TIMEOUT = 3600.0
#: What others call a field, where no likeness tells.
MEANT = {"parameters": "schema", "input_schema": "schema", "inputSchema": "schema"}


class Values:
    """Takes values out of a document and gathers what is wrong with them."""

    def __init__(self, document: Document, path: str) -> None:
        self._document = document
        self._path = path
        self.problems: list[Problem] = []

    def report(
        self, place: tuple[Step, ...], text: str, *, code: str = "wrong-value", level: Severity = "error"
    ) -> None:
        """Say what is wrong at a place."""
        line = self._document.line(place) if place else 1
        self.problems.append(Problem(self._path, line, code, str(place[0]) if place else None, text, level))

    def unknown(self, place: tuple[Step, ...], key: str, known: Collection[str]) -> bool:
        """Report an unknown field; True if it looks like a known one, so that its author counted on it."""
        plain = key.replace("-", "_").lower()
        meant = [MEANT[key]] if MEANT.get(key) in known else get_close_matches(plain, known, n=1, cutoff=0.75)
        guess = f"did you mean '{meant[0]}'?" if meant else "it is left out"
        level: Severity = "error" if meant else "warning"
        self.report(place, f"unknown field {shown(key)}: {guess}", code="unknown-field", level=level)
        return bool(meant)

    def plugin_name(self, key: str, value: Any) -> str | None:
        """A name that is safe in file names and prompts; None, and a report, for any other."""
        if isinstance(value, str) and PLUGIN_NAME.fullmatch(value) and ".." not in value:
            return value
        text = f"'{key}' must be letters, digits, '-', '_' and '.', at most 64, not {shown(value)}"
        self.report((key,) if key in self._document.value else (), text, code="name-unsafe")
        return None

    def check_keys(
        self, place: tuple[Step, ...], given: Mapping[str, Any], known: Collection[str], others: Collection[str]
    ) -> None:
        """Report the fields of an entry that nobody knows."""
        for key in given:
            if key not in known and key not in others:
                self.unknown((*place, key), key, known)

    def check_schema(self, place: tuple[Step, ...], name: str, schema: Any) -> None:
        """Report a schema of arguments that is none."""
        if not isinstance(schema, dict) or schema.get("type", "object") != "object":
            self.report(place, f"the schema of '{name}' must be a JSON Schema of type object, not {shown(schema)}")
            return
        try:
            Validator(schema, what=f"the schema of '{name}'")
        except ConfigError as error:
            self.report(place, str(error))

    def text(self, place: tuple[Step, ...], given: Mapping[str, Any], key: str, default: str | None = None) -> str:
        """A text; without a default it must be there."""
        value = given.get(key, default)
        if isinstance(value, str) and "\0" not in value and (value.strip() or value == default):
            return value
        wrong = f"'{key}' is missing" if key not in given else f"'{key}' must be text, not {shown(value)}"
        self.report((*place, key), wrong)
        return ""

    def words(self, place: tuple[Step, ...], given: Mapping[str, Any], key: str) -> tuple[str, ...] | None:
        """A list of texts; None where there is none."""
        value = given.get(key)
        if key not in given:
            return None
        if isinstance(value, list) and all(isinstance(each, str) and "\0" not in each for each in value):
            return tuple(value)
        self.report((*place, key), f"'{key}' must be a list of texts, not {shown(value)}")
        return None

    def seconds(self, place: tuple[Step, ...], given: Mapping[str, Any]) -> float:
        """A time limit, a minute if it is left out."""
        value = given.get("timeout_seconds", 60.0)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= MAX_TIMEOUT:
            return float(value)
        text = f"'timeout_seconds' must be a number above 0 and at most {MAX_TIMEOUT:g}, not {shown(value)}"
        self.report((*place, "timeout_seconds"), text)
        return 60.0

    def flag(self, place: tuple[Step, ...], given: Mapping[str, Any], key: str) -> bool:
        """True or false, false if it is left out."""
        value = given.get(key, False)
        if isinstance(value, bool):
            return value
        self.report((*place, key), f"'{key}' must be true or false, not {shown(value)}")
        return False

    def path_in(self, place: tuple[Step, ...], value: Any) -> str:
        """A relative path that does not leave the plugin; empty, and a report, for any other."""
        if isinstance(value, str) and value.strip() and "\0" not in value and "\\" not in value:
            parts = [part for part in value.split("/") if part not in ("", ".")]
            if not value.startswith(("/", "~")) and ".." not in parts and parts:
                return "/".join(parts)
        text = f"'{place[-1]}' must be a path inside the plugin's folder, not {shown(value)}"
        self.report(place, text, code="path-outside" if isinstance(value, str) else "wrong-value")
        return ""
