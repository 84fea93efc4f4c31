"""HookBus: code of plugins and hosts that is called at fixed points of an agent's life.

| event | handler | what it may return |
|---|---|---|
| `on_startup`, `on_shutdown` | `()` | nothing |
| `before_agent_start` | `(messages, system_prompt)` | `{"system_prompt": text}` |
| `before_tool_call` | `(tool_name, args)` | False or `{"block": True, "reason": text}` to refuse the call |
| `after_tool_call` | `(tool_name, args, result)` | a text that replaces the result |
| `message_received` | `(content, conversation_id)` | a text that replaces the message |
| `message_sending` | `(content)` | the text to send; None to send nothing |
| `subagent_start`, `subagent_stop` | `(**facts)` | nothing |

Handlers are plain or async and run in the order of their registration, each seeing what the one before
made of it. One that raises is logged and skipped; one that hangs is cut off, and skipped while it hangs.
A handler takes the arguments it names; `agent_id` is there for all that concern an agent, and `cancel`, a
token that fires when nobody waits for the handler any more.
"""

from __future__ import annotations

import inspect
import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from shared.aio import settled
from shared.cancel import CancelToken
from shared.errors import CancelledException, PluginError, ToolDenied, unknown_name
from shared.executors.threads import workers
from shared.toolbox import ToolOutput
from shared.tools import Tool, ToolContext

log = logging.getLogger(__name__)

Handler = Callable[..., Any]
Agents = str | Callable[[str | None], bool] | None
HANDLER_SECONDS = 10.0
EVENTS = (
    "on_startup",
    "on_shutdown",
    "before_agent_start",
    "before_tool_call",
    "after_tool_call",
    "message_received",
    "message_sending",
    "subagent_start",
    "subagent_stop",
)
_SKIPPED = object()  # what a handler gave that raised, hung or was not asked


class ExposedPlugins(Protocol):
    """The part of the registry that the bus looks at: whoever is exposed has its hooks in force."""

    version: int

    def list_exposed(self) -> list[str]: ...
    def get_plugin(self, name: str) -> Any: ...


class HookBus:
    """Calls handlers; safe for threads, and without a lock held while foreign code runs."""

    def __init__(self, plugins: ExposedPlugins | None = None, *, timeout: float = HANDLER_SECONDS) -> None:
        self._plugins = plugins
        self._timeout = timeout
        self._lock = threading.Lock()
        self._own: list[_Hook] = []
        self._theirs: tuple[_Hook, ...] = ()
        self._version: int | None = None
        self._running = False

    def register(
        self, event: str, handler: Handler, *, agent_id: Agents = None, timeout: float | None = None
    ) -> Callable[[], None]:
        """Add a handler, for all agents, one, or those a function picks (`subagent_…`: by parent); returns its end."""
        if event not in EVENTS:
            raise PluginError(unknown_name("hook", event, EVENTS))
        hook = _Hook(event, handler, agent_id=agent_id, seconds=timeout)
        with self._lock:
            self._own = [*self._own, hook]

        def remove() -> None:
            with self._lock:
                self._own = [each for each in self._own if each is not hook]

        return remove

    def has(self, event: str) -> bool:
        """Whether anything happens at a point."""
        self._look()
        return any(hook.event == event for hook in (*self._own, *self._theirs))

    # -- the points ------------------------------------------------------------------------------

    def start(self) -> None:
        """The host is up: `on_startup`, also of every plugin that is exposed later."""
        with self._lock:
            first, self._running = not self._running, True
        if first:
            self._tell(self._hooks("on_startup"), {})

    def stop(self) -> None:
        """The host goes down: `on_shutdown`; call it before plugins are taken out of use."""
        hooks = self._hooks("on_shutdown")
        with self._lock:
            was, self._running = self._running, False
        if was:
            self._tell(hooks, {})

    def before_agent_start(self, messages: Sequence[Any], system_prompt: str, *, agent_id: str = "main") -> str:
        """The system prompt with which an agent starts."""
        for hook in self._hooks("before_agent_start", agent_id):
            values = {"messages": list(messages), "system_prompt": system_prompt, "agent_id": agent_id}
            answer = self._ask(hook, values)
            if isinstance(answer, Mapping) and isinstance(answer.get("system_prompt"), str):
                system_prompt = answer["system_prompt"]
            elif answer is not None and answer is not _SKIPPED:
                hook.complain("must return {'system_prompt': text} or nothing")
        return system_prompt

    def before(self, tool: Tool, args: Mapping[str, Any], context: ToolContext) -> None:
        """Before a tool call; raises ToolDenied if a handler refuses it."""
        for hook in self._hooks("before_tool_call", context.agent_id):
            values = {"tool_name": tool.name, "args": dict(args), "agent_id": context.agent_id}
            answer = self._ask(hook, values, context.cancel)
            if answer is False or (isinstance(answer, Mapping) and answer.get("block")):
                reason = answer.get("reason") if isinstance(answer, Mapping) else None
                raise ToolDenied(f"{tool.name} was refused by a hook{f': {reason}' if reason else ''}")

    def after(self, tool: Tool, args: Mapping[str, Any], result: Any, context: ToolContext) -> Any:
        """After a tool call; the result, or what handlers made of it."""
        for hook in self._hooks("after_tool_call", context.agent_id):
            value = result.result if isinstance(result, ToolOutput) else result
            values = {"tool_name": tool.name, "args": dict(args), "result": value, "agent_id": context.agent_id}
            answer = self._ask(hook, values, context.cancel)
            if isinstance(answer, str):
                result = replace(result, result=answer) if isinstance(result, ToolOutput) else answer
            elif answer is not None and answer is not _SKIPPED:
                hook.complain("must return a text or nothing")
        return result

    def message_received(self, content: str, conversation_id: str = "main") -> str:
        """What the user said, as the model will read it."""
        for hook in self._hooks("message_received", conversation_id):
            answer = self._ask(hook, {"content": content, "conversation_id": conversation_id})
            if isinstance(answer, str):
                content = answer
            elif answer is not None and answer is not _SKIPPED:
                hook.complain("must return a text or nothing")
        return content

    def message_sending(self, content: str, conversation_id: str = "main") -> str | None:
        """What the user is told; None if a handler holds it back."""
        for hook in self._hooks("message_sending", conversation_id):
            answer = self._ask(hook, {"content": content, "conversation_id": conversation_id})
            if answer is None:
                return None
            if isinstance(answer, str):
                content = answer
            elif answer is not _SKIPPED:
                hook.complain("must return the text to send, or None to send nothing")
        return content

    def subagent_start(self, **facts: Any) -> None:
        """A subagent begins to work: agent_id, profile, task, parent_id, …"""
        self._tell(self._hooks("subagent_start", facts.get("parent_id")), facts)

    def subagent_stop(self, **facts: Any) -> None:
        """A subagent has ended: agent_id, status, token_usage, cost_usd, …"""
        self._tell(self._hooks("subagent_stop", facts.get("parent_id")), facts)

    # -- inside ----------------------------------------------------------------------------------

    def _hooks(self, event: str, agent_id: str | None = None) -> list[_Hook]:
        self._look()
        if not self._own and not self._theirs:
            return []
        hooks = (*self._own, *self._theirs)
        return [hook for hook in hooks if hook.event == event and hook.concerns(agent_id)]

    def _look(self) -> None:
        """Notice plugins that came or went; those that come while the host is up are told that it is."""
        plugins = self._plugins
        if plugins is None or plugins.version == self._version:
            return
        version = plugins.version
        found = list(_hooks_of(plugins))
        with self._lock:
            known = {hook.key: hook for hook in self._theirs}
            self._theirs = tuple(known.get(hook.key, hook) for hook in found)
            self._version = version
            running = self._running
            came = [hook for hook in self._theirs if hook.key not in known]
            stay = {hook.key for hook in self._theirs}
            gone = [hook for key, hook in known.items() if key not in stay]
        if running:
            self._tell([hook for hook in gone if hook.event == "on_shutdown"], {})
            self._tell([hook for hook in came if hook.event == "on_startup"], {})

    def _tell(self, hooks: Iterable[_Hook], facts: Mapping[str, Any]) -> None:
        for hook in hooks:
            self._ask(hook, facts)

    def _ask(self, hook: _Hook, values: Mapping[str, Any], cancel: CancelToken | None = None) -> Any:
        """What a handler returns; _SKIPPED if it raises or hangs."""
        if not hook.enter():
            return _SKIPPED
        token = cancel.child() if cancel is not None else CancelToken()
        task = workers.submit(lambda: hook.run(values, token))
        seconds = hook.seconds or self._timeout
        if not task.wait(seconds, cancel=cancel):
            token.cancel("the hook was cut off")
            if cancel is not None:
                cancel.raise_if_cancelled()
            hook.cut_off(seconds)
            return _SKIPPED
        try:
            return task.result()
        except (ToolDenied, CancelledException):
            if hook.event == "before_tool_call" or (cancel is not None and cancel.is_cancelled):
                raise
            hook.complain("raised", trace=True)
        except (Exception, SystemExit):  # foreign code: its failure is its own
            hook.complain("raised", trace=True)
        return _SKIPPED


class _Hook:
    """One handler, how it wants to be called, and whether a former call still hangs."""

    def __init__(
        self, event: str, handler: Handler, plugin: str = "", agent_id: Agents = None, seconds: float | None = None
    ) -> None:
        self.event, self.plugin, self._agents, self.seconds = event, plugin, agent_id, seconds
        self.key = (plugin, event, id(handler))
        self._handler = handler
        self._lock = threading.Lock()
        self._hanging = 0
        self._stuck = False

    def concerns(self, agent_id: str | None) -> bool:
        """Whether the handler is to hear of what an agent does."""
        return self._agents(agent_id) if callable(self._agents) else self._agents in (None, agent_id)

    def enter(self) -> bool:
        """Whether the handler may be called: not while a call that was cut off still holds its thread."""
        with self._lock:
            if self._stuck and self._hanging:
                return False
            self._stuck = False
            self._hanging += 1
            return True

    def run(self, values: Mapping[str, Any], token: CancelToken) -> Any:
        """Call the handler with the values it takes, and wait for it if it is async."""
        try:
            return settled(_called(self._handler, values, token), token)
        finally:
            with self._lock:
                self._hanging -= 1

    def cut_off(self, seconds: float) -> None:
        """Wait for the call no longer; no other is made before it has ended."""
        with self._lock:
            self._stuck = True
        self.complain(f"did not return within {seconds:g} s and was cut off")

    def complain(self, what: str, *, trace: bool = False) -> None:
        """Log what is wrong with the handler."""
        owner = f" of plugin '{self.plugin}'" if self.plugin else ""
        log.warning("hook %s%s %s", self.event, owner, what, exc_info=trace)


def _hooks_of(plugins: ExposedPlugins) -> Iterable[_Hook]:
    for name in plugins.list_exposed():
        hooks = getattr(plugins.get_plugin(name), "get_hooks", None)
        for event, handler in hooks() if hooks is not None else ():
            yield _Hook(event, handler, name)


def _called(handler: Handler, values: Mapping[str, Any], token: CancelToken) -> Any:
    """Call by keyword with what the handler names, or by position if its names are its own."""
    try:
        parameters = inspect.signature(handler).parameters.values()
    except (TypeError, ValueError):  # a builtin that does not tell
        return handler(*values.values())
    if any(each.name == "cancel" for each in parameters):
        values = {**values, "cancel": token}
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        return handler(**values)
    plain = [each for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)]
    if len(plain) == len(parameters) and all(each.name in values or each.default is not each.empty for each in plain):
        return handler(**{each.name: values[each.name] for each in plain if each.name in values})
    count = sum(each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD) for each in parameters)
    takes_all = any(each.kind is each.VAR_POSITIONAL for each in parameters)
    return handler(*list(values.values())[: None if takes_all else count])
