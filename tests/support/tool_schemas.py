"""Schemas of tools: all that a schema can say, and what nobody should say."""

from __future__ import annotations

from typing import Any

TREE = {
    "type": "object",
    "properties": {"root": {"$ref": "#/$defs/node"}},
    "required": ["root"],
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "label": {"type": "string"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/node"}, "maxItems": 2},
            },
            "required": ["label"],
            "additionalProperties": False,
        }
    },
}
SCHEMAS: dict[str, Any] = {
    "nothing": {"type": "object", "properties": {}},
    "closed": {"type": "object", "properties": {}, "additionalProperties": False},
    "any object": {"type": "object"},
    "required and optional": {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "integer"}, "c": {"type": "boolean"}},
        "required": ["b"],
        "additionalProperties": False,
    },
    "all optional": {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "number"}, "c": {"type": "null"}},
        "additionalProperties": False,
    },
    "required but not described": {"type": "object", "required": ["x"]},
    "enums": {"type": "object", "properties": {"e": {"enum": ['a"b', "x\\y", "new\nline", 3, None, True, {"k": [1]}]}}},
    "const": {"type": "object", "properties": {"c": {"const": "é"}}, "required": ["c"]},
    "types": {"type": "object", "properties": {"t": {"type": ["string", "null", "array"]}}, "required": ["t"]},
    "union": {
        "type": "object",
        "properties": {
            "u": {"anyOf": [{"type": "integer"}, {"type": "object", "properties": {"x": {"type": "string"}}}]}
        },
        "required": ["u"],
    },
    "all of": {
        "allOf": [
            {"properties": {"a": {"type": "integer"}}, "required": ["a"]},
            {"properties": {"b": {"type": "string"}}, "required": ["b"]},
        ]
    },
    "bounds": {
        "type": "object",
        "properties": {
            "n": {"type": "integer", "minimum": -2, "maximum": 5},
            "x": {"type": "integer", "exclusiveMinimum": 3, "exclusiveMaximum": 6},
            "p": {"type": "integer", "minimum": 1},
            "z": {"type": "number", "minimum": 0},
            "s": {"type": "string", "minLength": 2, "maxLength": 4},
            "l": {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 3},
            "e": {"type": "array", "maxItems": 0},
        },
        "required": ["n", "x", "p", "z", "s", "l", "e"],
    },
    "map": {"type": "object", "additionalProperties": {"type": "integer"}},
    "recursive": TREE,
    "odd names": {"type": "object", "properties": {'a "b"\\c': {"type": "string"}}, "required": ['a "b"\\c']},
    "reference to itself": {"type": "object", "properties": {"x": {"$ref": "#/properties/x"}}},
    "reference elsewhere": {"type": "object", "properties": {"x": {"$ref": "https://example.org/schema"}}},
}


def _deep(levels: int) -> Any:
    schema: Any = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"x": {"type": "array", "items": schema}}, "required": ["x"]}
    return schema


_SELF = {"$ref": "#/$defs/a"}
HOSTILE: dict[str, Any] = {
    "begins with itself": {"properties": {"x": _SELF}, "$defs": {"a": {"anyOf": [_SELF, {"type": "string"}]}}},
    "in a circle": {"properties": {"x": _SELF}, "$defs": {"a": {"$ref": "#/$defs/b"}, "b": _SELF}},
    "itself beside something": {
        "properties": {"x": _SELF},
        "$defs": {
            "a": {"type": "object", "properties": {"y": {"type": "object", "minProperties": 0, "allOf": [_SELF]}}}
        },
    },
    "itself twice": {"properties": {"x": _SELF}, "$defs": {"a": {"type": "object", "anyOf": [_SELF, _SELF]}}},
    "doubling": {
        "properties": {"x": {"$ref": "#/$defs/d0"}},
        "$defs": {
            f"d{n}": {
                "minLength": n,
                "anyOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}]}],
            }
            for n in range(30)
        },
    },
    "the whole": {"properties": {"x": {"$ref": "#"}}},
    "deep": _deep(120),
    "wide": {"properties": {f"p{n}": {"enum": list(range(20))} for n in range(12)}},
    "nonsense": {
        "properties": {
            "a": {"type": 5},
            "b": {"type": ["string", 7]},
            "c": {"enum": "abc"},
            "d": {"anyOf": {"x": 1}},
            "e": {"items": [1, 2]},
            "f": {"properties": [1], "required": "x"},
            "g": {"allOf": [1, "x"]},
            "h": 12,
            "i": {"minLength": "x", "maxLength": -4, "type": "string"},
            "j": {"type": "integer", "minimum": "a", "maximum": None},
            "k": {"type": "array", "minItems": 9, "maxItems": 2},
        },
        "required": {"a": 1},
    },
    "no object": {"type": "string"},
    "lone surrogate": {"properties": {"\ud800": {"const": "\udfff"}}, "required": ["\ud800"]},
}
