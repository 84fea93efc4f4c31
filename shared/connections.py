"""Connections: which providers a runtime knows, with what settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from shared import config
from shared.providers import get_provider, known_providers
from shared.providers.base import Provider, ProviderConfig
from shared.providers.tap import provider_for


class Connections:
    """Settings by name of provider, and provider objects that a host brings itself."""

    def __init__(self, settings: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        self._configs = {name: ProviderConfig(**given) for name, given in (settings or {}).items()}
        self._given: dict[str, Provider] = {}
        self._place: tuple[str | None, str | None] = (None, None)  # project and location that were given in code
        self.is_connected = False

    def connect(self, name: str, project: str | None, location: str | None) -> None:
        """Take a project and a location: for this provider, and for all that have none of their own."""
        self.is_connected, self._place = True, (project, location)
        project, location = project or config.default_project(), location or config.default_location()
        known = self._configs.get(name, ProviderConfig())
        self._configs[name] = replace(known, project=project or known.project, location=location or known.location)

    def register(self, name: str, settings: ProviderConfig | Provider | None) -> None:
        """Take settings for a provider, or a provider object."""
        if isinstance(settings, ProviderConfig) or settings is None:
            if name not in known_providers():
                get_provider(name)  # raises, naming the known ones
            self._configs[name] = settings or ProviderConfig()
            self._given.pop(name, None)
        else:
            self._given[name] = settings

    def has(self, name: str) -> bool:
        """Whether a provider object was brought under this name."""
        return name in self._given

    def get(self, name: str, project: str | None = None, location: str | None = None) -> Provider:
        """The provider of that name, with this project and location if they are given."""
        return provider_for(name, lambda: self._real(name, project, location))

    def _real(self, name: str, project: str | None, location: str | None) -> Provider:
        if (given := self._given.get(name)) is not None:
            return given
        known, place = self._configs.get(name, ProviderConfig()), self._place
        project = project or known.project or place[0]
        location = location or known.location or place[1]
        if (project, location) != (known.project, known.location):
            known = replace(known, project=project, location=location)
        return get_provider(name, known)
