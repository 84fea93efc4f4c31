"""Skills of many authors: read as expected, and judged like the reference validator does in strict mode."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from skills_ref import validate as reference
from support.skills import manager_in, write_skill

from shared.skills.validation import validate

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
EXPECTED = CORPUS / "expected.json"
CASES: list[dict[str, Any]] = (
    [each for each in json.loads(EXPECTED.read_text())["files"] if each["kind"] == "skill"] if EXPECTED.exists() else []
)
needs_corpus = pytest.mark.skipif(not CASES, reason="the corpus does not lie beside this checkout")


@needs_corpus
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["path"])
def test_corpus(case: dict[str, Any]) -> None:
    report = validate(CORPUS / case["path"])
    info, found = report.info, {problem.code for problem in report.problems if problem.severity != "info"}
    assert set(case["why"]) <= found
    assert (info is None) == (case["expect"] == "reject")
    if info is None:
        return
    assert bool(found) == (case["expect"] == "load_with_warning")
    assert info.name == case["name"]
    assert " ".join(info.description.split())[:60].rstrip() == case["description_prefix"].rstrip()
    assert info.allowed_tools == (None if case["tools"] is None else tuple(case["tools"]))
    requires = case.get("requires")
    if requires is not None:
        assert info.requires is not None
        assert list(info.requires.bins) == requires.get("bins", [])
        assert list(info.requires.os) == requires.get("os", [])
        assert info.requires.namespace == requires["namespace"]


def complaints(folder: Path) -> int:
    try:
        return len(reference(folder))
    except Exception:  # it is known to crash on some texts, which is no pass
        return 1


@needs_corpus
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["path"])
def test_strict_mode_agrees_with_the_reference_on_the_corpus(case: dict[str, Any]) -> None:
    folder = (CORPUS / case["path"]).parent
    own = [problem for problem in validate(folder, strict=True).problems if problem.code.startswith("strict-")]
    assert len(own) == complaints(folder), own


TEXTS = {
    "fine": "name: demo\ndescription: x",
    "every field": "name: demo\ndescription: x\nlicense: MIT\ncompatibility: y\nallowed-tools: Read\nmetadata:\n  a: b",
    "folded": "name: demo\ndescription: >-\n  x\n  y",
    "literal": "name: demo\ndescription: |\n  x\n  y",
    "number": "name: demo\ndescription: 12",
    "boolean": "name: demo\ndescription: true",
    "date": "name: demo\ndescription: 2026-01-01",
    "null": "name: demo\ndescription:",
    "null name": "name:\ndescription: x",
    "tilde": "name: demo\ndescription: ~",
    "quoted empty": 'name: demo\ndescription: ""',
    "flow list": "name: demo\ndescription: x\nallowed-tools: [a, b]",
    "flow object": "name: demo\ndescription: x\nmetadata: {a: b}",
    "block list": "name: demo\ndescription: x\nallowed-tools:\n  - a",
    "list description": "name: demo\ndescription:\n  - a",
    "map description": "name: demo\ndescription:\n  a: b",
    "map compatibility": "name: demo\ndescription: x\ncompatibility:\n  a: b",
    "twice": "name: demo\nname: demo\ndescription: x",
    "anchor": "name: demo\ndescription: &a x",
    "alias": "name: &a demo\ndescription: *a",
    "tag": "name: demo\ndescription: !!str x",
    "colon": "name: demo\ndescription: a: b",
    "dashes inside": "name: demo\ndescription: a --- b",
    "comment": "# hi\nname: demo # there\ndescription: x",
    "empty": "",
    "scalar": "just text",
    "list": "- a",
    "extra": "name: demo\ndescription: x\nversion: 1.0",
    "upper": "name: Demo\ndescription: x",
    "edges": "name: -demo-\ndescription: x",
    "double": "name: de--mo\ndescription: x",
    "underscore": "name: de_mo\ndescription: x",
    "mismatch": "name: other\ndescription: x",
    "everything": "name: -Other_--Name-\ndescription: x",
    "unicode": "name: d\u00e9mo\ndescription: x",
    "compat char": "name: \uff44emo\ndescription: x",
    "long name": f"name: {'a' * 65}\ndescription: x",
    "long": f"name: demo\ndescription: {'x' * 1025}\ncompatibility: {'y' * 501}",
    "nothing": "license: MIT",
    "uneven": "name: demo\ndescription: x\nmetadata:\n  a:\n    b: c\nother:\n    d: e",
    "tab": "name: demo\ndescription:\tx",
    "nested": "name: demo\ndescription: x\nmetadata:\n  a:\n    b: c",
}


@pytest.mark.parametrize("label", TEXTS)
def test_strict_mode_agrees_with_the_reference_on_shapes(label: str, tmp_path: Path) -> None:
    for number, text in enumerate((f"---\n{TEXTS[label]}\n---\nBody", f"---\r\n{TEXTS[label]}\r\n---\r\nBody")):
        folder = tmp_path / str(number) / "demo"
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_bytes(text.encode())
        own = [problem for problem in validate(folder, strict=True).problems if problem.code.startswith("strict-")]
        assert len(own) == complaints(folder), own


@pytest.mark.parametrize(
    "text",
    [
        "text",
        "---\nname: demo\n",
        "\ufeff---\nname: demo\ndescription: x\n---\n",
        "",
        "\n---\nname: demo\ndescription: x\n---\n",
    ],
)
def test_strict_mode_agrees_on_fences(text: str, tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    folder.mkdir()
    (folder / "SKILL.md").write_text(text, encoding="utf-8")
    own = [problem for problem in validate(folder, strict=True).problems if problem.code.startswith("strict-")]
    assert len(own) == complaints(folder), own


def test_what_is_in_memory_of_a_skill_is_small(tmp_path: Path) -> None:
    description = "Does a certain thing. " * 8
    for number in range(200):
        write_skill(tmp_path / "project/.jaato/skills", f"s{number}", "body " * 2000, description=description)
    manager = manager_in(tmp_path)
    manager_in(tmp_path).discover()  # so that what is loaded once does not count
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    assert len(manager.discover()) == 200
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (after - before) / 200 < 1200  # a kilobyte each, and the tables around them
