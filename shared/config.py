"""Settings from outside: the only place that reads environment variables."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from shared.errors import ConfigError


def env(name: str, *fallbacks: str) -> str | None:
    """The first of these environment variables that is set and not empty."""
    for candidate in (name, *fallbacks):
        if value := os.environ.get(candidate, "").strip():
            return value
    return None


def default_provider() -> str:
    """The provider of a client that was given none (`JAATO_PROVIDER`)."""
    return env("JAATO_PROVIDER") or "google_genai"


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


def trace_path() -> Path | None:
    """Where the debug trace goes (`JAATO_TRACE_LOG`); None when it is set to nothing."""
    given = os.environ.get("JAATO_TRACE_LOG")
    if given is None:
        return Path(tempfile.gettempdir()) / "rich_client_trace.log"
    return Path(given).expanduser() if given.strip() else None


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


def retry_settings() -> dict[str, float]:
    """How patiently model calls are tried again, where the user says so (`AI_RETRY_…`)."""
    names = {"attempts": "AI_RETRY_ATTEMPTS", "base_delay": "AI_RETRY_BASE_DELAY", "max_delay": "AI_RETRY_MAX_DELAY"}
    found: dict[str, float] = {}
    for field, name in names.items():
        if (value := env(name)) is None:
            continue
        try:
            found[field] = float(value)
        except ValueError:
            raise ConfigError(f"{name} must be a number, not '{value}'") from None
    return found
