"""Inline settings: what one spawn may change; on top of a profile they narrow it, or choose what it leaves open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from shared.budget import KINDS, Limits
from shared.definitions.profile import SubagentProfile
from shared.definitions.profile_fields import FIELDS, Unfit
from shared.errors import SubagentConfigError, unknown_name

KEYS = (
    "plugins",
    "system_instructions",
    "max_turns",
    "model",
    "provider",
    "gc",
    "output_schema",
    "timeout_seconds",
    "budget",
)


def inline_settings(given: Mapping[str, Any] | None) -> dict[str, Any]:
    """An inline_config with the values that a profile would have; null says the same as leaving a field out."""
    made: dict[str, Any] = {}
    for key, value in (given or {}).items():
        if key not in KEYS:
            raise SubagentConfigError(f"inline_config: {unknown_name('field', str(key), KEYS)}")
        try:
            made[key] = FIELDS[key](value) if value is not None else None
        except Unfit as error:
            raise SubagentConfigError(f"inline_config.{key} {error}") from error
    left_out = (None, "inherit")
    return {key: value for key, value in made.items() if value not in left_out}


def narrowed(profile: SubagentProfile, inline: Mapping[str, Any]) -> SubagentProfile:
    """The profile with fewer plugins, lower limits, more instructions, and a choice where it makes none itself.

    A model or provider is a matter of cost, not of rights: a profile that names one keeps it, one
    that leaves it open may be given one. The same holds for the shape of the answer and for `gc`.
    """
    changes = {key: _narrowed(profile, key, value) for key, value in inline.items()}
    return replace(profile, **changes) if changes else profile


def _narrowed(profile: SubagentProfile, key: str, value: Any) -> Any:
    own = getattr(profile, key)
    match key:
        case "plugins":
            return _fewer(profile, value)
        case "max_turns" | "timeout_seconds":
            return value if own is None else min(value, own)
        case "budget":
            return value if own is None else _lower(own, value)
        case "system_instructions":
            return "\n\n".join(text for text in (own, value) if text)
    if own is not None and own != value:
        raise SubagentConfigError(
            f"inline_config.{key}: profile '{profile.name}' sets it already; with a profile, inline_config may only "
            f"narrow: leave it out, or spawn without the profile"
        )
    return value


def _fewer(profile: SubagentProfile, plugins: tuple[str, ...]) -> tuple[str, ...]:
    for name in plugins:
        if profile.plugins != "inherit" and name not in profile.plugins:
            raise SubagentConfigError(
                f"inline_config.plugins: profile '{profile.name}' does not have '{name}' (it has: "
                f"{', '.join(profile.plugins) or 'none'}); with a profile, inline_config may only narrow"
            )
    return plugins


def _lower(first: Limits, second: Limits) -> Limits:
    pairs = {kind: (getattr(first, kind), getattr(second, kind)) for kind in KINDS}
    return Limits(**{kind: min((v for v in pair if v is not None), default=None) for kind, pair in pairs.items()})
