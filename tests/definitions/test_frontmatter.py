"""read_front_matter: fences, encodings, narrow repair, and what it refuses to guess."""

from __future__ import annotations

import pytest

from shared.definitions.document import Unreadable
from shared.definitions.frontmatter import FrontMatter, read_front_matter


def _refused(text: str) -> list[str]:
    with pytest.raises(Unreadable) as caught:
        read_front_matter(text)
    return [fault.code for fault in caught.value.faults]


def _codes(front: FrontMatter) -> list[str]:
    return [fault.code for fault in front.faults]


# -- what is read --------------------------------------------------------------------------------


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("lead", ["", "\ufeff", "\n", "\ufeff\n", "  \n"])
def test_fields_body_and_lines(newline: str, lead: str) -> None:
    text = f"{lead}---\nname: x\ntools:\n  - Read\n--- \n\nDo it.\n  As written.\n".replace("\n", newline)
    front = read_front_matter(text)
    assert front.fields == {"name": "x", "tools": ["Read"]}
    assert front.body == "\nDo it.\n  As written.\n".replace("\n", newline)
    above = lead.count("\n")
    assert (front.line("name"), front.line("tools", 0), front.body_line) == (2 + above, 4 + above, 6 + above)
    assert not front.faults
    assert not front.damaged


def test_values_keep_their_meaning() -> None:
    front = read_front_matter("---\nupdated: 2026-01-01\nversion: '1.10'\non: yes\nempty:\n---\n")
    assert front.fields == {"updated": "2026-01-01", "version": "1.10", "on": True, "empty": None}
    assert front.body == ""


def test_empty_front_matter_has_no_fields() -> None:
    assert read_front_matter("---\n---\nbody") == FrontMatter({}, "body", body_line=3)


def test_a_rule_in_the_body_is_part_of_it() -> None:
    assert read_front_matter("---\nname: x\n---\na\n---\nb\n").body == "a\n---\nb\n"


# -- what is not front matter --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "code", "severity"),
    [
        ("# Just a page\n\ntext\n", "no-frontmatter", "info"),
        ("", "no-frontmatter", "info"),
        ("# Page\n\n---\n\nabove and below a rule\n", "no-frontmatter", "info"),
        ("# Page\n```\n---\nname: sample\n---\n```\n", "no-frontmatter", "info"),
        ("name: x\ntools: Read\n---\nbody\n", "no-frontmatter", "error"),
        ("\n\n---\nname: x\n---\nbody\n", "no-frontmatter", "error"),
        (" ---\nname: x\n---\nbody\n", "no-frontmatter", "error"),
        ("<!-- licence -->\n---\nname: x\n---\nbody\n", "frontmatter-not-first", "error"),
        ("---\nname: x\nbody without end\n", "unclosed-frontmatter", "error"),
        ("---", "unclosed-frontmatter", "error"),
        ("---\n- a\n- b\n---\n", "not-an-object", "error"),
        ("---\njust words\n---\n", "not-an-object", "error"),
        ("---\nname: a\nname: b\n---\n", "duplicate-key", "error"),
        ("---\nname: !!python/object:os.system x\n---\n", "yaml-tag", "error"),
        ("---\nname: \x00\n---\n", "yaml-unreadable", "error"),
    ],
)
def test_what_cannot_be_used_is_named(text: str, code: str, severity: str) -> None:
    with pytest.raises(Unreadable) as caught:
        read_front_matter(text)
    assert [(fault.code, fault.severity) for fault in caught.value.faults] == [(code, severity)]


def test_bombs_are_refused() -> None:
    laughs = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{after}: &{after} [{', '.join([f'*{before}'] * 10)}]\n"
        for before, after in zip("abcdef", "bcdefg", strict=True)
    )
    assert _refused(f"---\n{laughs}---\n") == ["too-complex"]
    assert _refused(f"---\na: {'[' * 200}\n---\n") == ["too-complex"]


def test_lines_of_faults_are_those_of_the_file() -> None:
    with pytest.raises(Unreadable) as caught:
        read_front_matter("\n---\nname: x\ntools: [a\nmodel: y\n---\n")
    assert [fault.line for fault in caught.value.faults] in ([4], [5])


# -- repair --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("description: Use when: it rains", "Use when: it rains"),
        ("description: Use when: it rains\n  or snows: always", "Use when: it rains or snows: always"),
        ("description: First line\nExamples: of all sorts\nand more", "First line Examples: of all sorts and more"),
        ("description: [unclosed bracket", "[unclosed bracket"),
        ("description: `code` first", "`code` first"),
        ("description: @someone", "@someone"),
        ('description: "quoted" and more', '"quoted" and more'),
        ('description: "Say "hello" twice"', 'Say "hello" twice'),
        ("description: >\nnot indented at all", "not indented at all"),
        ("argument-hint: [a] [b]", "[a] [b]"),
    ],
)
def test_prose_is_mended_and_the_value_is_shown(written: str, read: str) -> None:
    front = read_front_matter(f"---\nname: x\n{written}\ntools: Read, Grep\n---\nbody\n")
    key = written.partition(":")[0]
    assert front.fields == {"name": "x", key: read, "tools": "Read, Grep"}
    assert _codes(front) == [f"yaml-repaired:{key}"]
    assert (front.faults[0].severity, front.faults[0].line, front.damaged) == ("warning", 3, frozenset({key}))
    assert read in front.faults[0].text
    assert front.line("tools") is not None
    assert front.body == "body\n"


@pytest.mark.parametrize(
    "damage",
    [
        "tools: [Read, Grep",
        "tools: *",
        "tools: Read: Grep",
        "disallowedTools: [Bash",
        "permission: {bash: deny",
        "name: a: b",
        "model: x: y",
        "description: a: b\n# Heading\ntext",
        "description: a: b\n**bold**",
        "description: a: b\n* point",
        "description: a: b\n```\ncode\n```",
        "\tname: x",
    ],
)
def test_anything_else_is_refused(damage: str) -> None:
    assert _refused(f"---\n{damage}\n---\nbody\n") == ["yaml-unreadable"]


def test_a_swallowed_body_is_refused() -> None:
    assert _refused("---\nname: x\ndescription: d\n\n* **Step:** one\n* two\n\n---\nrest\n") == ["yaml-unreadable"]


def test_repair_is_only_for_front_matter_of_ordinary_size() -> None:
    many = "".join(f"key{index}: v\n" for index in range(2000))
    assert _refused(f"---\ndescription: a: b\n{many}---\n") == ["yaml-unreadable"]


# -- rights that would get lost ------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "---\ndescription: a: b\n  tools: Read\n---\n",
        "---\ndescription: a: b tools: Read\n---\n",
        "---\ndescription: a: b\ntools Read\n---\n",
        "---\ndescription: a: b\nDisallowed-Tools\n---\n",
        "---\ndescription: a\n tools: Read\n---\n",
        "---\nname: x\ntools:Read\n---\n",
        '---\ndescription: "a\ntools: Read"\n---\n',
        "---\nname: x\n---\ntools: Read\n---\nbody\n",
        "---\nmetadata:\n  tools: Read\n---\n",
    ],
)
def test_a_key_that_narrows_rights_is_never_swallowed(text: str) -> None:
    assert set(_refused(text)) <= {"yaml-unreadable", "rights-misplaced"}


def test_words_about_tools_are_no_rights_when_the_key_is_there() -> None:
    front = read_front_matter("---\ndescription: Uses tools: all kinds\ntools: Read\n---\n")
    assert (front.fields["tools"], _codes(front)) == ("Read", ["yaml-repaired:description"])


def test_a_right_in_a_comment_is_mentioned() -> None:
    front = read_front_matter("---\nname: x\n# tools: Read\n---\n")
    assert [(fault.code, fault.severity) for fault in front.faults] == [("rights-commented", "warning")]
    assert not read_front_matter("---\n# tools: Read\ntools: Grep\n---\n").faults


@pytest.mark.parametrize(
    "text",
    [
        "---\nname: x\ntools: Read\n---\nvisibility: internal\n---\nbody\n",
        "---\nname: x\ndisallowedTools:\n  - Bash\n---\n  - Write\n---\nbody\n",
        "---\nname: x\npermission:\n  edit: deny\n---\n  bash: deny\nmode: subagent\n---\nbody\n",
        "---\nname: x\n---\nname: x\ndescription: d\ncolor: red\n---\nbody\n",
        "---\r\nname: x\r\n---\r\nallow_agents: []\r\n---\r\nbody\r\n",
    ],
)
def test_a_fence_among_the_fields_is_no_end_of_them(text: str) -> None:
    assert _refused(text) == ["frontmatter-cut"]


@pytest.mark.parametrize(
    "body",
    [
        "\nname: a heading of sorts\n\n---\nmore",
        "# Model\n\nmodel: the best\n\n---\nmore",
        "- first\n- second\n---\nmore",
        "Role: tester\nGoal: quality\n---\nmore",
        "    code\n---\nmore",
        "name: without another fence\n",
        "Text\n---\nname: x\n---\n",
    ],
)
def test_bodies_with_dashes_are_bodies(body: str) -> None:
    assert read_front_matter(f"---\nname: x\ndescription: d\n---\n{body}").body == body


@pytest.mark.parametrize(
    ("description", "rest"),
    [
        ("|\n  One\n  two disallowedTools:\n  - Bash", ""),
        ("|\n  One\n  twodisallowed-tools: Bash", "tools: Read, Bash\n"),
        (">\n  One\n  two\n\n  permissionMode: plan", ""),
        ("|\n  One\n  two tools: Read, Grep", ""),
        ("|\n  One\n  twotools:\n  - Read\n  - Grep", ""),
        ("|\n  One\n  two permission:\n    edit: deny\n    bash: ask", ""),
    ],
)
def test_a_key_that_a_lost_line_break_put_into_a_text_is_missed(description: str, rest: str) -> None:
    assert _refused(f"---\nname: x\ndescription: {description}\n{rest}---\nbody\n") == ["rights-misplaced"]


@pytest.mark.parametrize(
    ("description", "rest"),
    [
        ("|\n  One\n  two tools: Read, Grep", "tools: Read\n"),
        ("|\n  Explains tools: what they do,\n  and how", ""),
        ("Sets allowed-tools: and more", None),
        ("|\n  Writes skills.\n  Knows allowed-tools: what it is, and how to set it", ""),
        ("|\n  Explains permissions:\n  - who may read\n  - who may edit", ""),
        ("|\n  It has many tools.\n  Use disallowedTools to deny some", ""),
    ],
)
def test_texts_about_tools_are_texts(description: str, rest: str | None) -> None:
    quoted = f'"{description}"' if rest is None else description
    assert read_front_matter(f"---\nname: x\ndescription: {quoted}\n{rest or ''}---\nbody\n").fields["name"] == "x"
