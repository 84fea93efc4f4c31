"""Unpacking an archive that somebody else made: into memory, bounded, and only what is harmless."""

from __future__ import annotations

import io
import stat
import tarfile
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from shared.errors import SkillLoadError
from shared.file_tree import FileTree, TreeFile
from shared.skills.files import FILE_NAMES, SKILL_FILE

MAX_PACKED = 10 << 20
MAX_UNPACKED = 30 << 20
MAX_FILES = 1_000
MAX_DEPTH = 12
MAX_PATH = 240
_IGNORED = ("__MACOSX/", ".git/")
_RESERVED = frozenset(':*?"<>|')


@dataclass(frozen=True)
class _Entry:
    name: str
    data: bytes
    executable: bool


def unpack(data: bytes, *, what: str) -> FileTree:
    """The files of a zip, tar or tar.gz, or of a lone SKILL.md; raises SkillLoadError for anything doubtful."""
    if len(data) > MAX_PACKED:
        raise SkillLoadError(f"{what} is larger than {MAX_PACKED >> 20} MiB, the most that is installed")
    try:
        if data.startswith(b"PK\x03\x04"):
            return _collected(_zip(data, what), what)
        if data.startswith(b"\x1f\x8b"):
            return _collected(_tar(_inflated(data, what), what), what)
        if data[257:262] == b"ustar":
            return _collected(_tar(data, what), what)
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, OSError) as error:
        raise SkillLoadError(f"{what} is damaged: {error}") from None
    except (NotImplementedError, RuntimeError, ValueError, OverflowError) as error:  # from the two libraries
        raise SkillLoadError(f"{what} cannot be unpacked: {error}") from None
    if data.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n").startswith(b"---"):
        return FileTree({SKILL_FILE: TreeFile(data)})
    raise SkillLoadError(f"{what} is neither a zip, tar or tar.gz archive nor a {SKILL_FILE}")


def skill_root(tree: FileTree, *, what: str) -> FileTree:
    """The skill in a tree: at its top, or in its one folder; raises SkillLoadError if there is none or several."""
    tops = sorted({path.rpartition("/")[0] for path in tree.files if path.rpartition("/")[2] in FILE_NAMES}, key=len)
    outer = [top for top in tops if not any(top.startswith(f"{each}/" if each else "") for each in tops if each != top)]
    if len(outer) != 1:
        found = (
            f"{len(outer)} skills ({', '.join(outer[:5])}): install them one by one" if outer else f"no {SKILL_FILE}"
        )
        raise SkillLoadError(f"{what} has {found}")
    prefix = f"{outer[0]}/" if outer[0] else ""
    return FileTree({path[len(prefix) :]: file for path, file in tree.files.items() if path.startswith(prefix)})


def _zip(data: bytes, what: str) -> Iterator[_Entry]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        infos = archive.infolist()
        if len(infos) > 2 * MAX_FILES:
            raise SkillLoadError(f"{what} has more than {MAX_FILES:,} files")
        left = MAX_UNPACKED
        for info in infos:
            mode = info.external_attr >> 16
            kind = stat.S_IFMT(mode)
            _require(info.orig_filename == info.filename, info.orig_filename, "has a NUL character in its name", what)
            if info.is_dir():
                _path(info.filename.rstrip("/"), what)
                continue
            _require(kind in (0, stat.S_IFREG), info.filename, "is a link or a special file", what)
            _require(not info.flag_bits & 1, info.filename, "is encrypted", what)
            with archive.open(info) as stream:
                content = stream.read(left + 1)
            left -= len(content)
            if left < 0:
                raise SkillLoadError(f"{what} unpacks to more than {MAX_UNPACKED >> 20} MiB")
            yield _Entry(info.filename, content, bool(mode & stat.S_IXUSR))


def _tar(data: bytes, what: str) -> Iterator[_Entry]:
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
        count = 0
        for member in archive:
            count += 1
            if count > 2 * MAX_FILES:
                raise SkillLoadError(f"{what} has more than {MAX_FILES:,} files")
            if member.isdir():
                _path(member.name, what)
                continue
            _require(member.isreg() and not member.issparse(), member.name, "is a link or a special file", what)
            stream = archive.extractfile(member)
            content = stream.read() if stream is not None else b""
            _require(len(content) == member.size, member.name, "is cut off", what)
            yield _Entry(member.name, content, bool(member.mode & stat.S_IXUSR))


def _inflated(data: bytes, what: str) -> bytes:
    """All that a gzip holds, as long as it is not too much: a bomb ends here."""
    found = bytearray()
    while data:
        inflate = zlib.decompressobj(wbits=31)
        found += inflate.decompress(data, MAX_UNPACKED - len(found) + 1)
        if len(found) > MAX_UNPACKED:
            raise SkillLoadError(f"{what} unpacks to more than {MAX_UNPACKED >> 20} MiB")
        if not inflate.eof:
            raise SkillLoadError(f"{what} is damaged: it is cut off")
        data = inflate.unused_data.lstrip(b"\0")
    return bytes(found)


def _collected(entries: Iterator[_Entry], what: str) -> FileTree:
    """All entries by path; two that could become one file anywhere are refused."""
    files: dict[str, TreeFile] = {}
    seen: dict[str, str] = {}
    for entry in entries:
        path = _path(entry.name, what)
        _require(path != ".", entry.name, "is a file without a name", what)
        if f"{path}/".startswith(_IGNORED) or "/.git/" in path:
            continue
        parts = path.split("/")
        for depth in range(1, len(parts) + 1):
            part = "/".join(parts[:depth])
            mark = part if depth < len(parts) else f"{part}\0"  # a file and a folder of one name clash too
            plain = unicodedata.normalize("NFC", part).casefold()
            other = seen.setdefault(plain, mark)
            if other != mark or (depth == len(parts) and path in files):
                raise SkillLoadError(f"{what} has two entries for {path!a}: which one counts would be a guess")
        files[path] = TreeFile(entry.data, entry.executable)
        if len(files) > MAX_FILES:
            raise SkillLoadError(f"{what} has more than {MAX_FILES:,} files")
    return FileTree(dict(sorted(files.items())))


def _path(name: str, what: str) -> str:
    """A name as a path below the skill; refused if it leads, or may lead, anywhere else."""
    if name in (".", "./"):
        return "."
    parts = name.removeprefix("./").rstrip("/").split("/")
    _require(not name.startswith("/") and "\\" not in name, name, "is an absolute name or has a backslash", what)
    _require(all(part not in ("", ".", "..") for part in parts), name, "leads out of the archive", what)
    _require(name.isprintable() and not _RESERVED & set(name), name, "has characters that no file needs", what)
    _require(not any(part.endswith((".", " ")) for part in parts), name, "has a name that ends in a dot or space", what)
    _require(len(parts) <= MAX_DEPTH and len(name.encode()) <= MAX_PATH, name, "is too long or too deep", what)
    return "/".join(parts)


def _require(condition: bool, name: str, reason: str, what: str) -> None:
    if not condition:
        raise SkillLoadError(f"{what}: the entry {name[:80]!a} {reason}; nothing was installed")
