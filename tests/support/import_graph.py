"""Which parts of `shared/` import which when they are loaded; later imports, and those for types, do not count."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]


def imports() -> dict[str, set[str]]:
    """For each module and package of the first level: the others that its files import."""
    found: dict[str, set[str]] = {}
    for path in (ROOT / "shared").rglob("*.py"):
        part = path.relative_to(ROOT / "shared").with_suffix("").parts[0]
        found.setdefault(part, set()).update(_parts(ast.parse(path.read_text(encoding="utf-8"))))
    return {part: others - {part} for part, others in found.items()}


def _parts(tree: ast.AST) -> Iterator[str]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or _is_for_types(node):
            continue
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "shared":
            yield from [node.module.split(".")[1]] if "." in node.module else [name.name for name in node.names]
        yield from _parts(node)


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
