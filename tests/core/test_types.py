"""The values that travel: they compare, pickle and measure themselves."""

from __future__ import annotations

import pickle

import pytest

from shared import Attachment, FunctionCall, Message, Part, Role, TokenUsage, ToolResult, ToolSchema
from shared.types import FinishReason, ProviderResponse, Signature, estimate_tokens, unparsed_args

CALL = FunctionCall("c1", "search", {"query": "ä", "deep": [1, 2]})
RESULT = ToolResult("c1", "search", {"hits": 3}, attachments=(Attachment("image/png", b"x"),))
MESSAGE = Message(
    Role.MODEL,
    (
        Part.from_thought("hm", Signature("anthropic", "sig")),
        Part.from_text("Let me "),
        Part.from_text("look."),
        Part.from_function_call(CALL),
    ),
    pinned=True,
)


@pytest.mark.parametrize(
    "value",
    [
        MESSAGE,
        Message(Role.TOOL, (Part.from_function_response(RESULT),)),
        ToolSchema("search", "Search.", {"type": "object"}),
        TokenUsage.of(3, 4, cache_read=1, cache_write=2),
        ProviderResponse((Part.from_text("x"),), TokenUsage.of(1, 1), FinishReason.STOP),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_pickle(value: object) -> None:
    assert pickle.loads(pickle.dumps(value)) == value


def test_derived_values_do_not_travel_or_count() -> None:
    fresh = Message(MESSAGE.role, MESSAGE.parts, MESSAGE.pinned)
    assert MESSAGE.tokens > 0
    MESSAGE._memo["wire"] = object()
    assert fresh == MESSAGE
    assert pickle.loads(pickle.dumps(MESSAGE))._memo == {}
    MESSAGE._memo.pop("wire")


def test_what_a_message_holds() -> None:
    assert MESSAGE.text == "Let me look."
    assert MESSAGE.function_calls == [CALL]
    assert MESSAGE.results == []
    assert Message(Role.TOOL, (Part.from_function_response(RESULT),)).results == [RESULT]
    assert Message(Role.MODEL, ()).text is None
    assert Message.from_text("user", "hi") == Message(Role.USER, [Part(text="hi")])  # type: ignore[arg-type]


def test_values_cannot_be_changed() -> None:
    for value, name in ((MESSAGE, "role"), (CALL, "args"), (RESULT, "result"), (TokenUsage(), "total_tokens")):
        with pytest.raises(AttributeError):
            setattr(value, name, None)


def test_results_read_as_text() -> None:
    assert ToolResult("1", "t", "plain").text == "plain"
    assert ToolResult("1", "t", {"ä": [1, None]}).text == '{"ä": [1, null]}'


def test_usage_adds_up() -> None:
    total = TokenUsage.of(10, 5, cache_read=4) + TokenUsage.of(1, 2, cache_write=3)
    assert total == TokenUsage(11, 7, 18, 4, 3)
    assert total.as_dict()["total_tokens"] == 18


def test_estimates_grow_with_the_text_and_images_count() -> None:
    assert estimate_tokens("") >= 1
    assert estimate_tokens("x" * 300) >= 75
    plain = Message(Role.TOOL, (Part(function_response=ToolResult("1", "t", "x")),))
    pictured = Message(Role.TOOL, (Part(function_response=RESULT),))
    assert pictured.tokens > plain.tokens + 500
    assert Message(Role.USER, (Part(inline_data=Attachment("image/png", b"")),)).tokens > 500


def test_arguments_that_cannot_be_read_are_carried_as_json() -> None:
    assert unparsed_args("{", "no end") == {"_unparsed": "{", "_problem": "no end"}
