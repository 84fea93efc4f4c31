"""Providers by name: a table of dotted paths, imported on first use, one instance per credentials."""

from __future__ import annotations

import importlib
import threading
from dataclasses import fields

from shared.config import env
from shared.errors import ConfigError, unknown_name
from shared.extras import missing
from shared.providers.base import Provider, ProviderConfig, ProviderFactory

#: name → (module, class, environment variables that change what a client talks to)
BUILTIN: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "anthropic": (
        "shared.providers.anthropic",
        "AnthropicProvider",
        ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL"),
    ),
    "google_genai": (
        "shared.providers.google_genai",
        "GoogleGenAIProvider",
        (
            *("GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL", "GOOGLE_APPLICATION_CREDENTIALS"),
            *("GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION", "PROJECT_ID", "LOCATION", "GOOGLE_VERTEX_BASE_URL"),
            *("GOOGLE_GENAI_USE_ENTERPRISE", "GOOGLE_GENAI_USE_VERTEXAI"),
        ),
    ),
    "openai_compatible": (
        "shared.providers.openai_compatible",
        "OpenAICompatibleProvider",
        ("OPENAI_API_KEY", "OPENAI_BASE_URL"),
    ),
    "local": ("shared.providers.local", "LocalProvider", ()),
    "script": ("shared.providers.script", "ScriptProvider", ("JAATO_SCRIPT",)),
}

_lock = threading.Lock()
_custom: dict[str, ProviderFactory] = {}
_instances: dict[tuple[str, ...], Provider] = {}


def known_providers() -> list[str]:
    """Names of all providers that can be used."""
    return [*BUILTIN, *_custom]


def add_provider(name: str, factory: ProviderFactory) -> None:
    """Make a provider of one's own known under a name."""
    if name in BUILTIN:
        raise ConfigError(f"provider '{name}' is built in; choose another name")
    _custom[name] = factory


def get_provider(name: str, config: ProviderConfig | None = None) -> Provider:
    """The one instance for this name and these credentials in the whole process."""
    config = config or ProviderConfig()
    if name not in BUILTIN and name not in _custom:
        raise ConfigError(unknown_name("provider", name, known_providers()))
    key = _key(name, config)
    with _lock:
        if key in _instances:
            return _instances[key]
    try:
        made = _factory(name)(config)  # may import an SDK: not under the lock
    except ModuleNotFoundError as error:
        raise missing(f"provider '{name}'", error) from error
    with _lock:
        provider = _instances.setdefault(key, made)
    if provider is not made:
        made.close()
    return provider


def _factory(name: str) -> ProviderFactory:
    if name in _custom:
        return _custom[name]
    module, cls, _ = BUILTIN[name]
    factory: ProviderFactory = getattr(importlib.import_module(module), cls)
    return factory


def _key(name: str, config: ProviderConfig) -> tuple[str, ...]:
    """What makes two clients different: the settings, and the credentials they would find outside."""
    variables = BUILTIN[name][2] if name in BUILTIN else ()
    outside = [f"{variable}={env(variable)}" for variable in variables]
    return (name, *(f"{field.name}={getattr(config, field.name)!r}" for field in fields(config)), *outside)
