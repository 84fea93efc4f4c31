"""The pages of the documentation as tests read them: snippets with their markers, links, headings, code in passing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]
#: What may stand in an invisible comment before a snippet:
#: `file: PATH`    the snippet is the content of this file of the reader's project; commands after it find it there
#: `not run: WHY; instead: COMMAND`   it cannot be run here, and what is run in its place
#: `in: checkout`  its commands are for people who work on this package
#: `exit: N`       the exit code of its commands, if it is not 0
#: `stdin: TEXT`   what the reader types, `\n` between the lines
#: `command: NAME` one of the two that `.ci/run` takes from the README and runs in fresh clones
MARKERS = ("file", "not run", "in", "exit", "stdin", "command")
_COMMENT = re.compile(r"<!--\s*([a-z ]+):\s*(.*?)\s*-->", re.DOTALL)


@dataclass(frozen=True)
class Snippet:
    """A block of code on a page; an indented one is shell."""

    page: Path
    line: int
    language: str
    text: str
    markers: dict[str, str] = field(hash=False)

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def is_shell(self) -> bool:
        """Whether it holds commands to type."""
        return self.language in ("console", "indented")

    def commands(self) -> Iterator[tuple[str, list[str]]]:
        """Each command with the lines of output that the page shows beneath it."""
        if self.language == "indented":
            yield from ((line, []) for line in _joined(self.text.splitlines()) if line)
            return
        command, shown = "", list[str]()
        for line in _joined(self.text.splitlines()):
            if line.startswith("$ "):
                if command:
                    yield command, shown
                command, shown = line[2:], []
            else:
                shown.append(line)
        if command:
            yield command, shown


@dataclass(frozen=True)
class Page:
    """One page, parsed once."""

    path: Path

    @cached_property
    def tokens(self) -> list[Token]:
        """Everything on the page, in order."""
        return MarkdownIt("commonmark").enable("table").parse(self.path.read_text(encoding="utf-8"))

    @cached_property
    def snippets(self) -> list[Snippet]:
        """All blocks of code, with the markers that stand right before each."""
        found, markers = [], dict[str, str]()
        for token in self.tokens:
            if token.type == "html_block":
                markers |= {match[1]: match[2] for match in _COMMENT.finditer(token.content)}
                continue
            if token.type in ("fence", "code_block") and token.map is not None:
                language = token.info.strip() if token.type == "fence" else "indented"
                found.append(Snippet(self.path, token.map[0] + 1, language, token.content, markers))
            markers = {}
        return found

    @cached_property
    def anchors(self) -> set[str]:
        """What links may lead to on this page."""
        pairs = zip(self.tokens, self.tokens[1:], strict=False)
        return {_slug(inline.content) for opened, inline in pairs if opened.type == "heading_open"}

    def inline(self, kind: str) -> list[Token]:
        """All tokens of a kind within the text, such as `link_open` or `code_inline`."""
        blocks = (token.children or () for token in self.tokens if token.type == "inline")
        return [child for block in blocks for child in block if child.type == kind]


def pages() -> list[Page]:
    """README, docs/ and the notes beside plugins and profiles."""
    paths = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted(ROOT.glob("p*/README.md"))]
    return [Page(path) for path in paths]


def _joined(lines: list[str]) -> list[str]:
    """Lines that a backslash continues, as one."""
    return "\n".join(lines).replace("\\\n", "").splitlines()


def _slug(heading: str) -> str:
    """The anchor that code hosts make of a heading."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", plain.lower()).strip().replace(" ", "-")
