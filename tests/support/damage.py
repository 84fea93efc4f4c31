"""Damage: what happens to files on their way — cut off, flipped, converted, merged, re-indented — from a seed.

All but `ravaged` is one slip, and none writes another statement: a tool's name is not replaced by another one's, and
no line that gives rights is taken out as a whole, which nobody could tell from a file that never had it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

Damage = Callable[[random.Random, bytes], bytes]

_FLIPS = b" \t\n\r:,-[]{}()\"'|>&!%@`?\\/_.~=\x00\x85\xff\xc3eRx0"
_NOISE = (
    b"\x00",
    b"\t",
    b"\x0c",
    b"\x85",
    "\u2028".encode(),
    b"\xef\xbb\xbf",
    "\u202e".encode(),
    b"\xff\xfe",
    b"\x1b[2J",
)
_YAML = (
    b"x: &a [1, 2]\ny: *a\n",
    b"<<: {tools: '*'}\n",
    b"<<: &m {permissionMode: bypassPermissions}\n",
    b"base: &b {tools: [Bash, Write]}\n<<: *b\n",
    b"a: &a [" + b"*a, " * 3 + b"1]\n",
    b"b: &b [" + b"x," * 40 + b"]\nc: [" + b"*b," * 40 + b"]\n",
    b"!!python/object/apply:os.system [id]\n",
    b"deep: " + b"[" * 60 + b"]" * 60 + b"\n",
    b"deep: " + b"{a: " * 300 + b"}" * 300 + b"\n",
    b"%YAML 1.2\n",
    b"? - complex\n: key\n",
    b"- some junk\n",
    b"\x07bell: ring\n",
)


def cut_off(rng: random.Random, data: bytes) -> bytes:
    """The end is missing."""
    return data[: rng.randrange(len(data) + 1)]


def head_lost(rng: random.Random, data: bytes) -> bytes:
    """The beginning is missing."""
    return data[rng.randrange(len(data) + 1) :]


def flipped(rng: random.Random, data: bytes) -> bytes:
    """One byte is another one."""
    changed = bytearray(data)
    changed[rng.randrange(min(len(changed), 600))] = rng.choice(_FLIPS)
    return bytes(changed)


def ravaged(rng: random.Random, data: bytes) -> bytes:
    """Several bytes are others: together they may well write another statement."""
    for _ in range(rng.randrange(2, 9)):
        data = flipped(rng, data)
    return data


def bit_flipped(rng: random.Random, data: bytes) -> bytes:
    """One bit is another one, but none that makes a comment or a pattern of it."""
    changed = bytearray(data)
    at = rng.randrange(min(len(changed), 600))
    changed[at] ^= 1 << rng.randrange(8)
    return data if changed[at] in b"#*" else bytes(changed)


def noisy(rng: random.Random, data: bytes) -> bytes:
    """Something invisible got in."""
    at = rng.randrange(min(len(data), 600) + 1)
    return data[:at] + rng.choice(_NOISE) * rng.choice((1, 1, 3)) + data[at:]


def byte_lost(rng: random.Random, data: bytes) -> bytes:
    """One byte is missing."""
    at = rng.randrange(min(len(data), 600))
    return data[:at] + data[at + 1 :]


def lines_shifted(rng: random.Random, data: bytes) -> bytes:
    """Some lines at the top are indented, or not any more."""
    lines = data.split(b"\n")
    pad = rng.choice((b" ", b"  ", b"\t", b"    ", b"- ", b"> "))
    for index in range(1, min(len(lines), 30)):
        if rng.random() < 0.3:
            lines[index] = lines[index].lstrip() if rng.random() < 0.3 else pad + lines[index]
    return b"\n".join(lines)


def line_repeated(rng: random.Random, data: bytes) -> bytes:
    """A merge left a line twice."""
    lines = data.split(b"\n")
    at = rng.randrange(min(len(lines), 30))
    return b"\n".join([*lines[: at + 1], *lines[rng.randrange(at + 1) : at + 1], *lines[at + 1 :]])


def lines_joined(rng: random.Random, data: bytes) -> bytes:
    """A line break is missing, or a space in its place."""
    breaks = [found.start() for found in re.finditer(b"\n", data[:1500])]
    if not breaks:
        return data
    at = rng.choice(breaks)
    return data[:at] + rng.choice((b"", b" ")) + data[at + 1 :]


def fence_added(rng: random.Random, data: bytes) -> bytes:
    """A line of dashes stands where none was."""
    lines = data.split(b"\n")
    lines.insert(
        rng.randrange(min(len(lines), 40) + 1), rng.choice((b"---", b"--- ", b" ---", b"----", b"...", b"<<<<<<< HEAD"))
    )
    return b"\n".join(lines)


def converted(rng: random.Random, data: bytes) -> bytes:
    """An editor saved it its own way."""
    text = data.decode("utf-8", "replace")
    way = rng.randrange(7)
    if way == 0:
        return data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    if way == 1:
        return data.replace(b"\r\n", b"\n").replace(b"\n", b"\r")
    if way == 2:
        return text.encode(rng.choice(("utf-16", "utf-16-le", "utf-32")), "replace")
    if way == 3:
        return b"\xef\xbb\xbf" * rng.choice((1, 2)) + data
    if way == 4:
        return data.replace(b"  ", b"\t")
    if way == 5:
        return text.encode("latin-1", "replace")
    return data.replace(b": ", b":" + rng.choice((b"", b"\t", b"\xc2\xa0")))


def yaml_added(rng: random.Random, data: bytes) -> bytes:
    """YAML that nobody needs stands between the fields."""
    lines = data.split(b"\n")
    end = next((index for index, line in enumerate(lines) if index and line.strip() == b"---"), 2)
    lines.insert(rng.randrange(1, end + 1), rng.choice(_YAML).rstrip(b"\n"))
    return b"\n".join(lines)


def swollen(rng: random.Random, data: bytes) -> bytes:
    """It is far too long."""
    return data + rng.choice((b"x" * 1_100_000, b"a: b\n" * 2000, b"---\n" * 2000))


DAMAGES: tuple[Damage, ...] = (
    *(cut_off, head_lost, flipped, bit_flipped, noisy, byte_lost, lines_shifted, line_repeated),
    *(lines_joined, fence_added, converted, yaml_added, ravaged),
)


def damaged(data: bytes, seed: int | str) -> tuple[str, bytes]:
    """The data after one kind of damage, chosen and applied by the seed alone; and what kind it was."""
    rng = random.Random(seed)
    damage = rng.choice(DAMAGES) if rng.random() > 0.005 else swollen
    return damage.__name__, damage(rng, data) if data else data
