"""Scripted models: a file that nobody looked at plays the model only where the host works with scripts itself."""

from __future__ import annotations

from collections.abc import Iterable

from shared.definitions.profile import SubagentProfile
from shared.errors import SubagentConfigError

SCRIPT = "script"


def providers_of(profile: SubagentProfile) -> list[str]:
    """The providers that a profile names, those of its other models included."""
    others = [name.partition(":")[0] for name in profile.fallback_models if ":" in name]
    return [*([profile.provider] if profile.provider else []), *others]


def require_no_script(named: Iterable[str], *, own: str, where: str) -> None:
    """Refuse the provider `script` from a place that nobody vouched for: it would say whatever its author wrote.

    `own` is the provider that the host has chosen.
    """
    if own != SCRIPT and SCRIPT in named:
        raise SubagentConfigError(
            f"{where} names the provider 'script', so a file would act as the model; that counts only where you work "
            f"with scripts yourself (JAATO_PROVIDER=script)"
        )
