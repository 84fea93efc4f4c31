"""StandIn: what an agent holds in place of a provider while a recording answers for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shared.cancel import CancelToken
from shared.errors import ProviderError
from shared.providers.base import ModelRequest, OnChunk, Traits
from shared.types import ProviderResponse


class StandIn:
    """Has the name and the traits of a recorded provider, and can say nothing by itself."""

    def __init__(self, name: str, traits: Mapping[str, Any]) -> None:
        windows = tuple((prefix, size) for prefix, size in traits["context_windows"])
        self.name = name
        # Not governed: a recorded 429 must not slow down what does not call anybody.
        self.traits = Traits(**{**traits, "context_windows": windows, "governed": False})

    def generate(self, request: ModelRequest, *, cancel: CancelToken, on_chunk: OnChunk) -> ProviderResponse:
        """Answers come through the replay, and it is over."""
        raise ProviderError(
            f"{self.name}: the replay has ended; open sessions for real calls outside of it", provider=self.name
        )

    def list_models(self, prefix: str = "") -> list[str]:
        """Nothing is known of models."""
        return []

    def close(self) -> None:
        """Nothing to let go of."""
