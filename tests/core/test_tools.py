"""`@tool`: the schema that a signature and docstring make, and the values a function receives."""

from __future__ import annotations

import asyncio
import enum
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired, Optional, TypedDict

import pytest

from shared import CancelToken, Plugin, ToolContext, ToolSchema, tool
from shared.errors import ConfigError, PluginError
from shared.plugin_loading import plugin_tools
from shared.toolbox import Toolbox
from shared.tools import Tool, tools_of
from shared.types import FunctionCall

if TYPE_CHECKING:
    from decimal import Decimal as OnlyForTheTypeChecker


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Point:
    x: int
    y: int = 0


@dataclass
class Shape:
    name: str
    corners: list[Point] = field(default_factory=list)
    colour: Colour = Colour.RED
    centre: Point | None = None


class Filters(TypedDict):
    query: Annotated[str, "what to look for"]
    near: NotRequired[Point]


@dataclass
class Node:
    value: int
    next: Node | None = None


def schema_of(fn: Any) -> Mapping[str, Any]:
    return Tool.from_function(fn).schema.parameters


def call(fn: Any, **args: Any) -> Any:
    """Call as a model does: arguments are JSON, checked first."""
    made = Tool.from_function(fn)
    result = Toolbox([made]).run(FunctionCall("1", made.name, args), ToolContext("main", CancelToken()))
    assert not result.is_error, result.text
    return result.result


def test_scalars_defaults_and_required_fields() -> None:
    def search(query: str, limit: int = 10, ratio: float = 0.5, deep: bool = False) -> str:
        """Look for something."""
        return query

    assert schema_of(search) == {
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "limit": {"type": "integer", "default": 10},
            "ratio": {"type": "number", "default": 0.5},
            "deep": {"type": "boolean", "default": False},
        },
        "additionalProperties": False,
        "required": ["query"],
    }


def test_choices_lists_objects_and_optional_values() -> None:
    def paint(
        mode: Literal["fill", "line"],
        colour: Colour,
        words: list[str],
        sizes: Sequence[int],
        labels: dict[str, float],
        pair: tuple[int, int],
        mixed: tuple[int, str],
        anything: Any,
        note: str | None = None,
        old: Optional[Literal["a"]] = None,  # noqa: UP045
        unit: Colour = Colour.BLUE,
    ) -> None: ...

    properties = schema_of(paint)["properties"]
    assert properties["mode"] == {"type": "string", "enum": ["fill", "line"]}
    assert properties["colour"] == {"type": "string", "enum": ["red", "blue"]}
    assert properties["words"] == {"type": "array", "items": {"type": "string"}}
    assert properties["sizes"] == {"type": "array", "items": {"type": "integer"}}
    assert properties["labels"] == {"type": "object", "additionalProperties": {"type": "number"}}
    assert properties["pair"] == {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}
    assert properties["mixed"]["prefixItems"] == [{"type": "integer"}, {"type": "string"}]
    assert properties["anything"] == {}
    assert properties["note"] == {"type": ["string", "null"]}
    assert properties["old"] == {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}]}
    assert properties["unit"]["default"] == "blue"


def test_nested_dataclasses_and_typed_dicts() -> None:
    def draw(shape: Shape, filters: Filters) -> None: ...

    properties = schema_of(draw)["properties"]
    shape, filters = properties["shape"], properties["filters"]
    assert shape["required"] == ["name"]
    assert shape["properties"]["corners"]["items"]["properties"]["x"] == {"type": "integer"}
    assert shape["additionalProperties"] is False
    assert filters["required"] == ["query"]
    assert filters["properties"]["query"]["description"] == "what to look for"
    assert filters["properties"]["near"]["required"] == ["x"]


def test_annotated_gives_descriptions_and_constraints() -> None:
    def take(count: Annotated[int, "how many", {"minimum": 1}]) -> None: ...

    assert schema_of(take)["properties"]["count"] == {"type": "integer", "description": "how many", "minimum": 1}


def test_google_docstrings() -> None:
    def fetch(url: str, retries: int = 3, **rest: Any) -> str:
        """Fetch a page.

        Follows redirects.

        Args:
            url: Where it is,
                with the scheme: https only.
            retries (int, optional): How often to try.

        Returns:
            The text: all of it.
        """
        return url

    made = Tool.from_function(fetch)
    assert made.schema.description == "Fetch a page.\n\nFollows redirects."
    properties = made.schema.parameters["properties"]
    assert properties["url"]["description"] == "Where it is, with the scheme: https only."
    assert properties["retries"]["description"] == "How often to try."
    assert list(properties) == ["url", "retries"]


def test_sphinx_docstrings() -> None:
    def fetch(url: str, retries: int = 3) -> str:
        """Fetch a page.

        :param url: Where it is,
            with the scheme.
        :param int retries: How often to try.
        :type retries: int
        :returns: The text.
        """
        return url

    made = Tool.from_function(fetch)
    assert made.schema.description == "Fetch a page."
    assert made.schema.parameters["properties"]["url"]["description"] == "Where it is, with the scheme."
    assert made.schema.parameters["properties"]["retries"]["description"] == "How often to try."


def test_a_default_that_json_cannot_hold_stays_out_of_the_schema() -> None:
    def wait(seconds: float = math.inf) -> float:
        return seconds

    assert schema_of(wait)["properties"]["seconds"] == {"type": "number"}
    assert call(wait) == "inf"


class Unsuitable:
    pass


def test_a_type_without_a_schema_is_named_with_function_and_parameter() -> None:
    def use(thing: Unsuitable) -> None: ...

    with pytest.raises(ConfigError, match=r"use, parameter 'thing': class Unsuitable .* dataclass"):
        Tool.from_function(use)


def test_a_type_that_contains_itself_is_named() -> None:
    def walk(start: Node) -> None: ...

    with pytest.raises(ConfigError, match=r"walk, parameter 'start': .*Node.* contains itself"):
        Tool.from_function(walk)


def test_a_type_known_to_the_type_checker_only_is_named() -> None:
    def pay(amount: OnlyForTheTypeChecker) -> None: ...

    with pytest.raises(
        ConfigError, match=r"pay: its type hints cannot be read: .*OnlyForTheTypeChecker.*TYPE_CHECKING"
    ):
        Tool.from_function(pay)


def test_positional_only_parameters_are_refused() -> None:
    def strange(a: int, /) -> None: ...

    with pytest.raises(ConfigError, match="parameter 'a' is positional only"):
        Tool.from_function(strange)


def test_json_becomes_what_the_signature_says() -> None:
    seen: dict[str, Any] = {}

    def take(
        shape: Shape,
        filters: Filters,
        points: Sequence[Point],
        by_name: Mapping[str, Point],
        pair: tuple[Point, str],
        many: tuple[int, ...],
        tags: set[str],
        colour: Colour,
        data: bytes,
        count: int,
        maybe: Point | None = None,
        wide: str | Point = "",
    ) -> str:
        seen.update(locals())
        return "ok"

    call(
        take,
        shape={"name": "s", "corners": [{"x": 1}], "colour": "blue", "centre": {"x": 2, "y": 3}},
        filters={"query": "q", "near": {"x": 4}},
        points=[{"x": 5}],
        by_name={"a": {"x": 6}},
        pair=[{"x": 7}, "seven"],
        many=[1, 2.0],
        tags=["a", "a"],
        colour="red",
        data="aGk=",
        count=3.0,
        maybe={"x": 8},
        wide={"x": 9},
    )
    assert seen["shape"] == Shape("s", [Point(1)], Colour.BLUE, Point(2, 3))
    assert seen["filters"] == {"query": "q", "near": Point(4)}
    assert seen["points"] == [Point(5)]
    assert seen["by_name"] == {"a": Point(6)}
    assert seen["pair"] == (Point(7), "seven")
    assert seen["many"] == (1, 2)
    assert seen["tags"] == {"a"}
    assert seen["colour"] is Colour.RED
    assert seen["data"] == b"hi"
    assert seen["count"] == 3
    assert type(seen["count"]) is int
    assert seen["maybe"] == Point(8)
    assert seen["wide"] == {"x": 9}, "for a union of several types JSON does not say which is meant"


def test_coroutine_functions_run_with_and_without_context() -> None:
    async def plain(value: int) -> int:
        await asyncio.sleep(0)
        return value + 1

    async def informed(context: ToolContext, value: int) -> str:
        await asyncio.sleep(0)
        return f"{context.agent_id}:{value}"

    assert call(plain, value=1) == 2
    assert call(informed, value=1) == "main:1"


def test_the_context_is_given_and_never_shown_to_the_model() -> None:
    def needed(context: ToolContext, text: str) -> str:
        return context.agent_id + text

    def optional(text: str, context: ToolContext | None = None) -> str:
        return (context.agent_id if context else "nobody") + text

    for fn in (needed, optional):
        assert list(schema_of(fn)["properties"]) == ["text"]
        assert call(fn, text="!") == "main!"


class Base(Plugin):
    name = "base"

    @tool
    def first(self, a: int) -> int:
        """The first."""
        return a

    @tool(auto_approved=True, name="renamed", description="Better.", timeout_seconds=5)
    def second(self) -> str:
        """Not used."""
        return "second"

    @tool
    def third(self) -> str:
        """The third."""
        return "third"

    @tool
    @staticmethod
    def fixed(a: int) -> int:
        """A static one."""
        return a


class Derived(Base):
    name = "derived"
    third = None  # type: ignore[assignment]

    @tool
    def first(self, a: int, b: int = 2) -> int:
        """Overridden."""
        return a + b

    def second(self) -> str:
        return "no tool any more"

    @tool
    async def last(self) -> str:
        """Comes last."""
        return "last"


def test_methods_are_tools_in_the_order_of_their_definition() -> None:
    tools = tools_of(Base())
    assert [each.name for each in tools] == ["first", "renamed", "third", "fixed"]
    assert tools[1].schema.description == "Better."
    assert tools[1].timeout_seconds == 5
    assert Base().get_auto_approved_tools() == ["renamed"]
    assert {each.plugin for each in tools} == {"base"}


def test_a_subclass_overrides_removes_and_adds() -> None:
    plugin = Derived()
    assert [each.name for each in tools_of(plugin)] == ["first", "fixed", "last"]
    executors = plugin.get_executors()
    assert executors["first"]({"a": 1}) == 3
    assert executors["first"](a=1, b=1) == 2
    assert executors["last"]() == "last", "host code gets the value of a coroutine"


def test_a_plugin_on_our_base_class_may_write_its_own_schemas() -> None:
    class Handmade(Plugin):
        name = "handmade"

        def get_tool_schemas(self) -> list[ToolSchema]:
            return [ToolSchema("shout", "Shout.", {"type": "object", "properties": {"text": {"type": "string"}}})]

        def get_executors(self) -> dict[str, Any]:
            return {"shout": lambda text="": text.upper()}

    assert [each.name for each in plugin_tools(Handmade())] == ["shout"]


PARAMETERS = {"type": "object", "properties": {"date": {"type": "string"}, "details": {"type": "boolean"}}}


def executors() -> list[tuple[Any, Any]]:
    def keywords(date: str | None = None, details: bool = False) -> Any:
        return {"date": date, "details": details}

    def anything(**given: Any) -> Any:
        return given

    def one_dict(args: dict[str, Any]) -> Any:
        return args

    def other_name(payload: dict[str, Any]) -> Any:
        return payload

    def positional_only(date: dict[str, Any], /) -> Any:
        return date

    def dict_and_setting(args: dict[str, Any], timeout: int = 30) -> Any:
        return args

    def dict_and_rest(args: dict[str, Any], **rest: Any) -> Any:
        return args

    def dict_and_context(args: dict[str, Any], context: ToolContext) -> Any:
        return {**args, "agent": context.agent_id}

    async def later(date: str) -> Any:
        return {"date": date}

    given = {"date": "today"}
    return [
        (keywords, {"date": "today", "details": False}),
        (anything, given),
        (one_dict, given),
        (other_name, given),
        (positional_only, given),
        (dict_and_setting, given),
        (dict_and_rest, given),
        (dict_and_context, {"date": "today", "agent": "main"}),
        (later, given),
    ]


@pytest.mark.parametrize(("executor", "expected"), executors(), ids=lambda value: getattr(value, "__name__", ""))
def test_executors_of_others_are_called_the_way_they_want(executor: Any, expected: Any) -> None:
    made = Tool.from_executor(ToolSchema("moon", "", PARAMETERS), executor)
    context = ToolContext("main", CancelToken())
    assert Toolbox([made]).run(FunctionCall("1", "moon", {"date": "today"}), context).result == expected


def test_an_executor_that_cannot_fit_its_schema_is_refused_at_registration() -> None:
    def wrong(day: str, month: str) -> str:
        return day + month

    def misspelt(dat: str, details: bool = False) -> str:
        return dat

    for executor in (wrong, misspelt):
        with pytest.raises(
            PluginError, match=r"tool 'moon': its executor needs .* its schema offers \['date', 'details'\]"
        ):
            Tool.from_executor(ToolSchema("moon", "", PARAMETERS), executor)


def test_bad_arguments_run_nothing() -> None:
    ran: list[int] = []

    def count(a: int) -> None:
        ran.append(a)

    made = Tool.from_function(count)
    result = Toolbox([made]).run(FunctionCall("1", "count", {"a": "x"}), ToolContext("main", CancelToken()))
    assert result.is_error
    assert result.text == "Error: bad arguments for count: 'a': expected integer, got string 'x'. Nothing was run."
    assert ran == []
