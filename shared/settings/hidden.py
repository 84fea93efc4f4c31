"""Settings as they may be shown: without anything that is, or may be, a secret."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from shared.config import secret_values
from shared.trace import redact

HIDDEN = "[hidden]"
#: Names whose values are nobody's business: whole objects of headers and variables too, for they carry tokens.
_SECRET = re.compile(
    r"(?i)key|token|secret|passw|pwd|credential(?!s_path)|authori[sz]ation|cookie|headers?$|^env$|private"
)
_COUNTS = re.compile(r"(?i)_tokens$")


def hidden(name: str, value: Any) -> Any:
    """The value of a setting, with secrets left out at any depth."""
    last = name.rpartition(".")[2]
    if _SECRET.search(last) and not _COUNTS.search(last) and value not in (None, "", {}, []):
        return HIDDEN
    if isinstance(value, Mapping):
        return {str(key): hidden(str(key), each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [hidden("", each) for each in value]
    return _told(value) if isinstance(value, str) else value


def _told(text: str) -> str:
    for secret in secret_values():
        text = text.replace(secret, HIDDEN)
    return redact(text)
