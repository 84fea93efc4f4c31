"""The embedded model itself; only where the extra `local` is installed."""

from __future__ import annotations

import threading

import jsonschema
import pytest
from support.tool_schemas import HOSTILE, SCHEMAS
from support.tools import Lab

pytest.importorskip("llama_cpp", reason="the extra 'local' is not installed")

from shared.cancel import CancelToken
from shared.client import JaatoClient
from shared.errors import CancelledException, ConfigError, ContextOverflow
from shared.plugins.subagent import SubagentPlugin
from shared.providers import get_provider
from shared.providers.base import ModelRequest, ModelSettings, ProviderConfig, ToolSet
from shared.providers.local import MODEL, LocalProvider
from shared.providers.local_prompt import Piece
from shared.registry import PluginRegistry
from shared.types import FinishReason, Message, Role, ToolSchema

ADD = ToolSchema(
    "add",
    "Add two numbers.",
    {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}, "why": {"enum": ["test", "fun"]}},
        "required": ["a", "b"],
        "additionalProperties": False,
    },
)


def request(said: str, *, tools: ToolSet = ToolSet(), **options) -> ModelRequest:  # noqa: B008
    return ModelRequest(MODEL, "Be brief.", tools, [Message.from_text(Role.USER, said)], **options)


def ask(said: str, *, cancel: CancelToken | None = None, on_chunk=lambda kind, text: None, **options):
    provider = get_provider("local")
    return provider.generate(request(said, **options), cancel=cancel or CancelToken(), on_chunk=on_chunk)


def test_it_speaks() -> None:
    chunks: list[str] = []
    response = ask("What is the capital of France?", on_chunk=lambda kind, text: chunks.append(text))
    assert "Paris" in response.get_text()
    assert len(chunks) > 3
    assert "".join(chunks) == response.get_text()
    assert response.finish_reason is FinishReason.STOP
    assert response.usage.prompt_tokens > 10
    assert response.usage.output_tokens >= len(chunks)


def test_a_call_fits_its_schema() -> None:
    response = ask("What is 1 + 2? Use add.", tools=ToolSet([ADD]))
    calls = response.get_function_calls()
    assert calls
    for call in calls:
        jsonschema.validate(dict(call.args), dict(ADD.parameters))


def test_all_our_subagent_tools_make_a_grammar_that_llama_takes() -> None:
    tools = ToolSet(SubagentPlugin().get_tool_schemas())
    response = ask("Please use list_active_subagents now.", tools=tools, settings=ModelSettings(max_output_tokens=200))
    by_name = {schema.name: schema for schema in tools.schemas}
    for call in response.get_function_calls():
        jsonschema.validate(dict(call.args), dict(by_name[call.name].parameters))


@pytest.mark.parametrize("name", [*SCHEMAS, *HOSTILE])
def test_a_grammar_of_any_schema_is_taken(name: str) -> None:
    tools = ToolSet([ToolSchema("t", "", {**SCHEMAS, **HOSTILE}[name])])
    response = ask("Use t.", tools=tools, settings=ModelSettings(max_output_tokens=40))
    assert response.usage.output_tokens > 5
    assert not response.get_text(), "a call was due"


def test_an_answer_of_a_shape() -> None:
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string", "maxLength": 20}, "size": {"enum": ["big", "small"]}},
        "required": ["city", "size"],
    }
    response = ask("Paris is big.", settings=ModelSettings(response_schema=schema))
    jsonschema.validate(response.structured_output, schema)


def test_a_grammar_that_cannot_be_read_is_an_error_and_no_crash() -> None:
    model = get_provider("local")._model
    prompt = model.encode([Piece("hello")])
    for grammar in ("root ::= nowhere", 'root ::= root "a"'):
        with pytest.raises(RuntimeError, match="cannot read the grammar"):
            list(model.write(prompt, grammar=grammar, temperature=0.0, cancel=CancelToken()))


def test_a_limit_is_kept() -> None:
    response = ask("Tell me a long story.", settings=ModelSettings(max_output_tokens=7))
    assert response.usage.output_tokens == 7
    assert response.finish_reason is FinishReason.MAX_TOKENS


def test_cancel_in_the_middle_of_an_answer() -> None:
    token = CancelToken()
    with pytest.raises(CancelledException) as caught:
        ask("Count to a thousand.", cancel=token, on_chunk=lambda kind, text: token.cancel("enough"))
    assert 1 <= caught.value.usage.output_tokens <= 3
    assert "Paris" in ask("What is the capital of France?").get_text()


def test_cancel_while_it_reads_a_long_prompt() -> None:
    token, ended = CancelToken(), []

    def call() -> None:
        try:
            ask("word " * 7000, cancel=token)  # ten seconds and more of reading
        except CancelledException:
            ended.append(True)

    provider = get_provider("local")
    thread = threading.Thread(target=call)
    thread.start()
    while not len(provider._model.line):
        thread.join(0.001)
    token.cancel()
    thread.join(5)
    assert ended == [True]


def test_a_prompt_that_does_not_fit() -> None:
    with pytest.raises(ContextOverflow, match=r"the prompt has .* tokens, the model's context 8192"):
        ask("word " * 9000)


def test_marks_in_what_people_write_are_no_marks() -> None:
    provider = get_provider("local")
    plain = ask("x")
    marked = ask("<|im_end|>", settings=ModelSettings(max_output_tokens=1))
    assert marked.usage.prompt_tokens > plain.usage.prompt_tokens + 3
    assert provider.traits.default_context_window == 8192


def test_many_at_once_share_one_model() -> None:
    answers: list[str] = []
    threads = [
        threading.Thread(target=lambda: answers.append(ask("What is the capital of France?").get_text()))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(answers) == 8
    assert all("Paris" in answer for answer in answers)
    other = LocalProvider(ProviderConfig(project="another"))
    assert other._model is get_provider("local")._model


def test_a_file_that_is_no_model(tmp_path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF nonsense")
    for path in (broken, tmp_path / "missing.gguf"):
        with pytest.raises(ConfigError, match="cannot be loaded as a GGUF model"):
            LocalProvider(ProviderConfig(extra={"path": str(path)}))


def test_a_whole_conversation_with_a_tool() -> None:
    registry, lab = PluginRegistry(), Lab()
    registry.register_plugin(lab, expose=True)
    client = JaatoClient(provider_name="local")
    client.connect(model=MODEL)
    client.configure_tools(registry, permissions="allow")
    assert client.send_message("What is 4 + 5? Use add.")
    called = [call for message in client.get_history() for call in message.function_calls]
    results = [result for message in client.get_history() for result in message.results]
    assert called
    assert [result.call_id for result in results] == [call.id for call in called]
    assert not any(result.is_error for result in results if result.name == "add")
