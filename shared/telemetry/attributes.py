"""The names that the GenAI semantic conventions give to what we know."""

from __future__ import annotations

from collections.abc import Mapping

from shared.types import TokenUsage

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
REQUEST_MODEL = "gen_ai.request.model"
RESPONSE_MODEL = "gen_ai.response.model"
FINISH_REASONS = "gen_ai.response.finish_reasons"
AGENT_ID = "gen_ai.agent.id"
AGENT_NAME = "gen_ai.agent.name"
CONVERSATION = "gen_ai.conversation.id"
TOOL_NAME = "gen_ai.tool.name"
TOOL_CALL_ID = "gen_ai.tool.call.id"
TOOL_TYPE = "gen_ai.tool.type"
TOOL_ARGUMENTS = "gen_ai.tool.call.arguments"
TOOL_RESULT = "gen_ai.tool.call.result"
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
ERROR_TYPE = "error.type"

# Ours, where the conventions have no name.
STATUS = "jaato.run.status"
PROFILE = "jaato.agent.profile"
PARENT_ID = "jaato.agent.parent_id"
BACKGROUND = "jaato.run.background"
TURNS = "jaato.run.turns"
PURPOSE = "jaato.call.purpose"
RETRIES = "jaato.call.retries"

#: Our providers by the conventions' names; any other goes by its own.
_PROVIDERS = {"google_genai": "gcp.gen_ai", "openai_compatible": "openai"}
#: Models inside this process: a call to them leaves nothing that a client span would describe.
IN_PROCESS = frozenset({"local", "script"})

Attributes = dict[str, str | bool | int | float | list[str]]


def provider_name(name: str) -> str:
    """A provider as the conventions call it."""
    return _PROVIDERS.get(name, name)


def usage_attributes(usage: TokenUsage) -> Attributes:
    """Tokens; those of a cache only where there is one."""
    made: Attributes = {
        "gen_ai.usage.input_tokens": usage.prompt_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
    }
    if usage.cache_read_tokens:
        made["gen_ai.usage.cache_read.input_tokens"] = usage.cache_read_tokens
    if usage.cache_write_tokens:
        made["gen_ai.usage.cache_write.input_tokens"] = usage.cache_write_tokens
    return made


def known(attributes: Mapping[str, str | bool | int | float | list[str] | None]) -> Attributes:
    """Only what has a value."""
    return {name: value for name, value in attributes.items() if value is not None and value != ""}
