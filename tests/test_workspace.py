from __future__ import annotations

import ctypes
import os
import socket
import stat
import sys
import threading
from pathlib import Path

import pytest

from shared.errors import ToolError
from shared.workspace import FileMissing, Workspace


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret.txt").write_text("secret")
    return folder


@pytest.fixture
def root(tmp_path: Path, outside: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.txt").write_text("a")
    (folder / "link-out").symlink_to(outside)
    (folder / "link-file").symlink_to(outside / "secret.txt")
    (folder / "dangling").symlink_to(outside / "new.txt")
    (folder / "inner").symlink_to("sub/../a.txt")
    (folder / "loop").symlink_to("loop")
    return folder


@pytest.mark.parametrize(
    "path",
    [
        "../outside/secret.txt",
        "sub/../../outside/secret.txt",
        "/etc/passwd",
        "link-out/secret.txt",
        "link-file",
        "dangling",
        "sub/../link-out/../outside/secret.txt",
        "..",
        "~/x",
        "../work-other/x",
    ],
)
def test_nothing_outside_can_be_named(root: Path, path: str) -> None:
    with pytest.raises(ToolError, match="outside the workspace"):
        Workspace(root).locate(path)


@pytest.mark.parametrize("path", ["", "  ", "a\0b", "x" * 300 + "/y", "\udcff\ud800", "a.txt/b", "loop"])
def test_unusable_paths_are_sentences(root: Path, path: str) -> None:
    workspace = Workspace(root)
    with pytest.raises(ToolError):
        workspace.replace(workspace.locate(path), b"x")
    assert sorted(os.listdir(root / "sub")) == []


def test_a_neighbour_with_the_same_beginning_is_outside(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work-other").mkdir()
    with pytest.raises(ToolError, match="outside"):
        Workspace(tmp_path / "work").locate(str(tmp_path / "work-other"))


def test_links_inside_and_absolute_paths_inside_work(root: Path) -> None:
    workspace = Workspace(root)
    assert workspace.read(workspace.locate("inner"), limit=10) == b"a"
    assert workspace.locate(str(root / "a.txt")).shown == "a.txt"
    workspace.replace(workspace.locate("inner"), b"b")
    assert (root / "inner").is_symlink()
    assert (root / "a.txt").read_text() == "b"


def test_a_link_swapped_in_after_the_check_is_not_followed(root: Path, outside: Path) -> None:
    workspace = Workspace(root)
    file, nested = workspace.locate("a.txt"), workspace.locate("sub/secret.txt")
    (root / "a.txt").unlink()
    (root / "a.txt").symlink_to(outside / "secret.txt")
    (root / "sub").rmdir()
    (root / "sub").symlink_to(outside)
    for place in (file, nested):
        with pytest.raises(ToolError):
            workspace.read(place, limit=100)
        with pytest.raises(ToolError):
            workspace.replace(place, b"overwritten")
        with pytest.raises(ToolError):
            workspace.remove(place)
    assert (outside / "secret.txt").read_text() == "secret"
    assert os.listdir(outside) == ["secret.txt"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can swap two names at once")
def test_a_race_of_links_never_leads_outside(root: Path, outside: Path) -> None:
    """A thread swaps a folder for a link as fast as it can while files are read and written through it."""
    workspace = Workspace(root)
    (root / "sub" / "secret.txt").write_text("inside")
    (root / "evil").symlink_to(outside)
    stop = threading.Event()

    exchange = ctypes.CDLL(None, use_errno=True).renameat2
    names = (os.fsencode(root / "sub"), os.fsencode(root / "evil"))

    def swap() -> None:
        while not stop.is_set():
            assert exchange(-100, names[0], -100, names[1], 2) == 0  # both at once: RENAME_EXCHANGE

    thread = threading.Thread(target=swap)
    thread.start()
    seen = {"inside": 0, "refused": 0}
    try:
        for number in range(1500):
            try:
                place = workspace.locate("sub/secret.txt")
                if number % 2:
                    assert workspace.read(place, limit=100) == b"inside"
                else:
                    workspace.replace(place, b"inside")
                seen["inside"] += 1
            except ToolError:
                seen["refused"] += 1
    finally:
        stop.set()
        thread.join()
    assert (outside / "secret.txt").read_text() == "secret"
    assert os.listdir(outside) == ["secret.txt"]
    assert seen["inside"] > 0
    assert seen["refused"] > 0


def test_special_files_are_refused_without_waiting(root: Path) -> None:
    os.mkfifo(root / "fifo")
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(root / "sock"))
    workspace = Workspace(root)
    for name, kind in (("fifo", "a FIFO"), ("sock", "a socket"), ("sub", "a folder"), (".", "a folder")):
        with pytest.raises(ToolError, match=kind):
            workspace.read(workspace.locate(name), limit=10)
        with pytest.raises(ToolError, match=kind):
            workspace.replace(workspace.locate(name), b"x")
    server.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make devices")
def test_a_device_is_refused(root: Path) -> None:
    try:
        os.mknod(root / "zero", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("devices cannot be made here")
    with pytest.raises(ToolError, match="a device"):
        Workspace(root).read(Workspace(root).locate("zero"), limit=10)


def test_writing_makes_folders_keeps_the_mode_and_leaves_no_rest(root: Path) -> None:
    workspace = Workspace(root)
    workspace.replace(workspace.locate("x/y/z.txt"), b"1")
    assert (root / "x/y/z.txt").read_bytes() == b"1"
    (root / "a.txt").chmod(0o754)
    workspace.replace(workspace.locate("a.txt"), b"new")
    assert stat.S_IMODE((root / "a.txt").stat().st_mode) == 0o754
    with pytest.raises(ToolError):
        workspace.replace(workspace.locate("sub"), b"x")
    assert os.listdir(root / "x/y") == ["z.txt"]
    assert not [name for name in os.listdir(root) if name.endswith(".tmp")]


def test_a_hard_link_to_a_file_outside_is_not_written_through(root: Path, outside: Path) -> None:
    os.link(outside / "secret.txt", root / "hard")
    workspace = Workspace(root)
    workspace.replace(workspace.locate("hard"), b"changed")
    assert (outside / "secret.txt").read_text() == "secret"


def test_readers_see_the_old_or_the_new_content(root: Path) -> None:
    workspace = Workspace(root)
    place = workspace.locate("a.txt")
    contents = [b"x" * 200_000, b"y" * 200_000]
    workspace.replace(place, contents[0])
    stop = threading.Event()
    seen: set[bytes] = set()

    def read() -> None:
        while not stop.is_set():
            seen.add((root / "a.txt").read_bytes())

    thread = threading.Thread(target=read)
    thread.start()
    for number in range(200):
        workspace.replace(place, contents[number % 2])
    stop.set()
    thread.join()
    assert seen <= set(contents)


def test_missing_and_too_large(root: Path) -> None:
    workspace = Workspace(root)
    with pytest.raises(FileMissing, match=r"'no\.txt' does not exist"):
        workspace.read(workspace.locate("no.txt"), limit=10)
    (root / "big").write_bytes(b"x" * 11)
    with pytest.raises(ToolError, match="larger than 10 bytes"):
        workspace.read(workspace.locate("big"), limit=10)
    assert workspace.mode(workspace.locate("deep/no.txt")) is None


def test_no_descriptor_is_left_open(root: Path) -> None:
    workspace = Workspace(root)
    os.mkfifo(root / "fifo")
    before = len(os.listdir("/proc/self/fd"))
    for path in ("a.txt", "no/no.txt", "fifo", "sub", "a.txt/x"):
        place = workspace.locate(path)
        for attempt in (lambda p: workspace.read(p, limit=10), lambda p: workspace.remove(p), workspace.mode):
            try:
                attempt(place)
            except ToolError:
                continue
    assert len(os.listdir("/proc/self/fd")) == before
