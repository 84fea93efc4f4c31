"""What an untrusted project's settings may say: nothing that widens rights, runs code or sends keys elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from shared.definitions.source import Problem
from shared.settings.file import SettingsFile
from shared.settings.keys import KEYS, Rule
from shared.settings.tree import Branch, Node, Path, plain

HINT = "the workspace is not trusted: look at it with `jaato trust`, or write it into the user's own file"


def refusals(file: SettingsFile, below: Mapping[str, Node]) -> Iterator[tuple[Path, Problem]]:
    """The entries that do not count, outermost first, and why."""
    for key, node in file.entries.items():
        yield from _refused(file.path, KEYS[key].rule, (key,), node, below.get(key))


def without(entries: Mapping[str, Node], path: Path) -> dict[str, Node]:
    """The entries without the one at the end of a path."""
    first, *rest = path
    kept = {key: node for key, node in entries.items() if key != first or rest}
    if rest and isinstance(inner := kept[first], Branch):
        kept[first] = Branch(without(inner.entries, tuple(rest)), inner.origin)
    return kept


def _refused(where: str, rule: Rule, path: Path, node: Node, below: Node | None) -> Iterator[tuple[Path, Problem]]:
    weaker = plain(below) if below is not None else None
    if plain(node) == weaker:  # it says nothing new
        return
    if (reason := rule(path[1:], plain(node), weaker)) is not None:
        name = ".".join(path)
        text = f"'{name}' is not honoured: {reason}, and {HINT}"
        line = node.origin.line
        yield path, Problem(where, line, "untrusted-setting", path[0], text, "warning")
    elif isinstance(node, Branch):
        under = below.entries if isinstance(below, Branch) else {}
        for key, inner in node.entries.items():
            yield from _refused(where, rule, (*path, key), inner, under.get(key))
