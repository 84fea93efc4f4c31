"""Normal forms: texts in which ids, folders and times that vary from run to run have stable names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from shared.errors import ConfigError
from shared.recording.tape import Place

_PYTEST = r"(?:pytest-of-[^/\s]+/pytest-\d+/(?:popen-gw\d+/)?)?"  # folders of its own for each run
_SEPARATORS = r"\s\"'`,;:()\[\]{}<>|"
#: Figures and moments: they stand for nothing that could be named in an answer.
_MOVING = re.compile(
    r"""(?x)
    \d{4}-\d\d-\d\d [T ] \d\d:\d\d:\d\d (?:\.\d+)? (?:Z|[+-]\d\d:?\d\d)?
    | (?: (?<=_at":\ ) | (?<=_at":) | (?<=last_activity":\ ) ) \d[\d.e+]*
    | (?: (?<=_seconds":\ ) | (?<=_seconds":) ) \d+\.\d+ (?:e-?\d+)?
    | \b \d+\.\d+ (?= \ ? (?:s|ms|seconds) \b )
    """
)
#: Where a live run stands at the moment when somebody asks.
_STAND = re.compile(
    r"""(?x)
    "queue_position":\ \d+,?\s* | (?<="status":\ ) "(?:queued|running)" | (?<="phase":\ ) "\w+"
    | queued\ at\ position\ \d+ | started\ in\ the\ background
    """
)
_IDS = r"(?P<agent>\bsubagent_[0-9a-f]{8}\b)|(?P<uuid>\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b)"


@dataclass(frozen=True)
class Normal:
    """A text in its normal form, and what each of its stable names stood for."""

    text: str
    names: Mapping[str, str] = field(default_factory=dict)


def _folder(kind: str, path: str) -> str:
    return rf"(?P<{kind}>{re.escape(path)}(?![\w.-]))" if len(path) > 1 else ""


class Normalizer:
    """Makes normal forms of texts from one place."""

    def __init__(self, place: Place, *, ignore: Iterable[str] = ()) -> None:
        temp = rf"(?P<temp>{re.escape(place.temp)}/{_PYTEST}[^/{_SEPARATORS}]+)"
        here, home = _folder("folder", place.cwd), _folder("home", place.home)
        # The current folder may lie in the temporary one, or the other way round: the inner one counts.
        folders = [temp, here, home] if place.temp.startswith(place.cwd) else [here, temp, home]
        self._varying = re.compile("|".join([_IDS, *filter(None, folders)]))
        try:
            self._ignored = [re.compile(pattern) for pattern in ignore]
        except re.error as error:
            raise ConfigError(f"ignore: '{error.pattern!r}' is no regular expression: {error}") from None

    def normal(self, text: str) -> Normal:
        """Names are given in the order of appearance, so that the same text has the same names."""
        names: dict[str, str] = {}
        given: dict[str, str] = {}

        def named(match: re.Match[str]) -> str:
            found, kind = match[0], match.lastgroup
            if found not in given:
                given[found] = f"<{kind}-{sum(name.startswith(f'<{kind}-') for name in names) + 1}>"
                names[given[found]] = found
            return given[found]

        text = _STAND.sub(_stand, _MOVING.sub("<moving>", self._varying.sub(named, text)))
        for pattern in self._ignored:
            text = pattern.sub("<ignored>", text)
        return Normal(text, names)


def _stand(match: re.Match[str]) -> str:
    return "" if match[0].startswith('"queue_') else "<live>"


def translation(recorded: Normal, live: Normal) -> dict[str, str]:
    """What to write instead of each varying word of a recording."""
    pairs = {old: live.names[name] for name, old in recorded.names.items() if name in live.names}
    return {old: new for old, new in pairs.items() if old != new}


def translated(value: Any, words: Mapping[str, str]) -> Any:
    """A JSON value with every varying word replaced; all at once, for words may change places."""
    if not words:
        return value
    if isinstance(value, str):
        pattern = "|".join(map(re.escape, sorted(words, key=len, reverse=True)))
        return re.sub(pattern, lambda match: words[match[0]], value)
    if isinstance(value, Mapping):
        return {translated(key, words): translated(each, words) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [translated(each, words) for each in value]
    return value
