"""What README and docs say is true: snippets run, links lead somewhere, what is named exists."""

from __future__ import annotations

import ast
import itertools
import re
import subprocess
import sys
from contextlib import ExitStack
from fnmatch import fnmatch
from graphlib import TopologicalSorter
from pathlib import Path

import click
import pytest
from support.definition_files import complaints, parsed
from support.documents import MARKERS, ROOT, Page, Snippet, pages
from support.import_graph import imports
from support.newcomer import Newcomer

from shared.cli.main import LazyGroup, cli

PAGES = pages()
SNIPPETS = [snippet for page in PAGES for snippet in page.snippets]
DATA = ("json", "yaml", "toml", "markdown")
_TYPED = re.compile(r"^(?:\$ )?(?:[A-Z_]+=\S* )*(?:jaato|pip|python3?|claude|git) .*", re.MULTILINE)
_VENDORS = re.compile(r"^[^#\n]*\"(?:anthropic|google_genai|openai_compatible)\"", re.MULTILINE)
#: Snippets that cannot be run as they stand: each says why, and what is run instead. Raise it only with a reason.
NOT_RUN = 2


def _listed(snippets: list[Snippet]) -> list[object]:
    return [pytest.param(snippet, id=str(snippet)) for snippet in snippets]


@pytest.mark.parametrize(
    "snippet",
    _listed([each for each in SNIPPETS if each.language == "python" and not {"not run", "file"} & each.markers.keys()]),
)
def test_python_snippet(snippet: Snippet, tmp_path: Path) -> None:
    """In an empty folder; one that names no vendor must do without any key."""
    keys = _VENDORS.search(snippet.text) is not None
    with ExitStack() as stack:
        done = Newcomer(tmp_path, stack, keys=keys).python(snippet.text)
    assert done.returncode == 0, f"{snippet}: {done.stderr}"


@pytest.mark.parametrize(
    "page", [pytest.param(page, id=str(page.path.relative_to(ROOT))) for page in PAGES if page.snippets]
)
def test_page_as_a_newcomer_follows_it(page: Page, tmp_path: Path) -> None:
    """Files are written and commands typed in the order of the page, in one folder."""
    with ExitStack() as stack:
        reader = Newcomer(tmp_path, stack)
        for snippet in page.snippets:
            if "file" in snippet.markers:
                _write(reader, snippet)
            if snippet.is_shell and "command" not in snippet.markers:
                _follow(reader, snippet)
            elif "not run" in snippet.markers:
                _instead(reader, snippet)


def _write(reader: Newcomer, snippet: Snippet) -> None:
    name = snippet.markers["file"]
    root = reader.home if name.startswith("~/") else reader.project
    path = root / name.removeprefix("~/")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(snippet.text)
    if "exit" not in snippet.markers:  # a damaged file is shown for what is said about it
        assert complaints(root, name.removeprefix("~/")) == [], snippet


def _follow(reader: Newcomer, snippet: Snippet) -> None:
    if "not run" in snippet.markers:
        _instead(reader, snippet)
        return
    expected = int(snippet.markers.get("exit", 0))
    typed = snippet.markers.get("stdin", "").replace("\\n", "\n")
    folder = {"checkout": ROOT}[snippet.markers["in"]] if "in" in snippet.markers else None
    for command, shown in snippet.commands():
        done = reader.type(command, stdin=typed, folder=folder)
        said = done.stdout + done.stderr
        assert done.returncode == expected, f"{snippet}: {command}: {said}"
        assert "Traceback" not in said, f"{snippet}: {command}: {said}"
        for line in filter(str.strip, shown):
            pattern = f"*{_literal(line.strip())}*"
            assert any(fnmatch(each, pattern) for each in said.splitlines()), f"{snippet}: no line {line!r} in {said}"


def _instead(reader: Newcomer, snippet: Snippet) -> None:
    reason, _, command = snippet.markers["not run"].partition("; instead: ")
    assert len(reason.split()) >= 3, f"{snippet}: say why it is not run"
    assert command, f"{snippet}: say what is run instead"
    done = reader.type(command)
    assert done.returncode == 0, f"{snippet}: {command}: {done.stdout}{done.stderr}"


def _literal(line: str) -> str:
    """A line of output as a pattern: `…` stands for anything."""
    return re.sub(r"([\[*?])", r"[\1]", line).replace("…", "*")


@pytest.mark.parametrize("snippet", _listed([each for each in SNIPPETS if each.language in DATA]))
def test_data_snippet_is_read_by_its_reader(snippet: Snippet) -> None:
    if snippet.language != "markdown":
        parsed(snippet.language, snippet.text)
    assert "file" in snippet.markers, f"{snippet}: say which file this is, <!-- file: .jaato/… --> before it"


def test_no_snippet_is_skipped_silently() -> None:
    for snippet in SNIPPETS:
        known = snippet.language in ("python", "text", *DATA) or snippet.is_shell
        assert known, f"{snippet}: `{snippet.language}` is not a language that is checked; take `text` for pictures"
        assert set(snippet.markers) <= set(MARKERS), f"{snippet}: expected markers among {MARKERS}"
        typed = _TYPED.search(snippet.text) if snippet.language == "text" else None
        assert typed is None, f"{snippet}: `{typed[0]}` is a command, write it as one" if typed else ""
    marked = [f"{snippet}: {snippet.markers['not run']}" for snippet in SNIPPETS if "not run" in snippet.markers]
    assert len(marked) == NOT_RUN, "\n".join(marked)


def test_links_and_anchors_lead_somewhere() -> None:
    anchors = {page.path: page.anchors for page in PAGES}
    for page in PAGES:
        targets = [str(token.attrs["href"]) for token in page.inline("link_open")]
        targets += [str(token.attrs["src"]) for token in page.inline("image")]
        for target in targets:
            if target.startswith(("http://", "https://")):
                continue
            name, _, anchor = target.partition("#")
            place = (page.path.parent / name).resolve() if name else page.path
            assert place.exists(), f"{page.path.name} links to {target}, which does not exist"
            if anchor and place.suffix == ".md":
                assert anchor in anchors[place], f"{page.path.name} links to {target}: no such heading"


def test_named_tests_exist() -> None:
    """A link whose text is a test's name leads to a file that has this test."""
    proofs = 0
    for page in PAGES:
        for opened, text in _links(page):
            if (name := text.strip("`")).startswith("test_") and opened.endswith(".py"):
                proofs += 1
                assert name in _functions((page.path.parent / opened).resolve()), f"{page.path.name}: no {name} there"
    assert proofs >= 6, "README links its promises to the tests that prove them"


def _links(page: Page) -> list[tuple[str, str]]:
    found = []
    for block in page.tokens:
        children = block.children or []
        for opened, text in itertools.pairwise(children):
            if opened.type == "link_open":
                found.append((str(opened.attrs["href"]), text.content))
    return found


def _functions(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_commands_named_in_passing_exist() -> None:
    """`jaato …` within a sentence or a table: the command and its options are real."""
    for page in PAGES:
        for token in page.inline("code_inline"):
            program, *words = token.content.split()
            if program == "jaato":
                _require_command(words, f"{page.path.name}: `{token.content}`")
            elif program == "python" and words and "/" in words[0]:
                assert (ROOT / words[0]).exists(), f"{page.path.name}: there is no {words[0]}"


def _require_command(words: list[str], where: str) -> None:
    command: click.Command = cli
    with click.Context(command) as context:
        for word in words:
            plain = word.strip("[]….,").split("=")[0]
            if isinstance(command, click.Group) and plain and not word.startswith(("[", "-")) and plain.islower():
                found = command.get_command(context, plain)
                assert found is not None, f"{where}: there is no command {plain}"
                command = found
            elif plain.startswith("-") and plain != "--":
                options = {
                    text for param in command.get_params(context) for text in (*param.opts, *param.secondary_opts)
                }
                assert plain in options, f"{where}: there is no option {plain}"


def test_readme_has_the_two_commands_for_ci() -> None:
    text = (ROOT / "README.md").read_text()
    script = (ROOT / ".ci" / "run").read_text()
    for name in ("run", "test"):
        assert re.search(rf"^<!-- command: {name} -->\n\n    python3 -m venv ", text, re.MULTILINE)
        assert f"readme_command {name}" in script


def test_the_table_of_commands_is_complete() -> None:
    text = (ROOT / "README.md").read_text()
    for name in LazyGroup.COMMANDS:
        assert f"`jaato {name}" in text, f"README.md does not mention jaato {name}"


def test_every_page_can_be_found_from_the_readme() -> None:
    text = (ROOT / "README.md").read_text()
    for path in (ROOT / "docs").glob("*.md"):
        assert f"(docs/{path.name}" in text, f"README.md does not link to docs/{path.name}"


def test_architecture_names_every_module_of_the_core() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    for path in (ROOT / "shared").iterdir():
        name = path.name + ("/" if path.is_dir() else "")
        if not name.startswith(("_", ".")) and name != "py.typed":
            assert f"`{name}" in text, f"docs/architecture.md does not mention {name}"


def test_architecture_names_nothing_that_is_gone() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    for name in re.findall(r"`(\w+(?:\.py|/))`", text):
        found = [ROOT / name, ROOT / "shared" / name]
        assert any(path.exists() for path in found), f"docs/architecture.md mentions {name}, which does not exist"


def test_imports_point_the_way_of_the_picture() -> None:
    (picture,) = [each.text for each in SNIPPETS if each.page.name == "architecture.md" and each.language == "text"]
    layers = {name.strip(): number for number, line in enumerate(picture.splitlines()) for name in line.split("|")}
    graph = imports()
    assert layers.keys() <= graph.keys()
    for part, others in graph.items():
        for other in others:
            if part in layers and other in layers:
                assert layers[other] >= layers[part], f"{part} imports {other}, which stands above it"
    assert list(TopologicalSorter(graph).static_order()), "and never in a circle, or this raises"


def test_generated_pages_are_up_to_date() -> None:
    generator = ROOT / "docs" / "generate"
    done = subprocess.run([sys.executable, str(generator), "--check"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
