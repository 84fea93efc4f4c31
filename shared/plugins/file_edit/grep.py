"""Grep: lines of the workspace's files that fit a regular expression.

Python's regular expressions can take exponential time and cannot be interrupted. A pattern that
repeats or groups is therefore searched for in a process of its own, which is killed when the
time is up or the call is cancelled; a simple one, which takes linear time, right here.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from shared.cancel import CancelToken
from shared.errors import ToolError
from shared.plugins._text import encoding_of
from shared.plugins._tree import walk
from shared.plugins._visible import visible_line
from shared.plugins.file_edit.glob import Glob
from shared.workspace import Workspace

SHOWN_CHARS = 300
LINE_CHARS = 20_000
_SLOW = re.compile(r"[*+?{(]")
#: Our own code comes last on the path of the searching process, and the workspace never is on it.
_BOOT = "import sys; sys.path.append(sys.argv[1]); from {0} import work; work()"
_PACKAGE_ROOT = str(Path(__file__).parents[3])


@dataclass(frozen=True)
class Query:
    """What to search for, and where."""

    root: str
    path: str
    pattern: str
    glob: str | None
    ignore_case: bool
    ignore: tuple[str, ...]
    max_results: int
    max_file_bytes: int


@dataclass(frozen=True)
class Findings:
    """Lines found; `cut` says why there may be more."""

    lines: tuple[str, ...]
    cut: str = ""


def search(query: Query, cancel: CancelToken, timeout: float) -> Findings:
    """Run a search; a bad pattern or place is a ToolError."""
    if _SLOW.search(query.pattern):
        return _search_apart(query, cancel, timeout)
    end = time.monotonic() + timeout

    def check() -> None:
        cancel.raise_if_cancelled()
        if time.monotonic() > end:
            raise _TimeIsUp

    return _search_here(query, check, timeout)


class _TimeIsUp(Exception):
    """A search took too long."""


def _search_here(query: Query, check: Callable[[], object], timeout: float) -> Findings:
    lines: list[str] = []
    try:
        for line in _matches(query, check):
            if len(lines) == query.max_results:
                return Findings(tuple(lines), _too_many(query.max_results))
            lines.append(line)
    except _TimeIsUp:
        return _out_of_time(tuple(lines), timeout)
    return Findings(tuple(lines))


def _too_many(most: int) -> str:
    return f"only the first {most} matches are shown: narrow the pattern or the path"


def _out_of_time(lines: tuple[str, ...], timeout: float) -> Findings:
    if not lines:
        raise ToolError(f"the search took longer than {timeout:g} s: simplify the pattern or narrow the path")
    return Findings(lines, f"stopped after {timeout:g} s: simplify the pattern or narrow the path for the rest")


def _matches(query: Query, check: Callable[[], object]) -> Iterator[str]:
    expression = _compiled(query.pattern, ignore_case=query.ignore_case)
    wanted = Glob(query.glob) if query.glob else None
    workspace = Workspace(query.root)
    top = workspace.locate(query.path)
    places = iter([top]) if _is_file(workspace, query.path) else walk(workspace, top, ignore=query.ignore, check=check)
    for place in places:
        check()
        below = "/".join(place.parts[len(top.parts) :]) or place.parts[-1]
        if wanted is not None and not wanted.matches(below):
            continue
        try:
            data = workspace.read(place, limit=query.max_file_bytes)
        except ToolError:
            if place == top:
                raise
            continue  # too large, or gone: the rest is still worth having
        yield from _in_file(expression, data, visible_line(place.shown))


def _is_file(workspace: Workspace, path: str) -> bool:
    return os.path.isfile(workspace.locate(path).absolute)


def _in_file(expression: re.Pattern[str], data: bytes, shown: str) -> Iterator[str]:
    encoding = encoding_of(data)
    if encoding is None:
        return
    for number, line in enumerate(encoding.decode(data).split("\n"), 1):
        if found := expression.search(line.removesuffix("\r"), 0, LINE_CHARS):
            yield f"{shown}:{number}: {_around(line.removesuffix(chr(13)), found.start())}"


def _around(line: str, at: int) -> str:
    """The line, or the part of a long one that holds the match."""
    if len(line) <= SHOWN_CHARS:
        return line
    start = max(0, min(at - SHOWN_CHARS // 3, len(line) - SHOWN_CHARS))
    end = start + SHOWN_CHARS
    return ("..." if start else "") + line[start:end] + ("..." if end < len(line) else "")


def _compiled(pattern: str, *, ignore_case: bool) -> re.Pattern[str]:
    try:
        return re.compile(pattern, re.IGNORECASE if ignore_case else 0)
    except (re.error, OverflowError, RecursionError, MemoryError) as error:
        raise ToolError(f"the pattern is not a valid regular expression: {error}") from None


def _search_apart(query: Query, cancel: CancelToken, timeout: float) -> Findings:
    from shared.process import run_process

    output = bytearray()
    end = run_process(
        [sys.executable, "-I", "-c", _BOOT.format(__name__), _PACKAGE_ROOT],
        cwd="/",
        env={},
        cancel=cancel,
        timeout=timeout,
        on_output=output.extend,
        stdin=json.dumps(asdict(query)).encode(),
        merge_stderr=False,
        grace=0,
    )
    cancel.raise_if_cancelled()
    replies = [json.loads(line) for line in output.split(b"\n")[:-1]]
    for reply in replies:
        if "error" in reply:
            raise ToolError(reply["error"])
    lines = tuple(reply["line"] for reply in replies if "line" in reply)
    if end.outcome == "timed_out":
        return _out_of_time(lines, timeout)
    if not any("cut" in reply for reply in replies):
        raise ToolError("the search failed: simplify the pattern")
    return Findings(lines, replies[-1]["cut"])


def work() -> None:
    """The searching process: one request from standard input, one JSON line for each match."""
    query = Query(**json.load(sys.stdin))
    left = query.max_results
    try:
        for line in _matches(query, lambda: None):
            if not left:
                _say(cut=_too_many(query.max_results))
                return
            _say(line=line)
            left -= 1
    except ToolError as error:
        _say(error=str(error))
        return
    _say(cut="")


def _say(**reply: str) -> None:
    print(json.dumps(reply), flush=True)  # noqa: T201 - standard output is the way back to the caller
