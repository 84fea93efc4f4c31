"""Models as agents of other hosts name them: words for the newest of a kind, ids, or `provider/id`."""

from __future__ import annotations

from collections.abc import Mapping

#: What the short names stand for; they mean "the newest of its kind" and are raised with it.
ALIASES: Mapping[str, str] = {
    "sonnet": "claude-sonnet-4-6",
    "opus": "claude-opus-4-8",
    "haiku": "claude-haiku-4-5",
}
_PROVIDERS: Mapping[str, str] = {
    "anthropic": "anthropic",
    "google": "google_genai",
    "gemini": "google_genai",
    "google_genai": "google_genai",
    "openai": "openai_compatible",
    "openai_compatible": "openai_compatible",
}
_BY_PREFIX = {"claude-": "anthropic", "gemini-": "google_genai", "gpt-": "openai_compatible"}


def model_and_provider(text: str) -> tuple[str | None, str | None] | None:
    """The model and its provider; both None to inherit, None in all if there is no way to tell."""
    word = text.strip()
    if word.lower() in ("", "inherit", "default"):
        return None, None
    if (alias := ALIASES.get(word.lower())) is not None:
        return alias, "anthropic"
    head, slash, tail = word.partition("/")
    if slash:
        provider = _PROVIDERS.get(head.lower())
        return (tail, provider) if provider is not None and tail else None
    if not word.isprintable() or any(char in word for char in " |,"):
        return None
    provider = next((name for prefix, name in _BY_PREFIX.items() if word.startswith(prefix)), None)
    return (word, provider) if provider is not None or any(map(str.isdigit, word)) else None
