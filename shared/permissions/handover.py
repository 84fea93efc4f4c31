"""Options through which well-known programs run another command: a broad pattern does not mean them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise

#: Program to words that hand a command on. A whitelist pattern covers such a word only if it spells it out.
HANDED_ON: Mapping[str, tuple[str, ...]] = {
    "fd": ("-x", "-X", "--exec", "--exec-batch"),
    "find": ("-exec", "-execdir", "-ok", "-okdir"),
    "git": (
        *(
            "--exec-path",
            "--upload-pack",
            "--receive-pack",
            "--exec",
            "--extcmd",
            "--config-env",
            "--open-files-in-pager",
        ),
        *("foreach", "bisect", "filter-branch", "difftool", "mergetool"),
    ),
    "man": ("-P", "--pager", "-H", "--html"),
    "rg": ("--pre", "--hostname-bin"),
    "rsync": ("-e", "--rsh", "--rsync-path"),
    "sort": ("--compress-program",),
    "tar": (
        "-I",
        "-F",
        "--to-command",
        "--checkpoint-action",
        "--use-compress-program",
        "--info-script",
        "--rsh-command",
    ),
    "zip": ("-TT", "--unzip-command"),
}
_SHORTEST = 4  # GNU and git take a long option that is cut short, such as --upl for --upload-pack


def hands_on_more(words: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    """Whether a command hands something to its program to run, in a way that the pattern does not spell out."""
    return any(not any(_is(word, name) for word in pattern[1:]) for name in _handed_on(words))


def _handed_on(words: tuple[str, ...]) -> Iterator[str]:
    program, rest = posixpath.basename(words[0]), words[1:]
    if program == "tar" and rest and not rest[0].startswith("-"):
        rest = (f"-{rest[0]}", *rest[1:])  # tar takes its first flags without a dash
    yield from (name for name in HANDED_ON.get(program, ()) if any(_is(word, name) for word in rest))
    if program == "git" and any(word == "-c" and "=" in value for word, value in pairwise(rest)):
        yield "-c"  # an alias, a pager or a transport; `-c` of a subcommand takes a name instead
    if program == "git" and "rebase" in rest and any(_is(word, "-x") for word in rest):
        yield "-x"


def _is(word: str, name: str) -> bool:
    given = word.partition("=")[0]
    if name.startswith("--"):
        return given == name or (len(given) >= _SHORTEST and name.startswith(given))
    if len(name) == 2 and name.startswith("-"):
        return not word.startswith("--") and re.match(rf"-[A-Za-z]*{name[1]}", word) is not None
    return given == name
