"""SubagentConfig: the settings of the subagent plugin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from shared.definitions.profile import SubagentProfile
from shared.definitions.profile_file import profile_from
from shared.errors import ConfigError, unknown_name


@dataclass
class SubagentConfig:
    """What `initialize` takes; everything has a default."""

    project: str | None = None
    location: str | None = None
    default_model: str | None = None
    default_provider: str | None = None
    profiles: dict[str, SubagentProfile] = field(default_factory=dict)
    allow_inline: bool = True
    inline_allowed_plugins: list[str] = field(default_factory=list)
    auto_discover_profiles: bool = True
    profiles_dir: str = ".jaato/profiles"
    extra_dirs: list[str] = field(default_factory=list)
    allowed_variables: list[str] = field(default_factory=list)
    max_concurrent: int = 8
    max_depth: int = 1
    max_children: int = 16
    max_total_spawns: int = 200
    result_tokens: int = 4000  # of one answer to the parent; the rest is paged
    digest_tokens: int = 2000  # of one announcement of finished background runs

    @staticmethod
    def from_dict(given: Mapping[str, Any]) -> SubagentConfig:
        """Settings from a mapping; a wrong key or value is an error that names it."""
        known = [each.name for each in fields(SubagentConfig)]
        for key in given:
            if key not in known:
                raise ConfigError(f"plugin 'subagent': {unknown_name('setting', key, known)}")
        settings = {key: value for key, value in given.items() if key != "profiles"}
        for key in (
            "max_concurrent",
            "max_children",
            "max_total_spawns",
            "max_depth",
            "result_tokens",
            "digest_tokens",
        ):
            value = settings.get(key, 1)
            if not isinstance(value, int) or isinstance(value, bool) or value < (0 if key == "max_depth" else 1):
                raise ConfigError(f"plugin 'subagent': {key} must be a whole number of at least 1, got {value!r}")
        config = SubagentConfig(**settings)
        for name, profile in dict(given.get("profiles") or {}).items():
            config.add_profile(profile if isinstance(profile, SubagentProfile) else profile_from(name, profile))
        return config

    def add_profile(self, profile: SubagentProfile) -> None:
        """Add or replace a profile from code."""
        self.profiles[profile.name] = profile

    def get_profile(self, name: str) -> SubagentProfile | None:
        """The profile from code of that name."""
        return self.profiles.get(name)
