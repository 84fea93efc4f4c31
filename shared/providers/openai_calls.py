"""Tool calls from the deltas of a chat completions stream, as different servers send them."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shared.types import FunctionCall, unparsed_args


@dataclass
class _Call:
    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    ready: Mapping[str, Any] | None = None  # arguments that came as an object

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    @property
    def is_whole(self) -> bool:
        return self.ready is not None or _parse(self.text)[1] is None


class CallAssembler:
    """Puts deltas together by index; some servers leave out the id, the index or both, or count all as 0."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}

    def __bool__(self) -> bool:
        return bool(self._calls)

    @property
    def size(self) -> int:
        """Characters so far."""
        return sum(len(call.name) + len(call.text) + len(str(call.ready or "")) for call in self._calls)

    def add(self, delta: Mapping[str, Any]) -> None:
        """Take in one entry of `tool_calls`."""
        function = delta.get("function")
        function = function if isinstance(function, Mapping) else {}
        call_id, name = _text(delta.get("id")), _text(function.get("name"))
        call = self._call_for(delta.get("index"), call_id, name)
        call.id = call.id or call_id
        call.name = call.name or name
        arguments = function.get("arguments")
        if isinstance(arguments, Mapping):
            call.ready = arguments
        elif isinstance(arguments, str):
            call.pieces.append(arguments)

    def _call_for(self, index: Any, call_id: str, name: str) -> _Call:
        known = self._by_index.get(index) if isinstance(index, int) else (self._calls[-1] if self._calls else None)
        if known is not None and not _starts_another(known, call_id, name):
            return known
        fresh = _Call()
        self._calls.append(fresh)
        if isinstance(index, int):
            self._by_index[index] = fresh
        return fresh

    def calls(self, names: Mapping[str, str], *, cut: bool) -> list[FunctionCall]:
        """The calls in order; with `cut` the answer hit its length limit and half-finished ones are left out."""
        found: list[FunctionCall] = []
        seen: set[str] = set()
        for call in self._calls:
            args, problem = (call.ready, None) if call.ready is not None else _parse(call.text)
            if cut and (problem is not None or not (call.text.strip() or call.ready)):
                continue
            if problem is not None:
                args = unparsed_args(call.text, problem)
            call_id = call.id if call.id and call.id not in seen else f"call_{uuid.uuid4().hex[:24]}"
            seen.add(call_id)
            found.append(FunctionCall(call_id, names.get(call.name, call.name), dict(args or {})))
        return found


def _starts_another(known: _Call, call_id: str, name: str) -> bool:
    """Whether a delta with this id and name cannot belong to the call that its index points to."""
    if call_id and known.id:
        return call_id != known.id
    # Without ids only a repeated name can tell; while arguments are incomplete it is just repeated.
    return bool(name and known.name and (known.ready is not None or (known.text.strip() and known.is_whole)))


def _parse(text: str) -> tuple[dict[str, Any], str | None]:
    """The arguments in a text and what is wrong with it; models leave it empty for a call without arguments."""
    if not text.strip():
        return {}, None
    try:
        value = json.loads(text)
        if isinstance(value, str):  # JSON within JSON, a habit of some models
            value = json.loads(value)
    except (ValueError, RecursionError) as error:
        return {}, str(error)
    if value is None:
        return {}, None
    if not isinstance(value, dict):
        return {}, f"expected a JSON object, got {type(value).__name__}"
    return value, None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
