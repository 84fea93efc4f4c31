"""Messages come back from their text exactly as they were."""

from __future__ import annotations

import pytest

from shared.store.codec import decode_message, decode_result, encode_message, encode_result
from shared.types import Attachment, FunctionCall, Message, Part, Role, Signature, ToolResult

PARTS = {
    "text": Part("words, \u00e4\u4e2d\U0001f600, a NUL \x00 and half a pair \ud800"),
    "empty": Part(""),
    "call": Part(function_call=FunctionCall("c1", "look", {"path": "a/b", "deep": {"list": [1, 2.5, None, True]}})),
    "signed call": Part(function_call=FunctionCall("c2", "look"), signature=Signature("google_genai", b"\x00\xff")),
    "result": Part(function_response=ToolResult("c1", "look", {"found": ["x"]})),
    "error": Part(function_response=ToolResult("c1", "look", "no", is_error=True, error_kind="denied")),
    "result with an image": Part(
        function_response=ToolResult("c1", "look", "seen", attachments=(Attachment("image/png", b"\x89PNG", "a.png"),))
    ),
    "result without images": Part(function_response=ToolResult("c1", "look", None, attachments=())),
    "image": Part(inline_data=Attachment("image/jpeg", bytes(range(256)))),
    "thought": Part.from_thought("hm", Signature("anthropic", "sig==")),
    "redacted": Part(thought="", signature=Signature("anthropic", "opaque", kind="redacted")),
}


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
@pytest.mark.parametrize("pinned", [False, True])
def test_every_kind_of_part(part: Part, pinned: bool) -> None:
    for role in Role:
        message = Message(role, (part,), pinned)
        assert decode_message(encode_message(message)) == message


def test_all_parts_at_once_and_none() -> None:
    for message in (Message(Role.MODEL, tuple(PARTS.values())), Message(Role.USER)):
        assert decode_message(encode_message(message)) == message


def test_a_tool_result_alone() -> None:
    for part in PARTS.values():
        if part.function_response is not None:
            assert decode_result(encode_result(part.function_response)) == part.function_response


def test_what_json_cannot_say_is_kept_as_text() -> None:
    result = ToolResult("c", "t", {"at": {1, 2}, "ok": 3})
    assert decode_result(encode_result(result)).result == {"at": "{1, 2}", "ok": 3}
