"""Settings from outside: the only place that reads environment variables."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from shared.errors import ConfigError


def env(name: str, *fallbacks: str) -> str | None:
    """The first of these environment variables that is set and not empty."""
    for candidate in (name, *fallbacks):
        if value := os.environ.get(candidate, "").strip():
            return value
    return None


def default_model() -> str | None:
    """The model of a client that was given none (`MODEL_NAME`)."""
    return env("MODEL_NAME")


def default_project() -> str | None:
    """The cloud project of a client that was given none (`PROJECT_ID`)."""
    return env("PROJECT_ID")


def default_location() -> str | None:
    """The cloud region of a client that was given none (`LOCATION`)."""
    return env("LOCATION")


def jaato_home() -> Path:
    """The user's own folder of profiles, plugins and trust records (`JAATO_HOME`)."""
    return Path(env("JAATO_HOME") or Path.home() / ".jaato").expanduser()


def user_home() -> Path:
    """The user's home folder, where other hosts keep their agents and skills."""
    return Path.home()


def default_trace_path() -> Path:
    """Where the debug trace goes when nobody says anything."""
    return Path(tempfile.gettempdir()) / "rich_client_trace.log"


def search_url() -> str | None:
    """The SearXNG-style search service of the web_search plugin (`JAATO_SEARCH_URL`)."""
    return env("JAATO_SEARCH_URL")


def environment() -> dict[str, str]:
    """A copy of all environment variables, for programs that a tool starts."""
    return dict(os.environ)


def anthropic_api_key() -> str | None:
    """The key for Claude models (`ANTHROPIC_API_KEY`)."""
    return env("ANTHROPIC_API_KEY")


def anthropic_auth_token() -> str | None:
    """A bearer token for Claude models, used when there is no key (`ANTHROPIC_AUTH_TOKEN`)."""
    return env("ANTHROPIC_AUTH_TOKEN")


def anthropic_base_url() -> str | None:
    """Where the Anthropic API is (`ANTHROPIC_BASE_URL`)."""
    return env("ANTHROPIC_BASE_URL")


def permission_config_path() -> Path | None:
    """The permission policy that beats every other file (`PERMISSION_CONFIG_PATH`)."""
    given = env("PERMISSION_CONFIG_PATH")
    return Path(given).expanduser() if given else None


def google_api_key() -> str | None:
    """The key for Gemini models (`GOOGLE_API_KEY`, `GEMINI_API_KEY`)."""
    return env("GOOGLE_API_KEY", "GEMINI_API_KEY")


def google_base_url(*, vertex: bool) -> str | None:
    """Where Gemini is (`GOOGLE_GEMINI_BASE_URL`, on Vertex `GOOGLE_VERTEX_BASE_URL`)."""
    return env("GOOGLE_VERTEX_BASE_URL" if vertex else "GOOGLE_GEMINI_BASE_URL")


def google_project() -> str | None:
    """The Google Cloud project for Vertex (`GOOGLE_CLOUD_PROJECT`, `PROJECT_ID`)."""
    return env("GOOGLE_CLOUD_PROJECT", "PROJECT_ID")


def google_location() -> str | None:
    """The Google Cloud region for Vertex (`GOOGLE_CLOUD_LOCATION`, `LOCATION`)."""
    return env("GOOGLE_CLOUD_LOCATION", "LOCATION")


def google_use_vertex() -> bool | None:
    """Google's own switch between API key and Vertex; None when it is not set."""
    value = env("GOOGLE_GENAI_USE_ENTERPRISE", "GOOGLE_GENAI_USE_VERTEXAI")
    return value.lower() in ("true", "1") if value is not None else None


def openai_api_key() -> str | None:
    """The key for OpenAI and compatible servers (`OPENAI_API_KEY`)."""
    return env("OPENAI_API_KEY")


def openai_base_url() -> str | None:
    """Where the chat completions server is (`OPENAI_BASE_URL`)."""
    return env("OPENAI_BASE_URL")


def ollama_host() -> str | None:
    """Where the user's Ollama listens, as its own tools read it (`OLLAMA_HOST`)."""
    return env("OLLAMA_HOST")


def otel_enabled() -> bool:
    """Whether every runtime reports OpenTelemetry spans (`JAATO_OTEL=on`)."""
    value = (env("JAATO_OTEL") or "off").lower()
    if value not in ("on", "1", "true", "yes", "off", "0", "false", "no"):
        raise ConfigError(f"JAATO_OTEL: expected 'on' or 'off', got '{value}'")
    return value in ("on", "1", "true", "yes")


def otel_content() -> bool:
    """Whether spans may hold what was said (`OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`)."""
    return (env("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT") or "").lower() in ("true", "1", "span_only")


def mcp_token() -> str | None:
    """The bearer token of `jaato mcp --http` (`JAATO_MCP_TOKEN`)."""
    return env("JAATO_MCP_TOKEN")


def mcp_conversation() -> str | None:
    """The conversation that `jaato mcp` goes on with on standard input and output (`JAATO_MCP_CONVERSATION`)."""
    return env("JAATO_MCP_CONVERSATION")


def config_overlay() -> Path | None:
    """The settings file that covers those of the project and the user (`JAATO_CONFIG`)."""
    given = env("JAATO_CONFIG")
    return Path(given).expanduser() if given else None


#: Settings, by the way to them in a settings file, that environment variables decide.
SETTING_VARIABLES: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("provider",): ("JAATO_PROVIDER",),
    ("model",): ("MODEL_NAME",),
    ("project",): ("PROJECT_ID", "GOOGLE_CLOUD_PROJECT"),
    ("location",): ("LOCATION", "GOOGLE_CLOUD_LOCATION"),
    ("permissions",): ("PERMISSION_CONFIG_PATH",),
    ("trace",): ("JAATO_TRACE_LOG",),
    ("store",): ("JAATO_STORE",),
    ("retry", "attempts"): ("AI_RETRY_ATTEMPTS",),
    ("retry", "base_delay"): ("AI_RETRY_BASE_DELAY",),
    ("retry", "max_delay"): ("AI_RETRY_MAX_DELAY",),
    ("providers", "anthropic", "api_key"): ("ANTHROPIC_API_KEY",),
    ("providers", "anthropic", "base_url"): ("ANTHROPIC_BASE_URL",),
    ("providers", "google_genai", "api_key"): ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    ("providers", "google_genai", "base_url"): ("GOOGLE_GEMINI_BASE_URL",),
    ("providers", "google_genai", "project"): ("GOOGLE_CLOUD_PROJECT",),
    ("providers", "google_genai", "location"): ("GOOGLE_CLOUD_LOCATION",),
    ("providers", "google_genai", "credentials_path"): ("GOOGLE_APPLICATION_CREDENTIALS",),
    ("providers", "openai_compatible", "api_key"): ("OPENAI_API_KEY",),
    ("providers", "openai_compatible", "base_url"): ("OPENAI_BASE_URL",),
}


def settings_from_environment() -> Iterator[tuple[tuple[str, ...], str, str]]:
    """The settings that environment variables decide: the way to each, the variable, and its text."""
    for place, names in SETTING_VARIABLES.items():
        for name in names:
            if (value := env(name)) is not None:
                yield place, name, value
                break
    if os.environ.get("JAATO_TRACE_LOG") is not None and env("JAATO_TRACE_LOG") is None:
        yield ("trace",), "JAATO_TRACE_LOG", ""  # set to nothing: switched off


def secret_values() -> frozenset[str]:
    """What environment variables with a telling name hold, so that it can be kept out of files."""
    telling = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIALS")
    return frozenset(
        value for name, value in os.environ.items() if name.upper().endswith(telling) and len(value.strip()) >= 8
    )
