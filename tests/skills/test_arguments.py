"""Arguments in a skill's body: the tables of the sources, and what they leave open."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.skills.arguments import fill_in, split_arguments


@pytest.mark.parametrize(
    ("body", "arguments", "filled"),
    [
        pytest.param("Do $ARGUMENTS now", "a b", "Do a b now", id="whole text as typed"),
        pytest.param("Do $ARGUMENTS", '"hello world" x', 'Do "hello world" x', id="quotes stay in the whole text"),
        pytest.param("$0-$1", "a b", "a-b", id="numbers count from 0"),
        pytest.param("$ARGUMENTS[1]", "a b", "b", id="index"),
        pytest.param("[$0]", '"hello world"', "[hello world]", id="quoted words stay together"),
        pytest.param("[$0]", "'hello world'", "[hello world]", id="single quotes too"),
        pytest.param("$0 $1 $2.", "one", "one  .", id="fewer arguments than marks"),
        pytest.param("$0", "a b c", "a", id="more arguments than marks"),
        pytest.param("$0 of $ARGUMENTS", "a b c", "a of a b c", id="the others are in the whole text"),
        pytest.param("x $ARGUMENTS y", "", "x  y", id="nothing given"),
        pytest.param("x $ARGUMENTS[0] y", "", "x  y", id="nothing given for an index"),
        pytest.param("awk '{print $1}'", "", "awk '{print $1}'", id="a shell sample stays"),
        pytest.param("Do it.", "a b", "Do it.\n\nARGUMENTS: a b", id="no mark: appended"),
        pytest.param("Do it.", "  ", "Do it.", id="only spaces are no arguments"),
        pytest.param("", "a", "ARGUMENTS: a", id="empty body"),
        pytest.param("costs \\$1.00 for $0", "me", "costs $1.00 for me", id="one backslash escapes"),
        pytest.param("\\\\$0", "me", "\\\\me", id="two backslashes stay"),
        pytest.param("\\$ARGUMENTS", "", "$ARGUMENTS", id="an escaped name"),
        pytest.param("\\$0", "a", "$0\n\nARGUMENTS: a", id="an escaped mark is no mark"),
        pytest.param("$ARGUMENTSX $1st", "a b", "$ARGUMENTSX $1st\n\nARGUMENTS: a b", id="longer words are no marks"),
        pytest.param("$10", " ".join("abcdefghijk"), "k", id="two digits"),
        pytest.param("$ARGUMENTS", "$0 $ARGUMENTS", "$0 $ARGUMENTS", id="inserted text is not looked at again"),
        pytest.param("$0 $1", "'$1' x", "$1 x", id="not even between marks"),
        pytest.param("$0|$1", "don't stop", "don't|stop", id="an apostrophe is no quote"),
        pytest.param("$0|$1", '"open word', '"open|word', id="an open quote is a character"),
        pytest.param("$0", '--name="a b"', "--name=a b", id="a quoted value"),
        pytest.param("$0|$1", "'' b", "|b", id="an empty word counts"),
        pytest.param("$99999999999", "a", "$99999999999\n\nARGUMENTS: a", id="absurd numbers"),
    ],
)
def test_marks(body: str, arguments: str, filled: str) -> None:
    assert fill_in(body, arguments) == filled


def test_variables_are_filled_in_and_unknown_ones_stay() -> None:
    body = "run ${CLAUDE_SKILL_DIR}/x and {baseDir}/y; ${HOME} $ARGUMENTS"
    known = {"${CLAUDE_SKILL_DIR}": "/s", "{baseDir}": "/s"}
    assert fill_in(body, "{baseDir}", variables=known) == "run /s/x and /s/y; ${HOME} {baseDir}"


@given(st.text(max_size=60))
def test_any_text_can_be_given_and_comes_out_as_it_is(text: str) -> None:
    assert fill_in("<$ARGUMENTS>", text) == f"<{text.strip()}>"
    assert all(isinstance(word, str) for word in split_arguments(text))


@given(st.text(alphabet="$ARGUMENTS[]0123\\ \"'x", max_size=40), st.text(alphabet="ab '\"$0", max_size=20))
def test_any_body_can_be_filled(body: str, arguments: str) -> None:
    assert isinstance(fill_in(body, arguments), str)
