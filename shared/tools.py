"""Tool: a schema, a compiled check and one way to call; `@tool` makes one from a function."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

from shared.aio import settled
from shared.cancel import CancelToken
from shared.coerce import Converter, converter
from shared.errors import PluginError
from shared.schema import Validator
from shared.signature import hints_of, parameters_schema, summary_of
from shared.types import ToolSchema

if TYPE_CHECKING:
    from shared.plugin import PermissionDisplayInfo, ToolPlugin
    from shared.session import JaatoSession

F = TypeVar("F", bound=Callable[..., Any])
Invoke = Callable[[Mapping[str, Any], "ToolContext"], Any]
Display = Callable[[Mapping[str, Any], "ToolContext"], "PermissionDisplayInfo | None"]
Approves = Callable[[Mapping[str, Any]], bool]
_DICT_NAMES = {"args", "params", "arguments"}


@dataclass(frozen=True)
class ToolContext:
    """Who calls: a tool parameter of this type receives it, and the model never sees it."""

    agent_id: str
    cancel: CancelToken
    session: JaatoSession | None = None
    call_id: str = ""
    workspace: Path = Path()  # the current folder
    output: Callable[[str], None] = lambda chunk: None  # live output of a long tool, for views

    def stand_by(self, phase: str) -> AbstractContextManager[None]:
        """A context for waiting on a person or another agent; see `JaatoSession.stand_by`."""
        return self.session.stand_by(phase, self.cancel) if self.session is not None else nullcontext()


@dataclass(frozen=True)
class Tool:
    """One tool, ready to be called: `invoke(args, context)`."""

    schema: ToolSchema
    invoke: Invoke
    plugin: str = ""
    auto_approved: bool = False
    required_agent: str | None = None
    timeout_seconds: float | None = None
    display: Display | None = None  # what the person sees who decides about a call
    approves: Approves | None = None  # spares the question for some calls only
    validator: Validator = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check = Validator(self.schema.parameters, what=f"tool '{self.schema.name}'")
        object.__setattr__(self, "validator", check)

    @property
    def name(self) -> str:
        """The tool's name, as the model uses it."""
        return self.schema.name

    def is_approved(self, args: Mapping[str, Any]) -> bool:
        """Whether its plugin lets this call run without a question."""
        return self.auto_approved or (self.approves is not None and self.approves(args))

    def as_executor(self) -> Callable[..., Any]:
        """The tool as a plain callable for host code: a dict, or keywords."""

        def execute(args: Mapping[str, Any] | None = None, /, **keywords: Any) -> Any:
            token = CancelToken()
            return settled(self.invoke({**(args or {}), **keywords}, ToolContext("main", token)), token)

        return execute

    @staticmethod
    def from_function(fn: Callable[..., Any], *, plugin: str = "", **options: Any) -> Tool:
        """A tool from any typed function or bound method."""
        marks: dict[str, Any] = {**getattr(fn, "__jaato_tool__", {}), **options}
        context_names = _context_parameters(fn)
        schema = ToolSchema(
            name=marks.pop("name", None) or fn.__name__,
            description=marks.pop("description", None) or summary_of(fn.__doc__),
            parameters=parameters_schema(fn, skip=frozenset(context_names)),
        )
        return Tool(schema, _by_keyword(fn, context_names, _converters(fn)), plugin=plugin, **marks)

    @staticmethod
    def from_executor(schema: ToolSchema, fn: Callable[..., Any], *, plugin: str = "", **options: Any) -> Tool:
        """A tool from a plugin's schema and executor; whether it takes a dict or keywords is seen once, here."""
        return Tool(schema, _adapt(schema, fn), plugin=plugin, **options)


@overload
def tool(fn: F, /) -> F: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    auto_approved: bool = False,
    required_agent: str | None = None,
    timeout_seconds: float | None = None,
) -> Callable[[F], F]: ...
def tool(fn: Any = None, /, **options: Any) -> Any:
    """Mark a function or method as a tool; its signature and docstring become the schema."""

    def mark(target: Any) -> Any:
        target.__jaato_tool__ = options
        return target

    return mark(fn) if fn is not None else mark


def tools_of(plugin: ToolPlugin) -> list[Tool]:
    """All methods of an object that are marked with `@tool`, in the order of their definition.

    A subclass that overrides one says again that it is a tool; without the mark it is none any more.
    """
    marked: dict[str, None] = {}
    for cls in reversed(type(plugin).__mro__):
        for name, member in vars(cls).items():
            if hasattr(member, "__jaato_tool__"):
                marked[name] = None
            else:
                marked.pop(name, None)
    return [Tool.from_function(getattr(plugin, name), plugin=plugin.name) for name in marked]


def _context_parameters(fn: Callable[..., Any]) -> list[str]:
    try:
        hints = typing.get_type_hints(fn)
    except (AttributeError, NameError, SyntaxError, TypeError):
        hints = getattr(fn, "__annotations__", {})
    return [name for name, hint in hints.items() if _is_context(hint)]


def _is_context(hint: Any) -> bool:
    if isinstance(hint, str):  # of a plugin that imports the type for its type checker only
        return hint.replace(" ", "").removesuffix("|None") == "ToolContext"
    return hint is ToolContext or ToolContext in typing.get_args(hint)


def _converters(fn: Callable[..., Any]) -> dict[str, Converter]:
    wanted = [(name, hint) for name, hint in hints_of(fn).items() if name != "return" and not _is_context(hint)]
    return {name: convert for name, hint in wanted if (convert := converter(hint))}


def _by_keyword(fn: Callable[..., Any], context_names: list[str], converters: Mapping[str, Converter]) -> Invoke:
    if not context_names and not converters:
        return lambda args, context: fn(**args)

    def invoke(args: Mapping[str, Any], context: ToolContext) -> Any:
        given: dict[str, Any] = dict(args)
        for name, convert in converters.items():
            if name in given:
                given[name] = convert(given[name])
        for name in context_names:
            given[name] = context
        return fn(**given)

    return invoke


def _adapt(schema: ToolSchema, fn: Callable[..., Any]) -> Invoke:
    """Call a third-party executor the way it wants: one dict, or keywords."""
    context_names = _context_parameters(fn)
    try:
        parameters = [p for p in inspect.signature(fn).parameters.values() if p.name not in context_names]
    except (TypeError, ValueError):  # builtins without a signature
        return lambda args, context: fn(dict(args))
    keywords = _by_keyword(fn, context_names, {})
    properties = set(schema.parameters.get("properties", {}))
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = [p for p in positional if p.default is p.empty]
    lone = _lone(positional, properties)
    if lone is not None and _takes_dict(lone, properties):
        if context_names:
            return lambda args, context: fn(dict(args), **dict.fromkeys(context_names, context))
        return lambda args, context: fn(dict(args))
    if {p.name for p in needed} - properties:
        raise PluginError(
            f"tool '{schema.name}': its executor needs {sorted(p.name for p in needed)}, "
            f"its schema offers {sorted(properties)}; take one dict, or the schema's fields as keywords"
        )
    return keywords


def _lone(positional: list[inspect.Parameter], properties: set[str]) -> inspect.Parameter | None:
    """The parameter that might take all arguments: the only one, or the only needed one beside settings of its own."""
    needed = [p for p in positional if p.default is p.empty]
    first = needed[0] if len(needed) == 1 else positional[0] if len(positional) == 1 else None
    return None if any(p is not first and p.name in properties for p in positional) else first


def _takes_dict(parameter: inspect.Parameter, properties: set[str]) -> bool:
    """Whether an executor's one parameter is meant for all arguments rather than for one field."""
    if parameter.kind is parameter.POSITIONAL_ONLY or parameter.name not in properties:
        return True
    return parameter.name in _DICT_NAMES and properties != {parameter.name}
