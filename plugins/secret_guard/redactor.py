"""Redactor: hides secrets in whatever a tool gave back, each behind the same mark every time."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterable, Mapping
from typing import Any

MARK = re.compile(r"\[hidden: [^\]\n]{1,60} #\d+\]")
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
LEAST_KNOWN = 8  # a known value shorter than this would be found in harmless text


class Redactor:
    """Finds secrets by their shape, and known ones by their value; one secret always gets one number."""

    def __init__(self, shapes: Mapping[str, re.Pattern[str]], known: Iterable[str] = ()) -> None:
        self._shapes = shapes
        values = sorted({value for value in known if len(value) >= LEAST_KNOWN}, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, values))) if values else None
        self._lock = threading.Lock()
        self._numbers: dict[str, int] = {}

    def cleaned(self, result: Any) -> str | None:
        """The result without secrets, as text; None if there are none in it."""
        if isinstance(result, str):
            text = self.hidden(result)
            return text if text != result else None
        clean = self._walk(result)
        return json.dumps(clean, ensure_ascii=False, default=str) if clean != result else None

    def hidden(self, text: str) -> str:
        """A text with marks in the place of secrets."""
        if self._known is not None:
            text = self._known.sub(lambda match: self._mark("secret of this environment", match[0]), text)
        for kind, shape in self._shapes.items():
            text = shape.sub(lambda match, kind=kind: self._replaced(kind, match), text)  # type: ignore[misc]
        return text

    def _walk(self, value: Any) -> Any:
        """Any JSON with its texts cleaned; a value is looked at together with its key, which may tell."""
        if isinstance(value, str):
            return self.hidden(value)
        if isinstance(value, Mapping):
            return {key: self._behind(str(key), item) for key, item in value.items()}
        return [self._walk(item) for item in value] if isinstance(value, (list, tuple)) else value

    def _behind(self, key: str, value: Any) -> Any:
        if not isinstance(value, str) or "\n" in value:
            return self._walk(value)
        clean = self.hidden(value)
        if clean != value:
            return clean
        line = self.hidden(f"{key}={value}")
        return line.partition("=")[2] if line != f"{key}={value}" else value

    def _replaced(self, kind: str, match: re.Match[str]) -> str:
        secret = match["secret"] if "secret" in match.re.groupindex else match[0]
        plain = secret.strip("\"'")
        if MARK.search(secret) or _is_stand_in(plain) or (plain == secret != match[0] and _is_code(plain)):
            return match[0]
        return match[0].replace(secret, secret.replace(plain, self._mark(kind, plain)))

    def _mark(self, kind: str, secret: str) -> str:
        with self._lock:
            number = self._numbers.setdefault(secret, len(self._numbers) + 1)
        return f"[hidden: {kind} #{number}]"


def _is_code(value: str) -> bool:
    """Whether a value without quotes is rather a number or a name in a program than a secret."""
    return value.isdigit() or value.replace("_", "").isalpha() or _DOTTED.fullmatch(value) is not None


def _is_stand_in(value: str) -> bool:
    """Whether a value only says that there should be one: `<your token>`, `xxxx`, `${TOKEN}`, `os.environ[…]`."""
    low = value.lower()
    words = ("example", "changeme", "change-me", "placeholder", "your_", "your-", "environ", "getenv", "process.env")
    return len(set(value)) < 4 or value[:1] in "<$%{" or any(word in low for word in words) or "(" in value
