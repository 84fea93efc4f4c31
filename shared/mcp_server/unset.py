"""UnsetProvider: stands in for a model that is not set up, and says what to do about it."""

from __future__ import annotations

from shared.cancel import CancelToken
from shared.errors import AuthFailed
from shared.providers.base import ModelRequest, OnChunk, Traits
from shared.types import ProviderResponse

NO_MODEL = (
    "no model is set: start the server with --provider and --model, or set JAATO_PROVIDER and MODEL_NAME for it, "
    "or choose a profile that names a provider and a model; `--provider script` tries it without a key"
)


class UnsetProvider:
    """Refuses every model call with one sentence; everything that needs no model works."""

    name = "unset"
    traits = Traits(governed=False, default_context_window=200_000)

    def __init__(self, missing: str) -> None:
        self._missing = missing

    def generate(self, request: ModelRequest, *, cancel: CancelToken, on_chunk: OnChunk) -> ProviderResponse:
        """Say what is missing."""
        raise AuthFailed(self._missing, provider=self.name)

    def list_models(self, prefix: str = "") -> list[str]:
        """None are known."""
        return []

    def close(self) -> None:
        """Nothing to let go of."""
