"""Scrubber: JSON values without keys and other secrets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from shared.config import secret_values
from shared.trace import redact

SCRUBBED = "[redacted]"
#: Marks that a vendor wants back unchanged: opaque, and no credential.
_OPAQUE = frozenset({"signature", "bytes"})
#: Names of fields that hold a secret, whatever it looks like; a bare `key` is as often the key of something.
_TELLING = re.compile(
    r"(?i)(api|access|private|secret|auth).?key|secret|passw|(^|[_-])token$|authorization|cookie|credential"
)


class Scrubber:
    """Takes out what environment variables with a telling name hold, what the caller names, and what looks secret."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        # Longest first: a secret may begin with another one.
        self._secrets = sorted({*secret_values(), *filter(None, secrets)}, key=len, reverse=True)

    def text(self, text: str) -> str:
        """A text without secrets."""
        for secret in self._secrets:
            if secret in text:
                text = text.replace(secret, SCRUBBED)
        return redact(text)

    def value(self, value: Any) -> Any:
        """A JSON value without secrets, at any depth."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(key): self._entry(key, each) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(each) for each in value]
        return value

    def _entry(self, key: str, value: Any) -> Any:
        if key in _OPAQUE:
            return value
        if isinstance(value, str) and value and _TELLING.search(key):
            return SCRUBBED
        return self.value(value)
