"""Toolbox: the only code that runs tools, and the only place where an exception becomes text for the model.

A call travels: look up → validate → required_agent → permission → before hooks → run under the
cancel token → after hooks → cap the size → ToolResult.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from shared.aio import settled
from shared.errors import (
    CancelledException,
    PluginError,
    ToolArgumentError,
    ToolDenied,
    ToolError,
    ToolTimeout,
    UnknownTool,
    unknown_name,
)
from shared.executors.threads import workers
from shared.providers.base import ToolSet
from shared.tools import Tool, ToolContext
from shared.types import UNPARSED, Attachment, FunctionCall, ToolResult

log = logging.getLogger(__name__)

RESULT_CHARS = 60_000
_JSON = json.JSONEncoder(ensure_ascii=False, default=str, allow_nan=False)


class Gate(Protocol):
    """Permission: says yes by returning, no by raising ToolDenied."""

    def check(self, tool: Tool, args: Mapping[str, Any], context: ToolContext) -> None:
        """Return if the call may run; raise ToolDenied with the reason otherwise."""
        ...


class ToolHooks(Protocol):
    """Foreign code around a call; `before` may raise ToolDenied, `after` may replace the result."""

    def before(self, tool: Tool, args: Mapping[str, Any], context: ToolContext) -> None:
        """Look at a call that is about to run."""
        ...

    def after(self, tool: Tool, args: Mapping[str, Any], result: Any, context: ToolContext) -> Any:
        """Look at, or change, what it gave."""
        ...


class OpenGate:
    """Allows everything; for tests and for hosts that guard their tools themselves."""

    def check(self, tool: Tool, args: Mapping[str, Any], context: ToolContext) -> None:
        """Allow."""


@dataclass(frozen=True)
class ToolOutput:
    """A result with more than text: images or files for the model."""

    result: Any
    attachments: tuple[Attachment, ...] = ()
    is_error: bool = False


class Toolbox:
    """The tools of one agent, fixed for the length of a turn."""

    def __init__(
        self,
        tools: Iterable[Tool] = (),
        *,
        gate: Gate | None = None,
        hooks: ToolHooks | None = None,
        profile: str | None = None,
        is_lost: Callable[[Tool], bool] | None = None,
        result_chars: int = RESULT_CHARS,
    ) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            if (other := self._tools.get(tool.name)) is not None:
                raise PluginError(
                    f"tool '{tool.name}' is offered by both '{other.plugin}' and '{tool.plugin}': expose one of them"
                )
            self._tools[tool.name] = tool
        self._gate: Gate = gate or OpenGate()
        self._hooks = hooks
        self._profile = profile
        self._is_lost = is_lost  # whether a tool was taken away since the turn began
        self._result_chars = result_chars
        self.toolset = ToolSet([tool.schema for tool in self._tools.values()])

    @property
    def names(self) -> list[str]:
        """Names of all tools, in order."""
        return list(self._tools)

    def __iter__(self) -> Any:
        return iter(self._tools.values())

    def get(self, name: str) -> Tool | None:
        """The tool of that name, if this agent has it."""
        return self._tools.get(name)

    def run(self, call: FunctionCall, context: ToolContext) -> ToolResult:
        """Run one call. Never raises: whatever happens becomes the call's one result."""
        try:
            tool = self._look_up(call)
            self._validate(tool, call)
            self._require_agent(tool)
            self._gate.check(tool, call.args, context)
            if self._hooks is not None:
                _before(self._hooks, tool, call.args, context)
            context.cancel.raise_if_cancelled()
            value = _outcome(tool, call, context)
            if self._hooks is not None:
                value = _after(self._hooks, tool, call.args, value, context)
            return self._result(call, value)
        except (CancelledException, KeyboardInterrupt):
            return cancelled_result(call, context.cancel.reason)
        except ToolError as error:
            kind = "denied" if isinstance(error, ToolDenied) else None
            text = clip(f"Error: {error}", self._result_chars)
            return ToolResult(call.id, call.name, text, is_error=True, error_kind=kind)
        except BaseException as error:  # foreign code of a gate, a hook or a check
            return self._result(call, _failed(call, error))

    def _look_up(self, call: FunctionCall) -> Tool:
        tool = self._tools.get(call.name)
        if tool is None:
            raise UnknownTool(unknown_name("tool", call.name, self._tools))
        if self._is_lost is not None and self._is_lost(tool):
            raise UnknownTool(f"tool '{call.name}' was switched off in the meantime: go on without it")
        return tool

    def _require_agent(self, tool: Tool) -> None:
        if tool.required_agent is not None and tool.required_agent != self._profile:
            raise ToolDenied(
                f"tool '{tool.name}' may only be called by the agent '{tool.required_agent}': "
                f"delegate to it with spawn_subagent(profile='{tool.required_agent}')"
            )

    def _validate(self, tool: Tool, call: FunctionCall) -> None:
        if UNPARSED in call.args:
            raise ToolArgumentError(
                f"the arguments for {tool.name} are not valid JSON ({call.args.get('_problem', 'unreadable')}): "
                "make the call again with one JSON object. Nothing was run."
            )
        if not tool.validator.is_valid(call.args):
            problems = "; ".join(tool.validator.problems(call.args)[:5]).rstrip(".")
            raise ToolArgumentError(f"bad arguments for {tool.name}: {problems}. Nothing was run.")

    def _result(self, call: FunctionCall, value: Any) -> ToolResult:
        if not isinstance(value, ToolOutput):
            return ToolResult(call.id, call.name, self._kept(value))
        kept, attachments = self._kept(value.result), tuple(value.attachments) or None
        return ToolResult(call.id, call.name, kept, is_error=value.is_error, attachments=attachments)

    def _kept(self, value: Any) -> Any:
        """What the history keeps: text, or plain JSON that the tool cannot change afterwards; never too long."""
        if isinstance(value, str):
            return clip(value, self._result_chars)
        if value is None or type(value) in (bool, int):
            return value
        if isinstance(value, (bytes, bytearray)):
            return clip(value.decode("utf-8", "replace"), self._result_chars)
        text = _as_json(value)
        return clip(text, self._result_chars) if len(text) > self._result_chars else json.loads(text)


def cancelled_result(call: FunctionCall, reason: str = "") -> ToolResult:
    """The result of a call that was cancelled before its answer could be used."""
    why = f" ({reason})" if reason and reason != "cancelled" else ""
    text = f"Cancelled{why}: the call did not finish; whether it had effects is unknown."
    return ToolResult(call.id, call.name, text, is_error=True, error_kind="cancelled")


def clip(text: str, limit: int) -> str:
    """A text of at most `limit` characters: its beginning and its end, with a note of what is missing."""
    if len(text) <= limit:
        return text
    note = f"\n[... {len(text) - limit:,} of {len(text):,} characters left out; ask for a smaller part ...]\n"
    room = max(0, limit - len(note))
    head = room * 2 // 3
    tail = room - head
    return (text[:head] + note + (text[-tail:] if tail else ""))[:limit]


def _outcome(tool: Tool, call: FunctionCall, context: ToolContext) -> Any:
    """What a tool gives, or how it failed: hooks look at the one as at the other."""
    try:
        return _invoke(tool, _own(call.args), context)
    except (CancelledException, KeyboardInterrupt, ToolDenied):
        raise
    except ToolError as error:
        return ToolOutput(f"Error: {error}", is_error=True)
    except BaseException as error:  # foreign code: not even sys.exit() in a tool may end the host
        return _failed(call, error)


def _failed(call: FunctionCall, error: BaseException) -> ToolOutput:
    log.warning("tool %s failed", call.name, exc_info=error)
    return ToolOutput(f"Error: {call.name} failed: {described(error)}", is_error=True)


def _invoke(tool: Tool, args: Mapping[str, Any], context: ToolContext) -> Any:
    if tool.timeout_seconds is None:
        return settled(tool.invoke(args, context), context.cancel)
    child = replace(context, cancel=context.cancel.child())
    task = workers.submit(lambda: settled(tool.invoke(args, child), child.cancel))
    if task.wait(tool.timeout_seconds, cancel=context.cancel):
        return task.result()
    child.cancel.cancel("timed out")
    context.cancel.raise_if_cancelled()
    raise ToolTimeout(f"{tool.name} took longer than {tool.timeout_seconds:g} s and was stopped")


def _own(value: Any) -> Any:
    """A copy for the tool: what it does to its arguments must not change the call in the history."""
    if isinstance(value, dict):
        return {key: _own(item) if isinstance(item, (dict, list)) else item for key, item in value.items()}
    if isinstance(value, list):
        return [_own(item) if isinstance(item, (dict, list)) else item for item in value]
    return value


def _before(hooks: ToolHooks, tool: Tool, args: Mapping[str, Any], context: ToolContext) -> None:
    """A hook may refuse the call; one that fails is skipped."""
    try:
        hooks.before(tool, args, context)
    except (ToolError, CancelledException):
        raise
    except Exception:  # foreign code
        log.exception("a hook before %s failed", tool.name)


def _after(hooks: ToolHooks, tool: Tool, args: Mapping[str, Any], value: Any, context: ToolContext) -> Any:
    """A hook may replace or withhold the result; one that fails leaves it as it is."""
    try:
        return hooks.after(tool, args, value, context)
    except (ToolError, CancelledException):
        raise
    except Exception:  # foreign code
        log.exception("a hook after %s failed", tool.name)
        return value


def _as_json(value: Any) -> str:
    """Any value as JSON; what JSON does not have (objects, keys that are no text, NaN) becomes text."""
    try:
        return _JSON.encode(value)
    except (TypeError, ValueError, RecursionError):
        return _JSON.encode(str(value))


def described(error: BaseException) -> str:
    """An error of foreign code in one line: its type and what it says, if it can say it."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # an exception whose text cannot be made is no reason to lose the result
        return type(error).__name__
