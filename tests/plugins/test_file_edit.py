from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest
from support.plugin_calls import Caller, in_thread

from shared.cancel import CancelToken
from shared.errors import ConfigError
from shared.plugins.file_edit import create_plugin
from shared.plugins.file_edit.plugin import FileEditPlugin

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 50


@pytest.fixture
def files(tmp_path: Path) -> Caller:
    return configured(tmp_path)


def configured(folder: Path, **config: object) -> Caller:
    plugin = create_plugin()
    plugin.initialize(config or None)
    return Caller(plugin, folder)


def put(files: Caller, name: str, content: str | bytes) -> Path:
    path = files.workspace / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


# -- reading -------------------------------------------------------------------------------------


def test_read_numbers_the_lines(files: Caller) -> None:
    put(files, "a.txt", "one\r\ntwo\nthree")
    assert files.ok("read_file", path="a.txt") == "     1\tone\n     2\ttwo\n     3\tthree\n[end of file, 3 lines]"
    assert files.ok("read_file", path="a.txt", start_line=2, end_line=2) == "     2\ttwo"
    assert files.ok("read_file", path="a.txt", start_line=3, end_line=99).startswith("     3\tthree\n[end")


def test_read_past_the_end_and_backwards(files: Caller) -> None:
    put(files, "a.txt", "one\ntwo\n")
    assert "has 2 lines" in files.error("read_file", path="a.txt", start_line=3)
    assert "before start_line" in files.error("read_file", path="a.txt", start_line=2, end_line=1)
    assert "start_line" in files.error("read_file", path="a.txt", start_line=0)
    put(files, "empty", "")
    assert files.ok("read_file", path="empty") == "[the file is empty]"


def test_read_in_pages_gives_every_line_once(tmp_path: Path) -> None:
    files = configured(tmp_path, read_chars=300)
    put(files, "a.txt", "".join(f"line {n}\n" for n in range(1, 201)))
    seen, start = [], 1
    while start:
        text = files.ok("read_file", path="a.txt", start_line=start)
        *lines, last = text.split("\n")
        seen += [line.split("\t")[1] for line in lines]
        start = int(last.split("start_line=")[1].rstrip("]")) if "start_line=" in last else 0
    assert seen == [f"line {n}" for n in range(1, 201)]


def test_read_of_a_huge_file_with_huge_lines(files: Caller) -> None:
    path = files.workspace / "huge"
    with path.open("wb") as stream:
        stream.write(b"x" * 3_000_000 + b"\nsecond\n")
        stream.truncate(200_000_000)
    text = files.ok("read_file", path="huge", end_line=2)
    assert "2,997,999 more characters in this line" in text
    assert text.endswith("     2\tsecond")


def test_read_of_a_huge_file_is_cancelled(files: Caller) -> None:
    with (files.workspace / "huge").open("wb") as stream:
        stream.write(b"text\n" * 20_000)
        stream.truncate(4 << 30)
    token = CancelToken()
    thread, values = in_thread(lambda: files.run("read_file", token, path="huge", start_line=10_000_000))
    token.cancel()
    thread.join(20)
    assert "Cancelled" in values[0].text


@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252"])
def test_read_knows_encodings(files: Caller, codec: str) -> None:
    put(files, "a.txt", "grüße\n".encode(codec))
    assert files.ok("read_file", path="a.txt").startswith("     1\tgrüße\n")


def test_images_come_as_images(tmp_path: Path) -> None:
    files = configured(tmp_path, max_image_bytes=100)
    put(files, "a.png", PNG)
    result = files.run("read_file", path="a.png")
    assert result.attachments is not None
    assert (result.attachments[0].mime_type, result.attachments[0].data) == ("image/png", PNG)
    put(files, "b.png", PNG + b"\0" * 100)
    assert "too large" in files.error("read_file", path="b.png")


def test_binary_missing_folder_and_fifo(files: Caller) -> None:
    put(files, "b.bin", b"\0\1\2")
    os.mkfifo(files.workspace / "fifo")
    assert "binary file of 3 bytes" in files.error("read_file", path="b.bin")
    assert "does not exist" in files.error("read_file", path="nope")
    assert "is a folder" in files.error("read_file", path=".")
    assert "is a FIFO" in files.error("read_file", path="fifo")


# -- leaving the workspace -----------------------------------------------------------------------

PATHS = ["../out/secret.txt", "/etc/hostname", "link/secret.txt", "link-file", "~/x", "sub/../../out/secret.txt"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("read_file", {}),
        ("write_file", {"content": "x"}),
        ("edit_file", {"old_text": "secret", "new_text": "x"}),
        ("undo_edit", {}),
        ("list_files", {}),
        ("search_files", {"pattern": "secret"}),
        ("search_files", {"pattern": "s.*t"}),
    ],
)
def test_no_tool_leaves_the_workspace(tmp_path: Path, tool: str, args: dict[str, str], path: str) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "secret.txt").write_text("secret")
    work = tmp_path / "work"
    (work / "sub").mkdir(parents=True)
    (work / "link").symlink_to(out)
    (work / "link-file").symlink_to(out / "secret.txt")
    files = configured(work)
    assert "outside the workspace" in files.error(tool, path=path, **args)
    plugin = files.plugin
    assert isinstance(plugin, FileEditPlugin)
    info = plugin.format_permission_request(tool, {"path": path, **args}, "console", context=files.context())
    assert info is None or "secret" not in info.details.replace("secret.txt", "")
    assert (out / "secret.txt").read_text() == "secret"


def test_listing_and_searching_do_not_follow_links(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/secret.txt").write_text("secret")
    work = tmp_path / "work"
    work.mkdir()
    (work / "link").symlink_to(tmp_path / "out")
    (work / "self").symlink_to(work)
    files = configured(work)
    put(files, "own.txt", "secret of mine")
    assert files.ok("list_files") == "own.txt"
    assert files.ok("search_files", pattern="secret") == "own.txt:1: secret of mine"


# -- writing -------------------------------------------------------------------------------------


def test_write_creates_and_replaces(files: Caller) -> None:
    assert files.ok("write_file", path="new/dir/a.txt", content="one\ntwo") == "Created new/dir/a.txt (2 lines)."
    path = files.workspace / "new/dir/a.txt"
    path.chmod(0o750)
    assert files.ok("write_file", path="new/dir/a.txt", content="") == "Replaced new/dir/a.txt (0 lines)."
    assert path.read_bytes() == b""
    assert stat.S_IMODE(path.stat().st_mode) == 0o750
    assert "nothing was changed" in files.ok("write_file", path="new/dir/a.txt", content="")


def test_write_of_what_cannot_be_written(files: Caller) -> None:
    put(files, "file", "x")
    assert "not a folder" in files.error("write_file", path="file/below", content="x")
    assert "is a folder" in files.error("write_file", path=".", content="x")
    assert "no valid Unicode" in files.error("write_file", path="a", content="\ud800")
    assert not (files.workspace / "a").exists()


# -- editing -------------------------------------------------------------------------------------


def test_edit_replaces_what_is_unique(files: Caller) -> None:
    path = put(files, "a.py", "def f():\n    return 1\n")
    files.ok("edit_file", path="a.py", old_text="return 1", new_text="return 2")
    assert path.read_text() == "def f():\n    return 2\n"


def test_edit_of_several_places_needs_replace_all(files: Caller) -> None:
    path = put(files, "a.txt", "x\ny\nx\n")
    assert "occurs 2 times in 'a.txt' (lines 1, 3)" in files.error(
        "edit_file", path="a.txt", old_text="x", new_text="z"
    )
    files.ok("edit_file", path="a.txt", old_text="x", new_text="xx", replace_all=True)
    assert path.read_text() == "xx\ny\nxx\n"


@pytest.mark.parametrize(
    ("content", "old", "new", "expected"),
    [
        (b"a\r\nb\r\nc\r\n", "a\nb", "1\n2\n3", b"1\r\n2\r\n3\r\nc\r\n"),
        (b"a\r\nb\r\nc\r\n", "b", "x\ny", b"a\r\nx\r\ny\r\nc\r\n"),
        (b"a\r\nb\r\nc\r\n", "a\r\nb", "1\r\n2", b"1\r\n2\r\nc\r\n"),
        (b"a\r\nb\nc\nd\n", "b\nc", "1\n2", b"a\r\n1\n2\nd\n"),
        (b"a\r\nb\nc\nd\n", "a\nb", "1\n2", b"1\r\n2\nc\nd\n"),
        (b"a\nb\n", "b\n", "", b"a\n"),
        (b"\xef\xbb\xbfa\nb\n", "a", "c", b"\xef\xbb\xbfc\nb\n"),
        ("ä\nb\n".encode("utf-16"), "ä", "ö", "ö\nb\n".encode("utf-16")),
        (b"caf\xe9\n", "caf", "th", b"th\xe9\n"),
        (b"\x93quoted\x94\n", "quoted", "said", b"\x93said\x94\n"),
        (b"\x81\x8d\n?", "?", "!", b"\x81\x8d\n!"),
        (b"a\rb\rc", "b", "x", b"a\rx\rc"),
    ],
)
def test_edit_keeps_line_ends_and_encoding(files: Caller, content: bytes, old: str, new: str, expected: bytes) -> None:
    path = put(files, "a.txt", content)
    files.ok("edit_file", path="a.txt", old_text=old, new_text=new)
    assert path.read_bytes() == expected


def test_edit_with_characters_the_encoding_lacks(files: Caller) -> None:
    path = put(files, "a.txt", b"caf\xe9\n")
    assert "cannot be written in the file's encoding, cp1252" in files.error(
        "edit_file", path="a.txt", old_text="caf", new_text="\u65e5"
    )
    assert path.read_bytes() == b"caf\xe9\n"


def test_edit_says_what_was_probably_meant(files: Caller) -> None:
    put(files, "a.py", "import os\n\ndef area(radius):\n    return 3.14 * radius\n")
    white = files.error("edit_file", path="a.py", old_text="def area(radius):\n  return 3.14 * radius", new_text="x")
    assert "only the white space differs at line 3" in white
    assert "     4\t    return 3.14 * radius" in white
    close = files.error("edit_file", path="a.py", old_text="return 3.15 * radius", new_text="x")
    assert "most similar part is at line 4" in close
    assert "Nothing similar" in files.error("edit_file", path="a.py", old_text="zebra crossing 77", new_text="x")


def test_edit_that_makes_no_sense(files: Caller) -> None:
    put(files, "a.txt", "a\n")
    put(files, "b.bin", b"\0a")
    assert "is empty" in files.error("edit_file", path="a.txt", old_text="", new_text="x")
    assert "are the same" in files.error("edit_file", path="a.txt", old_text="a", new_text="a")
    assert "binary" in files.error("edit_file", path="b.bin", old_text="a", new_text="b")
    assert "write_file" in files.error("edit_file", path="none", old_text="a", new_text="b")


def test_many_edits_of_one_file_by_many_agents_are_all_kept(tmp_path: Path) -> None:
    agents = [configured(tmp_path) for _ in range(8)]  # instances of their own, as with settings of their own
    path = put(agents[0], "a.txt", "".join(f"<{n}>\n" for n in range(8 * 20)))
    failures: list[str] = []

    def work(number: int) -> None:
        for step in range(20):
            which = number * 20 + step
            result = agents[number].run("edit_file", path="a.txt", old_text=f"<{which}>", new_text=f"done {which}")
            if result.is_error:
                failures.append(result.text)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    assert path.read_text() == "".join(f"done {n}\n" for n in range(8 * 20))


# -- undo ----------------------------------------------------------------------------------------


def test_undo_goes_back_step_by_step(files: Caller) -> None:
    path = put(files, "a.txt", b"one\r\n")
    path.chmod(0o640)
    files.ok("edit_file", path="a.txt", old_text="one", new_text="two")
    files.ok("write_file", path="a.txt", content="three")
    files.ok("write_file", path="b.txt", content="new")
    assert files.ok("undo_edit") == "Removed b.txt."
    assert not (files.workspace / "b.txt").exists()
    assert files.ok("undo_edit") == "Restored a.txt."
    assert path.read_bytes() == b"two\r\n"
    files.ok("undo_edit")
    assert path.read_bytes() == b"one\r\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert "no change of yours" in files.error("undo_edit")


def test_undo_of_one_file(files: Caller) -> None:
    files.ok("write_file", path="a.txt", content="a")
    files.ok("write_file", path="b.txt", content="b")
    assert files.ok("undo_edit", path="a.txt") == "Removed a.txt."
    assert "no change of yours to 'a.txt'" in files.error("undo_edit", path="a.txt")


def test_undo_refuses_when_the_file_changed_since(files: Caller) -> None:
    put(files, "a.txt", "old")
    files.ok("write_file", path="a.txt", content="mine")
    (files.workspace / "a.txt").write_text("somebody else's")
    assert "was changed since" in files.error("undo_edit")
    assert (files.workspace / "a.txt").read_text() == "somebody else's"
    (files.workspace / "a.txt").unlink()
    assert "was changed since" in files.error("undo_edit")


def test_an_agent_undoes_only_its_own_changes(files: Caller) -> None:
    other = Caller(files.plugin, files.workspace, agent_id="other")
    files.ok("write_file", path="a.txt", content="main's")
    assert "no change of yours" in other.error("undo_edit")
    other.ok("write_file", path="b.txt", content="other's")
    assert files.ok("undo_edit") == "Removed a.txt."


def test_undo_does_not_go_through_a_link_put_in_the_files_place(tmp_path: Path) -> None:
    work, out = tmp_path / "work", tmp_path / "out"
    work.mkdir()
    out.mkdir()
    (out / "a.txt").write_text("new")
    files = configured(work)
    put(files, "sub/a.txt", "old")
    files.ok("write_file", path="sub/a.txt", content="new")
    (work / "sub").rename(work / "aside")
    (work / "sub").symlink_to(out)
    files.error("undo_edit")
    assert (out / "a.txt").read_text() == "new"


# -- listing and searching -----------------------------------------------------------------------


@pytest.fixture
def tree(files: Caller) -> Caller:
    for name in (
        "a.py",
        "src/b.py",
        "src/deep/c.ts",
        "src/deep/d.tsx",
        "docs/e.md",
        "node_modules/x.js",
        ".git/config",
    ):
        put(files, name, f"name = '{name}'\nfoo(bar)\n")
    return files


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({}, "a.py docs/e.md src/b.py src/deep/c.ts src/deep/d.tsx"),
        ({"pattern": "*.py"}, "a.py src/b.py"),
        ({"pattern": "src/*.py"}, "src/b.py"),
        ({"pattern": "src/**"}, "src/b.py src/deep/c.ts src/deep/d.tsx"),
        ({"pattern": "**/deep/*.{ts,tsx}"}, "src/deep/c.ts src/deep/d.tsx"),
        ({"pattern": "./a.py"}, "a.py"),
        ({"pattern": "*.ts", "path": "src"}, "src/deep/c.ts"),
        ({"pattern": "[ab].py"}, "a.py src/b.py"),
        ({"path": "docs"}, "docs/e.md"),
    ],
)
def test_list_files(tree: Caller, args: dict[str, str], expected: str) -> None:
    assert tree.ok("list_files", **args).split("\n") == expected.split()


def test_list_is_capped_and_says_so(tmp_path: Path) -> None:
    files = configured(tmp_path, max_listed=3, ignore=["*.log"])
    for name in ("a", "b", "c", "d", "e.log"):
        put(files, name, "")
    assert files.ok("list_files").split("\n")[:3] == ["a", "b", "c"]
    assert "only the first 3" in files.ok("list_files")
    assert files.ok("list_files", pattern="[ab]") == "a\nb"
    assert "No file" in files.ok("list_files", pattern="*.log")


def test_names_that_are_no_text_or_fake_a_line_are_shown_escaped(files: Caller) -> None:
    put(files, "a\nb.txt", "x")
    (Path(os.fsdecode(os.fsencode(files.workspace) + b"/\xff.txt"))).write_text("x")
    assert files.ok("list_files").encode() == b"a\\nb.txt\n\\udcff.txt"


def test_a_very_deep_tree_does_not_break_the_walk(files: Caller) -> None:
    here = os.open(files.workspace, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    put(files, "top.txt", "x")
    assert files.ok("list_files") == "top.txt"
    _remove_deep(files.workspace / "d")


def _remove_deep(top: Path) -> None:
    """Take the chain of folders apart from its top: it is too deep for the usual ways."""
    while (top / "d").exists():
        os.rename(top / "d", top.parent / "next")
        os.rmdir(top)
        os.rename(top.parent / "next", top)
    os.rmdir(top)


@pytest.mark.parametrize("pattern", ["foo", r"fo+\("])
def test_search(tree: Caller, pattern: str) -> None:
    found = tree.ok("search_files", pattern=pattern).split("\n")
    assert found[:2] == ["a.py:2: foo(bar)", "docs/e.md:2: foo(bar)"]
    assert len(found) == 5
    assert tree.ok("search_files", pattern=pattern, glob="*.ts") == "src/deep/c.ts:2: foo(bar)"
    assert tree.ok("search_files", pattern=pattern, path="src/b.py") == "src/b.py:2: foo(bar)"
    assert tree.ok("search_files", pattern=pattern.upper().replace("\\(", "\\("), ignore_case=True).count("\n") == 4
    assert "only the first 2" in tree.ok("search_files", pattern=pattern, max_results=2)
    assert tree.ok("search_files", pattern="nowhere" + pattern) == "No line matches."


def test_search_skips_binary_and_shows_a_part_of_long_lines(files: Caller) -> None:
    put(files, "a.bin", b"needle\0")
    put(files, "b.txt", "x" * 5_000 + "needle" + "y" * 5_000)
    found = files.ok("search_files", pattern="needle")
    assert found.startswith("b.txt:1: ...")
    assert "needle" in found
    assert len(found) < 400


@pytest.mark.parametrize("pattern", ["(", "[", "*x", "(?P<n>a)(?P<n>b)", "a{5,2}"])
def test_search_for_a_broken_pattern(tree: Caller, pattern: str) -> None:
    assert "not a valid regular expression" in tree.error("search_files", pattern=pattern)


def test_a_catastrophic_pattern_is_stopped(tmp_path: Path) -> None:
    files = configured(tmp_path, search_timeout_seconds=3)
    put(files, "a.txt", "early aaa!\n")
    put(files, "b.txt", "a" * 40 + "!\n")
    assert "took longer than 3 s" in files.error("search_files", pattern="^(a+)+$")
    partial = files.ok("search_files", pattern="early|^(a+)+$")
    assert partial.startswith("a.txt:1: early aaa!")
    assert "stopped after 3 s" in partial


def test_a_catastrophic_search_is_cancelled(files: Caller) -> None:
    put(files, "b.txt", "a" * 60 + "!\n")
    token = CancelToken()
    thread, values = in_thread(lambda: files.run("search_files", token, pattern="^(a+)+$"))
    token.cancel()
    thread.join(15)
    assert "Cancelled" in values[0].text


def test_a_simple_search_has_a_time_limit_too(tmp_path: Path) -> None:
    files = configured(tmp_path, search_timeout_seconds=1e-9)
    put(files, "a.txt", "a\n")
    assert "took longer" in files.error("search_files", pattern="a")


def test_searching_never_runs_code_of_the_workspace(files: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("re.py", "json.py", "sitecustomize.py", "usercustomize.py", "fnmatch.py", "shared/__init__.py"):
        put(files, name, "open('pwned', 'w').write('x'); raise SystemExit('needle')\n")
    monkeypatch.chdir(files.workspace)
    monkeypatch.syspath_prepend("")
    assert files.ok("search_files", pattern="need+le").count("\n") == 5
    assert not list(files.workspace.rglob("pwned"))


# -- permission ----------------------------------------------------------------------------------


def show(files: Caller, tool: str, **args: object) -> tuple[str, str]:
    plugin = files.plugin
    assert isinstance(plugin, FileEditPlugin)
    info = plugin.format_permission_request(tool, args, "console", context=files.context())
    assert info is not None
    return info.summary, info.details


def test_the_prompt_shows_the_diff(files: Caller) -> None:
    put(files, "a.txt", "one\ntwo\nthree\n")
    edit = {"path": "a.txt", "old_text": "two", "new_text": "2"}
    summary, details = show(files, "edit_file", **edit)
    assert summary == "Change a.txt (+1 -1 lines)"
    assert details.split("\n") == ["--- a/a.txt", "+++ b/a.txt", "@@ -1,3 +1,3 @@", " one", "-two", "+2", " three"]
    assert (files.workspace / "a.txt").read_text() == "one\ntwo\nthree\n"
    files.ok("edit_file", **edit)
    assert (files.workspace / "a.txt").read_text() == "one\n2\nthree\n"
    assert show(files, "undo_edit")[1].endswith("-2\n+two\n three")


def test_the_prompt_for_new_files_and_failing_edits(files: Caller) -> None:
    assert show(files, "write_file", path="new.txt", content="a\nb\n") == (
        "Create new.txt (+2 -0 lines)",
        "--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1,2 @@\n+a\n+b",
    )
    files.ok("write_file", path="new.txt", content="a\n")
    assert show(files, "undo_edit")[0] == "Delete new.txt (+0 -1 lines)"
    assert show(files, "edit_file", path="new.txt", old_text="zzz", new_text="y")[0] == "edit_file will fail"


def test_the_prompt_hides_nothing_and_stays_bounded(files: Caller) -> None:
    assert "\x1b" not in show(files, "write_file", path="a", content="\x1b[2Kevil\r\u202e\n")[1]
    summary, details = show(files, "write_file", path="a", content="".join(f"{n}\n" for n in range(50_000)))
    assert summary == "Create a (+50000 -0 lines)"
    assert "more lines of the diff are not shown" in details
    assert details.count("\n") == 400
    put(files, "bin", b"\0\1")
    assert show(files, "write_file", path="bin", content="x") == ("Change bin", "binary file, 2 → 1 bytes")


def test_the_coarse_diff_of_long_files_is_right(files: Caller) -> None:
    lines = [f"{n}\n" for n in range(30_000)]
    put(files, "a", "".join(lines))
    lines[15_000] = "changed\n"
    details = show(files, "write_file", path="a", content="".join(lines))[1].split("\n")
    assert details[2] == "@@ -14998,7 +14998,7 @@"
    assert details[6:8] == ["-15000", "+changed"]
    assert details[-1] == " 15003"


# -- the plugin ----------------------------------------------------------------------------------


def test_schemas_and_approvals(files: Caller) -> None:
    plugin = files.plugin
    shapes = {
        s.name: (list(s.parameters["properties"]), s.parameters.get("required", [])) for s in plugin.get_tool_schemas()
    }
    assert shapes == {
        "read_file": (["path", "start_line", "end_line"], ["path"]),
        "write_file": (["path", "content"], ["path", "content"]),
        "edit_file": (["path", "old_text", "new_text", "replace_all"], ["path", "old_text", "new_text"]),
        "undo_edit": (["path"], []),
        "list_files": (["pattern", "path"], []),
        "search_files": (["pattern", "path", "glob", "ignore_case", "max_results"], ["pattern"]),
    }
    assert list(shapes) == [tool.name for tool in plugin.tools()] == [tool.name for tool in plugin.tools()]
    assert plugin.get_auto_approved_tools() == ["read_file", "list_files", "search_files"]
    assert all(schema.description for schema in plugin.get_tool_schemas())


@pytest.mark.parametrize("config", [{"wrkspace": "."}, {"read_chars": "many"}, {"ignore": "x"}, {"max_results": 0}])
def test_wrong_settings(config: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="plugin 'file_edit'"):
        create_plugin().initialize(config)


def test_configured_workspace_wins(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    files = configured(tmp_path, workspace=str(tmp_path / "other"))
    files.ok("write_file", path="a.txt", content="x")
    assert (tmp_path / "other/a.txt").exists()
