"""A whitelisted command pattern covers one simple command, never a second one."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared.permissions.command import INNER_BLANK, covers, simple_command

ONE_COMMAND = [
    "git status",
    "  git   log --oneline\t-n 5  ",
    "git show HEAD^",
    "git diff main..topic -- src/*.py",
    "git commit -m 'a; b && c | d > e'",
    'git commit -m "say \\"hi\\" at \\ once"',
    "git commit -m 'Grüße aus Köln'",
    "git log --format=%H:%s,x@y",
    "git add ~/notes.txt",
]

MORE_THAN_ONE = [
    "git status; rm -rf ~",
    "git status ;rm -rf ~",
    "git status && rm -rf ~",
    "git status || rm -rf ~",
    "git status | sh",
    "git status |& sh",
    "git status & rm -rf ~",
    "git status &",
    "git log `rm -rf ~`",
    "git log $(rm -rf ~)",
    'git log "$(rm -rf ~)"',
    'git log "`rm -rf ~`"',
    "git log '$(rm -rf ~)'",
    "git log <(rm -rf ~)",
    "git log >(rm -rf ~)",
    "git status\nrm -rf ~",
    "git status\r\nrm -rf ~",
    "git status\rrm -rf ~",
    "git commit -m 'a\nb'",
    "git status \\\nrm",
    "git log > ~/.bashrc",
    "git log >> ~/.bashrc",
    "git log 2>&1",
    "git log &> x",
    "git log < /etc/passwd",
    "git log <<EOF\nrm -rf ~\nEOF",
    "git log <<< x",
    "(git status)",
    "( git status )",
    "{ git status; }",
    "git {status,-rf}",
    "LD_PRELOAD=x git status",
    "GIT_SSH_COMMAND='rm -rf ~' git fetch",
    "A= git status",
    "! git status",
    "time git status",
    "if git status",
    "git $X",
    "git ${X}",
    "git $'\\x3b'",
    "git $[1+1]",
    "git $((1))",
    "git \\; rm -rf ~",
    "git status # rm",
    "git 'unclosed",
    'git "unclosed',
    "git status\\",
    "git status\x00rm",
    "git \x1b[2K\x1b[1Gls",
    "git status\x0brm",
]

QUOTING_TRICKS = [
    "g''it status",
    "'git' status",
    '"git" status',
    "gi\\t status",
    "g'i't status",
    '""git status',
    "\\git status",
]

LOOK_ALIKES = [
    "g\u0456t status",  # Cyrillic i
    "\uff47\uff49\uff54 status",
    "git\u00a0status",
    "git status\uff1b rm -rf ~",
    "git status \uff06\uff06 rm -rf ~",
    "git status \uff5c sh",
    "git log \u201c$(rm)\u201d",
    "git status\u2028rm -rf ~",
    "git status\u0085rm",
    "git log '\u202ereverof'",
    "git log 'a\u200bb'",
    "git log 'a\u2066b'",
    "git log 'p\u0430ssword'",  # Cyrillic a among Latin letters
    "git log '\u115f'",
    "git log '\ud800'",
    "git log '\uff1b'",
    "g\u00adit status",
]

OTHER_PROGRAMS = [
    "rm -rf ~",
    "gitk",
    "GIT status",
    "/usr/bin/git status",
    "./git status",
    "env git status",
    "sudo git status",
    "",
    "   ",
]


@pytest.mark.parametrize("line", ONE_COMMAND)
def test_one_simple_command_is_covered(line: str) -> None:
    assert covers("git *", line)


@pytest.mark.parametrize("line", [*MORE_THAN_ONE, *QUOTING_TRICKS, *LOOK_ALIKES, *OTHER_PROGRAMS])
def test_anything_else_is_not(line: str) -> None:
    assert not covers("git *", line)


@pytest.mark.parametrize("line", [*MORE_THAN_ONE, *LOOK_ALIKES])
def test_not_even_a_pattern_for_everything_covers_a_second_command(line: str) -> None:
    assert simple_command(line) is None or line in LOOK_ALIKES[:1]
    assert not covers("git*", line)


@pytest.mark.parametrize(
    ("pattern", "line", "expected"),
    [
        ("git status", "git status", True),
        ("git status", "git  status", True),
        ("git status", "git status -s", False),
        ("git log | head", "git log | head", False),
        ("git * --dry-run *", "git push --dry-run x", True),
        ("git * --dry-run *", "git push 'a --dry-run b'", False),
        ("git commit -m 'fix it'", 'git commit -m "fix it"', True),
        ("git commit -m fix it", "git commit -m 'fix it'", False),
        ("cat src/*", "cat src/a.txt", True),
        ("cat src/*", "cat src/../../etc/passwd", False),
        ("cat src/*", "cat src/./../etc", False),
        ("cat --file=src/*", "cat --file=src/../../etc/passwd", False),
        ("git [!p]*", "git status", True),
        ("git [!p]*", "git push", False),
        ("*", "ls -l", True),
        ("*", "eval 'git status; rm -rf x'", False),
        ("*status*", "bash -c 'git status; rm -rf x'", False),
        ("* status*", "/bin/bash -c 'echo status'", False),
        ("bash *", "bash build.sh", True),
        ("git *", "git -c alias.x='!rm -rf y' x", False),
        ("git -c *", "git -c user.name=me commit", True),
        ("git *", "git switch -c topic", True),
        ("git *", "git fetch --upload-pack='rm -rf y' origin", False),
        ("git *", "git fetch --upl 'rm -rf y' origin", False),
        ("git *", "git rebase -x 'rm -rf y' main", False),
        ("git *", "git submodule foreach 'rm -rf y'", False),
        ("find *", "find . -name x", True),
        ("find *", "find . -exec rm -rf '{}' +", False),
        ("find * -exec ls *", "find . -exec ls '{}' +", True),
        ("tar *", "tar xf a.tar --to-command='rm -rf y'", False),
        ("tar *", "tar -I'rm -rf y' -xf a.tar", False),
        ("tar *", "tar xIf 'rm -rf y' a.tar", False),
        ("tar *", "tar xzf a.tar", True),
        ("rsync *", "rsync -ave 'rm -rf y' a b:", False),
        ("rsync *", "rsync --exclude=x -av a b", True),
        ("rsync *", "rsync -e 'rm -rf y' a b:", False),
        ("write_file(path=*)", "write_file x", False),
    ],
)
def test_patterns_cover_what_their_author_wrote(pattern: str, line: str, expected: bool) -> None:
    assert covers(pattern, line) is expected


# -- against a real shell ------------------------------------------------------------------------------------------

FRAGMENTS = [
    *("git", " ", "status", ";", "&&", "|", "&", "\n", "\r", "\t", "$(", ")", "`", "'", '"', "\\", ">", "<", "<<E"),
    *("{", "}", ",", "(", "rm", "-rf", "~", "$X", "${X}", "X=1", "#", "!", "=", "*", "?", "[", "]", "eval", "time"),
    *("$'", "<(", "||", "é", "\u0430", "\u200b", "a", "b c", "/", "..", "%", "^", "$((1", "coproc", "2>", "&>", "$["),
]
PLAIN = [
    *(" ", "a", "-n", "*", "?", "[a]", "~", "=", "%", ",", "^", "@", "'x y'", "'a;b'", '"a|b"', "''", '""', "'é'"),
    *('"q\\"r"', "'$x'", "'!'", '"\\a"', "\t", "..", "/"),
]
LINES = st.one_of(
    st.lists(st.sampled_from(PLAIN + PLAIN + FRAGMENTS), max_size=8).map(lambda parts: "git " + "".join(parts)),
    st.lists(st.sampled_from(PLAIN), max_size=12).map(lambda parts: "git " + "".join(parts)),
    st.lists(st.sampled_from(FRAGMENTS), max_size=10).map(lambda parts: "git " + "".join(parts)),
    st.lists(st.sampled_from(FRAGMENTS), max_size=8).map("".join),
    st.text(max_size=12).map(lambda text: "git " + text),
)


class Shell:
    """A bash in an empty folder whose only program is a `git` that notes its arguments."""

    def __init__(self, root: Path) -> None:
        self.folder, self.programs, self.notes = root / "here", root / "bin", root / "notes"
        self.folder.mkdir()
        self.programs.mkdir()
        stub = self.programs / "git"
        stub.write_text(f'#!/bin/sh\nprintf "%s\\0" "$@" >>"{self.notes}"\n')
        stub.chmod(0o755)

    def run(self, line: str) -> tuple[list[str], list[str]]:
        """The commands that bash traced, and the arguments that git saw."""
        self.notes.write_bytes(b"")
        done = subprocess.run(
            [shutil.which("bash") or "bash", "-x", "-c", "--", line],
            cwd=self.folder,
            env={"PATH": str(self.programs), "LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=20,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        traced = [row for row in done.stderr.decode("utf-8", "replace").split("\n") if row.startswith("+")]
        return traced, self.notes.read_text("utf-8", "surrogateescape").split("\0")[:-1]


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    if shutil.which("bash") is None:
        pytest.skip("bash is not installed")
    return Shell(tmp_path_factory.mktemp("shell"))


def _holds(shell: Shell, line: str) -> None:
    words = simple_command(line)
    assert words is not None
    traced, arguments = shell.run(line)
    assert len(traced) == 1, traced
    assert traced[0].startswith("+ git ")
    assert os.listdir(shell.folder) == []
    if not any(sign in line for sign in "*?[~"):
        assert arguments == [word.replace(INNER_BLANK, " ") for word in words[1:]] or "\t" in line


@pytest.mark.parametrize("line", ONE_COMMAND)
def test_bash_runs_exactly_git_for_a_covered_line(shell: Shell, line: str) -> None:
    _holds(shell, line)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(line=LINES)
def test_bash_runs_nothing_but_git_for_any_line_that_is_covered(shell: Shell, line: str) -> None:
    if covers("git *", line):
        _holds(shell, line)


@settings(max_examples=500, deadline=None)
@given(
    first=st.sampled_from(["git status", "git log -n 1", "git commit -m 'x y'", 'git log "a"']),
    joint=st.sampled_from(
        [";", "&&", "||", "|", "&", "\n", "\r\n", " ; ", "|&", ">", ">>", "<", "`", "$(", "<(", "\u2028"]
    ),
    second=st.text(min_size=1, max_size=20),
)
def test_no_joint_makes_a_second_command_covered(first: str, joint: str, second: str) -> None:
    assert not covers("git *", first + joint + second)
