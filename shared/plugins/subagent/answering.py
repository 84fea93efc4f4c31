"""Refusals as answers: what a caller did wrong, or a limit it met, is told in words it can act on."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from shared.errors import CancelledException, JaatoError, VersionConflict
from shared.toolbox import ToolOutput
from shared.tools import Tool

F = TypeVar("F", bound=Callable[..., Any])
Answer = dict[str, Any]


def answering(fn: F) -> F:
    """Turn the errors of a tool into answers that are marked as errors."""

    @functools.wraps(fn)
    def answer(*args: Any, **keywords: Any) -> Answer | ToolOutput:
        try:
            found: Answer = fn(*args, **keywords)
            return found
        except CancelledException:
            raise
        except VersionConflict as error:
            return _refused(error, version=error.current)
        except JaatoError as error:
            return _refused(error)

    return answer  # type: ignore[return-value]


def execute(each: Tool, args: Mapping[str, Any] | None = None, /, **keywords: Any) -> Answer:
    """A tool as host code calls it: arguments are checked, and what is wrong is in the answer."""
    if args is not None and not isinstance(args, Mapping):
        return {"success": False, "error": f"{each.name}: expected one dict of arguments, got {type(args).__name__}"}
    given = {**(args or {}), **keywords}
    if problems := each.validator.problems(given):
        text = "; ".join(problems).rstrip(".")
        return {"success": False, "error": f"bad arguments for {each.name}: {text}. Nothing was run."}
    answer = each.as_executor()(given)
    found: Answer = answer.result if isinstance(answer, ToolOutput) else answer
    return found


def _refused(error: JaatoError, **details: Any) -> ToolOutput:
    return ToolOutput({"success": False, "error": str(error), **details}, is_error=True)
