"""Thousands of damaged agent files: no crash, no silence, and never a right that the sound file did not give."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.definitions.agents import read_agent
from shared.definitions.profile import SubagentProfile
from shared.definitions.profile_file import Reading
from shared.definitions.source import Source
from shared.definitions.tool_names import OWNERS

_HEAD = "---\nname: sound\ndescription: Looks at things and says so\n"
_TAIL = "model: sonnet\ncolor: red\n---\n\nYou look at things.\n\n---\n\nBe brief: always.\n"
SOUND = {
    "comma": (_HEAD, "tools: Read, Grep\n", _TAIL),
    "one": (_HEAD, "tools: Read\n", _TAIL),
    "flow": (_HEAD, "tools: [Read, Grep]\n", _TAIL),
    "list": (_HEAD, "tools:\n  - Read\n  - Grep\n", _TAIL),
    "empty": (_HEAD, "tools: []\n", _TAIL),
    "quoted": (_HEAD, 'tools: "Read, Grep"\n', _TAIL),
    "first": ("---\n", "tools: Read, Grep\n", "name: sound\ndescription: It is\n---\nBody\n"),
    "last": (_HEAD, "tools: Read, Grep\n", "---\nBody\n"),
    "denied": (_HEAD, "disallowedTools: Bash, Write, Edit\n", _TAIL),
    "pattern": (_HEAD, "tools: Read, Bash(git log *)\n", _TAIL),
    "switches": (_HEAD, "tools:\n  '*': false\n  read: true\n", _TAIL),
    "permission": (_HEAD, "permission:\n  edit: deny\n  bash: deny\n", _TAIL),
    "mode": (_HEAD, "permissionMode: plan\n", _TAIL),
    "damaged": ("---\nname: sound\ndescription: Use when: it rains\n", "tools: Read, Grep\n", _TAIL),
}
#: What typing, merging and converting put into files; a `*` or `#` of one's own is a statement, not damage.
_NOISE = " \t\n\r:,-[]{}()\"'|>&!%@`?\\/_.abcdeRGBxyz019~=\x00\x85\u2028\ufeffé"
_KEYS = (
    "name",
    "description",
    "tools",
    "disallowedTools",
    "permission",
    "permissionMode",
    "model",
    "skills",
    "mode",
    "effort",
    "maxTurns",
    "timeout_mins",
    "visibility",
    "hidden",
    "kind",
    "can_delegate_to_agents",
    "hooks",
    "emitStructuredFindings",
    "modelRole",
    "steps",
    "allowedTools",
    "permissions",
    "metadata",
    "plugins",
)

Edit = Callable[[str], str]


def _edits(length: int) -> st.SearchStrategy[Edit]:
    """One slip somewhere in a text: a character more, less or other, a line break lost, an indent, a repetition."""
    at = st.integers(0, max(0, length))
    return st.one_of(
        st.builds(lambda i, char: lambda text: text[:i] + char + text[i:], at, st.sampled_from(_NOISE)),
        st.builds(lambda i, n: lambda text: text[:i] + text[i + n :], at, st.just(1)),
        st.builds(lambda i, char: lambda text: text[:i] + char + text[i + 1 :], at, st.sampled_from(_NOISE)),
        st.just(lambda text: text.rstrip("\n")),
        st.builds(
            lambda pad: lambda text: pad + text, st.sampled_from([" ", "  ", "\t", "- ", "> ", '"', "? ", "---\n"])
        ),
        st.builds(
            lambda pad: lambda text: text.rstrip("\n") + pad, st.sampled_from(["\n---\n", "\n\n", '"\n', "]\n", ":\n"])
        ),
        st.just(lambda text: text + text),
        st.just(lambda text: text.replace("\n", "\r\n")),
        st.just(str.upper),
        st.just(str.title),
    )


def _read(text: str) -> Reading:
    return read_agent(text, stem="sound", source=Source("project", "/p/.jaato/agents/sound.md", False))


def _rights(profile: SubagentProfile) -> set[str]:
    return {
        tool
        for tool in OWNERS
        if (profile.tools is None or any(fnmatchcase(tool, name) for name in profile.tools))
        and not any(fnmatchcase(tool, name) for name in profile.disallowed_tools)
    }


def _checked(text: str) -> Reading:
    reading = _read(text)
    assert reading.profile is not None or reading.problems, "refused without a word"
    for problem in reading.problems:
        assert str(problem).isprintable()
    return reading


@pytest.mark.parametrize("kind", SOUND)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_slip_in_the_line_that_gives_rights_never_widens_them(kind: str, data: st.DataObject) -> None:
    before, rights, after = SOUND[kind]
    sound = _read(before + rights + after).profile
    assert sound is not None
    changed = data.draw(_edits(len(rights)))(rights)
    reading = _checked(before + changed + after)
    if reading.profile is not None and changed.strip() and any(char.isalpha() for char in changed):
        assert _rights(reading.profile) <= _rights(sound) or _may_still_be_refused(reading.profile), changed


def _may_still_be_refused(profile: SubagentProfile) -> bool:
    """A tool that is denied under a name nobody has stops every spawn."""
    return bool(profile.unmapped_denied)


@pytest.mark.parametrize("kind", SOUND)
@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_a_slip_anywhere_else_does_not_widen_them_either(kind: str, data: st.DataObject) -> None:
    before, rights, after = SOUND[kind]
    sound = _read(before + rights + after).profile
    assert sound is not None
    head = data.draw(_edits(len(before)))(before)
    tail = data.draw(_edits(len(after)))(after)
    reading = _checked(head + rights + tail)
    if reading.profile is not None:
        assert _rights(reading.profile) <= _rights(sound), (head, tail)


@settings(max_examples=300, deadline=None)
@given(
    st.text(max_size=300),
    st.sampled_from(["", "---\n", "---\nname: x\n"]),
    st.sampled_from(["", "\n---\n", "\n---\nb"]),
)
def test_any_text_is_read_or_refused_with_a_word(text: str, before: str, after: str) -> None:
    _checked(before + text + after)


@settings(max_examples=300, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(_KEYS),
        st.recursive(
            st.none()
            | st.booleans()
            | st.integers()
            | st.floats()
            | st.text(max_size=8)
            | st.sampled_from(["Read", "*", "allow"]),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
            max_leaves=6,
        ),
        max_size=6,
    )
)
def test_any_value_in_any_field_is_read_or_refused_with_a_word(fields: dict[str, object]) -> None:
    text = yaml.safe_dump(fields, allow_unicode=True, sort_keys=False)
    reading = _checked(f"---\n{text}---\nbody\n")
    if reading.profile is not None and fields.get("tools", ...) in (None, "", [], {}) and "tools" in fields:
        assert not _rights(reading.profile) or fields["tools"] == {}
