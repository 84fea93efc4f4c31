"""Settings from `config.yaml` files, the environment and code, each with its origin."""

from __future__ import annotations

from shared.settings.load import config_paths, load_settings, survey
from shared.settings.origin import Origin
from shared.settings.settings import Settings

__all__ = ["Origin", "Settings", "config_paths", "load_settings", "survey"]
