"""Shape: an answer's text read as JSON that must fit a schema."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from shared.schema import Validator

_FENCED = re.compile(r"```[\w-]*\s(.*?)```", re.DOTALL)
_OUTERMOST = re.compile(r"```[\w-]*\s(.*)```", re.DOTALL)  # for a value that has fences in its own texts
_SHOWN = 5  # problems that the model is told at once


class Shape:
    """The JSON Schema that an answer has to fit."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._check = Validator(schema, what="output_schema")

    def read(self, text: str) -> tuple[Any, str | None]:
        """The value in a text, bare or in a fenced block, and what is wrong with it; None if it fits."""
        first: str | None = None
        for candidate in _candidates(text):
            value, problem = self._value(candidate)
            if problem is None:
                return value, None
            first = problem if first is None or first.startswith(_NO_JSON) else first
        return None, first

    def _value(self, text: str) -> tuple[Any, str | None]:
        try:
            value = json.loads(text, parse_constant=_refuse)
            json.dumps(value, ensure_ascii=False).encode()  # no half characters, which no wire could carry
            problems = self._check.problems(value)
        except (ValueError, RecursionError) as error:
            return None, f"{_NO_JSON} ({error})"
        return value, _sentence(problems) if problems else None


_NO_JSON = "it is not JSON"


def _sentence(problems: list[str]) -> str:
    said = "; ".join(problems[:_SHOWN])
    return said.replace("'arguments'", "the answer").replace("arguments: ", "the answer: ")


def _candidates(text: str) -> Iterator[str]:
    yield text
    for block in _FENCED.finditer(text):
        yield block[1]
    if (outermost := _OUTERMOST.search(text)) is not None:
        yield outermost[1]


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not a JSON value")
