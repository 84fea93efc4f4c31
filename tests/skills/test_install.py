"""Installing skills: from every kind of source, and nothing left behind by hostile ones."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from support.skills import manager_in, write_skill

from shared.cancel import CancelToken
from shared.errors import CancelledException, SkillConflictError, SkillError, SkillLoadError, SkillNotFoundError
from shared.skills import SkillManager, TrustLevel
from shared.skills.install import Installer

SKILL = b"---\nname: packed\ndescription: Came in a box.\n---\nUse it.\n"


class Site:
    """A loopback server: path → status, headers and body; what was asked for is noted."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.asked: list[str] = []
        self.hang = threading.Event()
        self.reached = threading.Event()
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.asked.append(self.path)
                site.reached.set()
                if self.path == "/hang":
                    site.hang.wait(20)
                status, headers, body = site.answers.get(self.path, (404, {}, b""))
                self.send_response(status)
                for key, value in {"content-length": str(len(body)), **headers}.items():
                    self.send_header(key, value)
                self.end_headers()
                try:
                    self.wfile.write(body)
                except OSError:
                    pass

            def log_message(self, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.hang.set()
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.close()


@pytest.fixture
def manager(tmp_path: Path) -> SkillManager:
    return manager_in(tmp_path)


def installer(manager: SkillManager, clawhub: str = "http://127.0.0.1:1") -> Installer:
    return Installer(manager.config.user_dir, manager.record, clawhub=clawhub)


def zipped(*entries: tuple[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries:
            archive.writestr(name, data)
    return buffer.getvalue()


def tarred(*members: tarfile.TarInfo | tuple[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for each in members:
            if isinstance(each, tarfile.TarInfo):
                archive.addfile(each)
            else:
                info = tarfile.TarInfo(each[0])
                info.size = len(each[1])
                archive.addfile(info, io.BytesIO(each[1]))
    return buffer.getvalue()


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def zip_link() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("SKILL.md", SKILL)
        info = zipfile.ZipInfo("passwd")
        info.create_system, info.external_attr = 3, 0o120777 << 16
        archive.writestr(info, "/etc/passwd")
    return buffer.getvalue()


def encrypted() -> bytes:
    data = bytearray(zipped(("SKILL.md", SKILL)))
    data[6] |= 1
    at = data.index(b"PK\x01\x02")
    data[at + 8] |= 1
    return bytes(data)


def nothing_left(manager: SkillManager) -> bool:
    target = manager.config.user_dir
    return not target.exists() or os.listdir(target) == []


GOOD: dict[str, bytes] = {
    "zip at the top": zipped(("SKILL.md", SKILL), ("references/a.md", b"A")),
    "zip in a folder": zipped(("packed-main/SKILL.md", SKILL), ("packed-main/references/a.md", b"A")),
    "tar": tarred(("./SKILL.md", SKILL), special("references", tarfile.DIRTYPE), ("references/a.md", b"A")),
    "tar.gz": gzip.compress(tarred(("x/SKILL.md", SKILL), ("x/references/a.md", b"A"))),
    "lone file": SKILL,
    "lower case": zipped(("skill.md", SKILL)),
    "mac rubbish": zipped(("SKILL.md", SKILL), ("__MACOSX/._SKILL.md", b"x")),
}


@pytest.mark.parametrize("label", GOOD)
def test_an_archive_is_installed_untrusted(label: str, manager: SkillManager, tmp_path: Path) -> None:
    archive = tmp_path / "archive.bin"
    archive.write_bytes(GOOD[label])
    done = installer(manager).install(str(archive))
    assert (done.info.name, Path(done.folder)) == ("packed", manager.config.user_dir / "packed")
    assert manager.activate("packed") == "Use it."
    [info] = manager.list()
    assert info.trust_level is TrustLevel.UNTRUSTED
    manager.trust("packed")
    assert manager.list()[0].is_trusted
    assert sorted(os.listdir(manager.config.user_dir)) == ["packed"]


def _deep() -> bytes:
    return zipped(("SKILL.md", SKILL), ("/".join("abcdefghijklmnop") + "/x", b""))


BOMB = gzip.compress(b"\0" * (60 << 20))
HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "zip path escape": (lambda: zipped(("SKILL.md", SKILL), ("../evil", b"x")), "leads out"),
    "zip inner escape": (lambda: zipped(("SKILL.md", SKILL), ("a/../../evil", b"x")), "leads out"),
    "zip absolute": (lambda: zipped(("SKILL.md", SKILL), ("/etc/evil", b"x")), "absolute"),
    "zip backslash": (lambda: zipped(("SKILL.md", SKILL), ("..\\evil", b"x")), "backslash"),
    "zip drive": (lambda: zipped(("SKILL.md", SKILL), ("C:evil", b"x")), "characters"),
    "zip control character": (lambda: zipped(("SKILL.md", SKILL), ("a\x1bb", b"x")), "characters"),
    "zip link": (zip_link, "link"),
    "zip encrypted": (encrypted, "encrypted"),
    "zip twice": (lambda: zipped(("SKILL.md", SKILL), ("a", b"1"), ("a", b"2")), "two entries"),
    "zip case trick": (lambda: zipped(("SKILL.md", SKILL), ("skill.md", b"2")), "two entries"),
    "zip case of folders": (lambda: zipped(("SKILL.md", SKILL), ("A/x", b"1"), ("a/y", b"2")), "two entries"),
    "zip unicode trick": (lambda: zipped(("SKILL.md", SKILL), ("\u00e9", b"1"), ("e\u0301", b"2")), "two entries"),
    "zip file and folder": (lambda: zipped(("SKILL.md", SKILL), ("a", b"1"), ("a/b", b"2")), "two entries"),
    "zip trailing dot": (lambda: zipped(("SKILL.md", SKILL), ("a./b", b"1")), "ends in a dot"),
    "zip bomb": (lambda: zipped(("SKILL.md", SKILL), ("big", b"\0" * (40 << 20))), "more than 30 MiB"),
    "zip too many": (lambda: zipped(("SKILL.md", SKILL), *((f"f{n}", b"") for n in range(1001))), "1,000 files"),
    "zip deep": (_deep, "too deep"),
    "zip cut off": (lambda: zipped(("SKILL.md", SKILL))[:-30], "damaged"),
    "tar path escape": (lambda: tarred(("SKILL.md", SKILL), ("../evil", b"x")), "leads out"),
    "tar absolute": (lambda: tarred(("SKILL.md", SKILL), ("/tmp/evil", b"x")), "absolute"),
    "tar symlink": (lambda: tarred(("SKILL.md", SKILL), special("l", tarfile.SYMTYPE, "/etc")), "link"),
    "tar hard link": (lambda: tarred(("SKILL.md", SKILL), special("l", tarfile.LNKTYPE, "SKILL.md")), "link"),
    "tar device": (lambda: tarred(("SKILL.md", SKILL), special("d", tarfile.CHRTYPE)), "special"),
    "tar fifo": (lambda: tarred(("SKILL.md", SKILL), special("p", tarfile.FIFOTYPE)), "special"),
    "tar.gz bomb": (lambda: BOMB, "more than 30 MiB"),
    "tar.gz cut off": (lambda: gzip.compress(tarred(("SKILL.md", SKILL)))[:-20], "damaged"),
    "huge": (lambda: b"PK\x03\x04" + os.urandom(11 << 20), "larger than 10 MiB"),
    "wrong type": (lambda: b"\x7fELF\x02\x01", "neither"),
    "empty": (lambda: b"", "neither"),
    "html": (lambda: b"<!doctype html><p>login", "neither"),
    "no skill": (lambda: zipped(("README.md", b"x")), r"no SKILL\.md"),
    "several skills": (lambda: zipped(("a/SKILL.md", SKILL), ("b/SKILL.md", SKILL)), "2 skills"),
    "bad skill": (lambda: zipped(("SKILL.md", b"---\nname: x\n---\n")), "description"),
    "bad name": (lambda: zipped(("SKILL.md", b"---\nname: ../up\ndescription: x\n---\n")), "cannot name a skill"),
    "hidden name": (lambda: zipped(("SKILL.md", b"---\nname: .hidden\ndescription: x\n---\n")), "name of a folder"),
    "not text": (lambda: zipped(("SKILL.md", b"---\nname: \xff\n---\n")), "UTF-8"),
}


@pytest.mark.filterwarnings("ignore:Duplicate name")  # from making the archive
@pytest.mark.parametrize("label", HOSTILE)
def test_a_hostile_archive_leaves_nothing_behind(label: str, manager: SkillManager, tmp_path: Path) -> None:
    make, reason = HOSTILE[label]
    archive = tmp_path / "archive.bin"
    archive.write_bytes(make())
    before = sorted(str(path) for path in tmp_path.rglob("*"))
    with pytest.raises(SkillError, match=reason):
        installer(manager).install(str(archive))
    assert nothing_left(manager)
    assert sorted(str(path) for path in tmp_path.rglob("*")) == before


def test_a_folder_is_copied_without_links(manager: SkillManager, tmp_path: Path) -> None:
    place = write_skill(tmp_path / "from", "packed", "Use it.")
    (place / "run.sh").write_text("echo hi")
    (place / "run.sh").chmod(0o755)
    done = installer(manager).install(str(place))
    assert os.access(Path(done.folder) / "run.sh", os.X_OK)
    (place / "link").symlink_to("/etc/passwd")
    with pytest.raises(SkillLoadError, match="is a link"):
        installer(manager).install(str(place), replace=True)
    assert manager.activate("packed") == "Use it."


def test_nothing_is_overwritten_silently_and_a_replacement_is_untrusted_again(
    manager: SkillManager, tmp_path: Path
) -> None:
    place = write_skill(tmp_path / "from", "packed", "First.")
    installer(manager).install(str(place))
    manager.trust("packed")
    write_skill(tmp_path / "from", "packed", "Second.")
    with pytest.raises(SkillConflictError, match="already"):
        installer(manager).install(str(place))
    assert manager.activate("packed") == "First."
    assert manager.list()[0].is_trusted
    installer(manager).install(str(place), replace=True)
    assert manager.activate("packed") == "Second."
    assert not manager.list()[0].is_trusted
    assert os.listdir(manager.config.user_dir) == ["packed"]


def test_a_skill_of_the_users_own_is_not_taken_over(manager: SkillManager, tmp_path: Path) -> None:
    write_skill(manager.config.user_dir, "packed", "Mine.")
    with pytest.raises(SkillConflictError):
        installer(manager).install(str(write_skill(tmp_path / "from", "packed", "Theirs.")))
    assert manager.activate("packed") == "Mine."
    assert manager.list()[0].is_trusted


def test_from_an_address_and_from_clawhub(manager: SkillManager, site: Site) -> None:
    site.answers["/s.zip"] = (200, {}, GOOD["zip in a folder"])
    site.answers["/moved"] = (302, {"location": "/s.zip"}, b"")
    site.answers["/api/skills/weather/download"] = (200, {}, SKILL.replace(b"packed", b"weather"))
    own = installer(manager, site.url)
    assert own.install(f"{site.url}/moved").info.name == "packed"
    done = own.install("weather")
    assert (done.info.name, done.source) == ("weather", "weather")
    assert site.asked == ["/moved", "/s.zip", "/api/skills/weather/download"]


def test_addresses_that_fail_leave_nothing(manager: SkillManager, site: Site) -> None:
    site.answers["/loop"] = (302, {"location": "/loop"}, b"")
    site.answers["/file"] = (302, {"location": "file:///etc/passwd"}, b"")
    site.answers["/huge"] = (200, {}, b"\0" * (11 << 20))
    site.answers["/page"] = (200, {}, b"<html>")
    own = installer(manager, site.url)
    for source, reason in {
        f"{site.url}/loop": "more than 5 times",
        f"{site.url}/file": "not an http",
        f"{site.url}/huge": "more than 10 MiB",
        f"{site.url}/page": "neither",
        f"{site.url}/gone": "status 404",
        "missing-slug": "no such skill",
        "ftp://host/x": "not an http",
        "http://": "not an http",
        "http://127.0.0.1:1/x": "cannot be reached",
    }.items():
        with pytest.raises(SkillLoadError, match=reason):
            own.install(source)
    with pytest.raises(SkillNotFoundError, match="no folder, archive"):
        own.install("no/such/path.zip")
    assert nothing_left(manager)


def test_secrets_in_an_address_are_not_repeated(manager: SkillManager, site: Site) -> None:
    address = site.url.replace("http://", "http://me:hunter2@") + "/gone?token=hunter3"
    with pytest.raises(SkillLoadError) as caught:
        installer(manager).install(address)
    assert "hunter" not in str(caught.value)


def test_a_cancel_ends_a_download(manager: SkillManager, site: Site) -> None:
    token = CancelToken()
    caught: list[BaseException] = []

    def work() -> None:
        try:
            installer(manager).install(f"{site.url}/hang", cancel=token)
        except CancelledException as error:
            caught.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    assert site.reached.wait(20)
    token.cancel("enough")
    thread.join(20)
    assert len(caught) == 1
    assert nothing_left(manager)


def test_two_at_once_leave_one_whole_skill(manager: SkillManager, tmp_path: Path) -> None:
    archive = tmp_path / "a.zip"
    archive.write_bytes(GOOD["zip at the top"])
    outcomes: list[str] = []

    def work() -> None:
        try:
            installer(manager).install(str(archive))
            outcomes.append("installed")
        except SkillError as error:
            outcomes.append(type(error).__name__)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes.count("installed") == 1
    assert os.listdir(manager.config.user_dir) == ["packed"]
    assert not manager.list()[0].is_trusted
