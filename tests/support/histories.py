"""Histories for tests of context collection: hand-made ones, and a hypothesis strategy over all valid ones."""

from __future__ import annotations

import itertools

from hypothesis import strategies as st

from shared.types import Attachment, FunctionCall, Message, Part, Role, Signature, ToolResult

_ids = itertools.count()


def user(text: str, *, pinned: bool = False) -> Message:
    """What a person says."""
    return Message.from_text(Role.USER, text, pinned=pinned)


def says(text: str, *, pinned: bool = False) -> Message:
    """What the model answers."""
    return Message.from_text(Role.MODEL, text, pinned=pinned)


def round_of(*results: str, text: str = "", pinned: Role | None = None) -> list[Message]:
    """A model message with one call per result, and the message that answers them."""
    ids = [f"call-{next(_ids)}" for _ in results]
    calls = [Part(function_call=FunctionCall(call, "read", {"path": f"{call}.txt"})) for call in ids]
    answers = [Part(function_response=ToolResult(call, "read", r)) for call, r in zip(ids, results, strict=True)]
    lead = [Part(text=text)] if text else []
    return [
        Message(Role.MODEL, (*lead, *calls), pinned is Role.MODEL),
        Message(Role.TOOL, tuple(answers), pinned is Role.TOOL),
    ]


def long_turn(rounds: int, *, size: int = 300, task: str = "Do the task") -> list[Message]:
    """One user message and many rounds of tool calls."""
    made = [user(task)]
    for number in range(rounds):
        made += round_of(f"result {number} " + "x" * size)
    return made


_words = st.one_of(st.text(max_size=30), st.integers(40, 1_500).map(lambda n: "lorem ipsum " * (n // 12)))
_pinned = st.sampled_from([False] * 9 + [True])
_image = Attachment("image/png", b"\x89PNG")
_thoughts = st.sampled_from(
    [
        (),
        (Part.from_thought("let me think", Signature("anthropic", "c2lnbmF0dXJl")),),
        (Part(thought="", signature=Signature("anthropic", "xx", "redacted")),),
        (Part(text="so", signature=Signature("google_genai", b"\x00\x01")),),
    ]
)
_results = st.one_of(
    _words,
    st.integers(2_000, 40_000).map(lambda n: "y" * n),
    st.dictionaries(st.sampled_from("abc"), st.one_of(st.integers(), _words), max_size=3),
)


@st.composite
def _call_rounds(draw: st.DrawFn) -> list[Message]:
    count = draw(st.integers(1, 3))
    ids = [f"call-{next(_ids)}" for _ in range(count)]
    calls = [Part(function_call=FunctionCall(call, "tool", {"q": draw(_words)})) for call in ids]
    answers = [
        Part(
            function_response=ToolResult(
                call, "tool", draw(_results), draw(_pinned), (_image,) if draw(_pinned) else None
            )
        )
        for call in ids
    ]
    model = Message(Role.MODEL, (*draw(_thoughts), *calls), draw(_pinned))
    if count > 1 and draw(st.booleans()):  # results may come in several messages
        return [model, *(Message(Role.TOOL, (answer,), draw(_pinned)) for answer in answers)]
    return [model, Message(Role.TOOL, tuple(answers), draw(_pinned))]


_users = st.builds(
    lambda text, pinned, image: Message(
        Role.USER, (Part(text=text), *((Part(inline_data=_image),) if image else ())), pinned
    ),
    _words,
    _pinned,
    _pinned,
)
_answers = st.builds(
    lambda thoughts, text, pinned: Message(Role.MODEL, (*thoughts, Part(text=text)), pinned), _thoughts, _words, _pinned
)
_steps = st.one_of(
    _call_rounds(),
    _call_rounds(),
    _answers.map(lambda m: [m]),
    st.lists(_users, min_size=1, max_size=3),
)


@st.composite
def histories(draw: st.DrawFn, max_steps: int = 25) -> list[Message]:
    """Any valid history: begins with a user, each call has one result; anything else may happen."""
    steps = draw(st.lists(_steps, max_size=max_steps))
    return [draw(_users), *(message for step in steps for message in step)]
