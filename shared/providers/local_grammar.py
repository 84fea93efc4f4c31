"""From the schemas of tools to a grammar in which every call is valid JSON for one of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from shared.providers.base import ToolSet
from shared.types import JSONObject

OPEN, CLOSE = "<tool_call>", "</tool_call>"
MAX_CALLS = 4  # in one answer
MAX_ITEMS = 16  # of an array or a map without a limit of its own: a small model does not find its end
MAX_COUNTED = 200  # a counted repetition is written out by the grammar's reader, so long ones are not counted
MAX_DEPTH = 40  # of nested schemas
MAX_VISITS = 5_000  # parts of schemas that are looked at: a hostile one must not take for ever
MAX_RANGE = 256  # integers between two limits are listed if they are not more than this

_TERMINALS = {
    "char": r'[^"\\\x00-\x1F\x7F] | "\\" ["\\/bfnrt]',
    "string": r'"\"" char* "\""',
    "digits": r"[0-9]{0,14}",
    "integer": r'"-"? ("0" | [1-9] digits)',
    "number": r'integer ("." [0-9]{1,6})?',
    "boolean": r'"true" | "false"',
    "null": r'"null"',
    "value": r"object | array | string | number | boolean | null",
    "pair": r'string ": " value',
    "object": rf'"{{" (pair (", " pair){{0,{MAX_ITEMS - 1}}})? "}}"',
    "array": rf'"[" (value (", " value){{0,{MAX_ITEMS - 1}}})? "]"',
    # Text ends where a call begins; until then it may hold anything but the first letters of its mark.
    "text": r'([^<] | "<" ([^t] | "t" ([^o] | "o" ([^o] | "o" [^l]))))*',
}
_REMARKS = {"title", "description", "default", "examples", "$defs", "definitions", "$schema", "$id", "$comment"}
_NO_TYPE = ("object", "array", "string", "number", "boolean", "null")


def calls_grammar(tools: ToolSet, *, must_call: bool = False) -> str:
    """Text, then calls; with `must_call` a call comes first and there is no text."""
    writer = _Writer()
    calls = [writer.call(schema.name, schema.parameters) for schema in tools.schemas]
    writer.rules["call"] = " | ".join(calls)
    block = f'{_quoted(OPEN)} "{{\\"name\\": " call "}}" {_quoted(CLOSE)}'
    first, least = ("", 1) if must_call else ("text ", 0)
    return writer.written(f"{first}({block}){{{least},{MAX_CALLS}}}")


def answer_grammar(schema: JSONObject) -> str:
    """An answer that is JSON of this schema and nothing else."""
    writer = _Writer()
    return writer.written(writer.within(schema))


class _Writer:
    """Collects rules; what a schema says that a grammar cannot (patterns, long ranges) is left to the validator."""

    def __init__(self) -> None:
        self.rules: dict[str, str] = {}
        self._root: JSONObject = {}
        self._roots: list[JSONObject] = []  # kept alive, for their ids are part of keys
        self._refs: dict[tuple[int, str], str] = {}
        self._chain: frozenset[str] = frozenset()  # references on the way here since the last bracket
        self._visits = self._depth = 0

    def written(self, root: str) -> str:
        """The whole grammar."""
        rules = {"root": root, **self.rules, **_TERMINALS}
        return "\n".join(f"{name} ::= {body}" for name, body in rules.items()) + "\n"

    def call(self, name: str, parameters: JSONObject) -> str:
        """One tool's call, from its name on."""
        arguments = self.within({**parameters, "type": "object"})
        return f"{_quoted(_json(name) + ', ')} {_quoted(_key('arguments'))} {arguments}"

    def within(self, root: JSONObject) -> str:
        """A whole schema, within which references are looked up."""
        self._root = root
        self._roots.append(root)
        return self._value(root)

    def _rule(self, body: str) -> str:
        name = f"r{len(self.rules)}"
        self.rules[name] = body
        return name

    def _value(self, schema: Any) -> str:
        self._visits += 1
        if not isinstance(schema, Mapping) or not schema or self._visits > MAX_VISITS or self._depth >= MAX_DEPTH:
            return "value"
        self._depth += 1
        try:
            return self._described(schema)
        finally:
            self._depth -= 1

    def _described(self, schema: JSONObject) -> str:
        if "$ref" in schema:
            return self._reference(str(schema["$ref"]))
        if "const" in schema:
            return _quoted(_json(schema["const"]))
        if choices := _items(schema.get("enum")):
            return _any(_quoted(_json(value)) for value in choices)
        for word in ("anyOf", "oneOf"):
            if options := _items(schema.get(word)):
                rest = {key: value for key, value in schema.items() if key != word}
                return _any([self._both(rest, each) for each in options])
        if parts := _items(schema.get("allOf")):
            rest = {key: value for key, value in schema.items() if key != "allOf"}
            *others, last = parts
            for each in others:
                rest = _merged(rest, self._target(each) or {})
            return self._both(rest, last)
        return _any(self._typed(kind, schema) for kind in _types(schema))

    def _inside(self, schema: Any) -> str:
        """A value behind a bracket: from here on a schema may come round to itself."""
        chain, self._chain = self._chain, frozenset()
        try:
            return self._value(schema)
        finally:
            self._chain = chain

    def _both(self, rest: JSONObject, other: Any) -> str:
        """What fits two schemas at once."""
        if not rest.keys() - _REMARKS:
            return self._value(other)
        target = self._target(other)
        if target is None:
            return "value"
        merged = _merged(rest, target)
        if not isinstance(other, Mapping) or "$ref" not in other:
            return self._value(merged)
        return self._once(json.dumps(merged, sort_keys=True, default=str), str(other["$ref"]), merged)

    def _target(self, schema: Any) -> JSONObject | None:
        """A schema, or what it refers to; None if it refers to what is being written."""
        seen = set(self._chain)
        while isinstance(schema, Mapping) and "$ref" in schema:
            ref = str(schema["$ref"])
            if ref in seen:
                return None
            seen.add(ref)
            schema = _found(self._root, ref)
        return schema if isinstance(schema, Mapping) else {}

    def _reference(self, ref: str) -> str:
        return "value" if ref in self._chain else self._once(ref, ref, _found(self._root, ref))

    def _once(self, key: str, ref: str, schema: Any) -> str:
        """A rule for what a reference leads to, made once: a schema may contain itself, but not begin with itself."""
        place = (id(self._root), key)
        if place not in self._refs:
            self._refs[place] = name = self._rule("value")
            chain, self._chain = self._chain, self._chain | {ref}
            self.rules[name] = self._value(schema)
            self._chain = chain
        return self._refs[place]

    def _typed(self, kind: str, schema: JSONObject) -> str:
        made: dict[str, Callable[[JSONObject], str]] = {
            "object": self._object,
            "array": self._array,
            "string": _string,
            "integer": _integer,
            "number": _number,
        }
        return made[kind](schema) if kind in made else kind if kind in _TERMINALS else "value"

    def _object(self, schema: JSONObject) -> str:
        given = schema.get("properties")
        properties = given if isinstance(given, Mapping) else {}
        required = [str(name) for name in _items(schema.get("required"))]
        more = schema.get("additionalProperties", True)
        fields = {str(name): value for name, value in properties.items() if value is not False}
        fields |= {name: more for name in required if name not in fields}
        if not fields:
            return self._map(more) if more is not False and "properties" not in schema else '"{}"'
        pairs = [(f"{_quoted(_key(name))} {self._inside(value)}", name in required) for name, value in fields.items()]
        return f'"{{" {self._fields(pairs)} "}}"'

    def _map(self, schema: Any) -> str:
        pair = self._rule(f'string ": " {self._inside(schema)}')
        return f'"{{" ({pair} (", " {pair}){{0,{MAX_ITEMS - 1}}})? "}}"'

    def _fields(self, pairs: Sequence[tuple[str, bool]]) -> str:
        """Fields in order, those that are not required left out or not; from the last one to the first."""
        after = first = '""'  # what may follow once something stands there, and when nothing does yet
        for pair, required in reversed(pairs):
            following = self._rule(f'", " {pair} {after}')
            beginning = self._rule(f"{pair} {after}")
            after, first = (following, beginning) if required else (_any((following, after)), _any((beginning, first)))
            after, first = self._rule(after), self._rule(first)
        return first

    def _array(self, schema: JSONObject) -> str:
        least = _count(schema.get("minItems"), 0)
        most = max(least, _count(schema.get("maxItems"), max(least, MAX_ITEMS)))
        if most == 0 or schema.get("items") is False:
            return '"[]"'
        item = self._rule(self._inside(schema.get("items")))
        items = f'{item} (", " {item}){{{max(0, least - 1)},{most - 1}}}'
        return f'"[" {items} "]"' if least else f'"[" ({items})? "]"'


def _string(schema: JSONObject) -> str:
    least, most = _count(schema.get("minLength"), 0), schema.get("maxLength")
    if most is not None and _count(most, 0) <= MAX_COUNTED:
        return rf'"\"" char{{{min(least, _count(most, 0))},{_count(most, 0)}}} "\""'
    return rf'"\"" char{{{least},}} "\""' if 0 < least <= MAX_COUNTED else "string"


def _integer(schema: JSONObject) -> str:
    low, high = _limit(schema, "minimum", 1), _limit(schema, "maximum", -1)
    if low is not None and high is not None and 0 <= high - low <= MAX_RANGE:
        return _any(_quoted(str(number)) for number in range(low, high + 1))
    if low is not None and low > 0:
        return "([1-9] digits)"
    return '("0" | [1-9] digits)' if low == 0 else "integer"


def _number(schema: JSONObject) -> str:
    low, above = schema.get("minimum"), schema.get("exclusiveMinimum")
    if (isinstance(above, int | float) and above >= 0) or (isinstance(low, int | float) and low > 0):
        return '([1-9] digits ("." [0-9]{1,6})?)'
    return '(("0" | [1-9] digits) ("." [0-9]{1,6})?)' if low == 0 else "number"


def _limit(schema: JSONObject, word: str, step: int) -> int | None:
    """A limit as a whole number, the exclusive one moved inwards."""
    given, exclusive = schema.get(word), schema.get(f"exclusive{word.capitalize()}")
    found = [int(given)] if isinstance(given, int) else []
    if isinstance(exclusive, int) and not isinstance(exclusive, bool):
        found.append(exclusive + step)
    return max(found, key=lambda limit: limit * step) if found else None


def _types(schema: JSONObject) -> Sequence[str]:
    given = schema.get("type")
    if isinstance(given, str):
        return (given,)
    if isinstance(given, Sequence) and given:
        return [str(kind) for kind in given]
    if "properties" in schema or "additionalProperties" in schema:
        return ("object",)
    return ("array",) if "items" in schema else _NO_TYPE


def _items(given: Any) -> Sequence[Any]:
    return given if isinstance(given, list | tuple) else ()


def _merged(one: JSONObject, other: JSONObject) -> dict[str, Any]:
    """Two schemas that hold at once, as one."""
    made = {**one, **other}
    fields = [each["properties"] for each in (one, other) if isinstance(each.get("properties"), Mapping)]
    if fields:
        made["properties"] = {name: value for each in fields for name, value in each.items()}
    if "required" in made:
        made["required"] = [*_items(one.get("required")), *_items(other.get("required"))]
    return made


def _found(root: JSONObject, ref: str) -> Any:
    """What a reference within this schema leads to; anything goes for one that leads elsewhere."""
    if not ref.startswith("#"):
        return {}
    found: Any = root
    for step in ref.removeprefix("#").strip("/").split("/") if ref not in ("#", "#/") else ():
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, Mapping) and key in found:
            found = found[key]
        else:
            return {}
    return found


def _count(given: Any, otherwise: int) -> int:
    return int(given) if isinstance(given, int) and given >= 0 else otherwise


def _any(choices: Any) -> str:
    return f"({' | '.join(dict.fromkeys(choices))})"


def _json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    # Half a surrogate pair, which JSON can hold, is no UTF-8.
    return text if text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text) else json.dumps(value)


def _key(name: str) -> str:
    return f"{_json(name)}: "


def _quoted(text: str) -> str:
    """A literal of the grammar."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'
