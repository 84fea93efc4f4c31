"""SubagentProfile: a named kind of subagent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

from shared.budget import Limits
from shared.definitions.profile_fields import FIELDS, Unfit, shown
from shared.definitions.source import CODE, Source
from shared.errors import ConfigError
from shared.gc.base import GCConfig

Effort = Literal["low", "medium", "high", "inherit"]
Visibility = Literal["user-facing", "internal"]


@dataclass(frozen=True)
class SubagentProfile:
    """What a subagent may use and how it works; lists and objects may be given as they are written in a file.

    None means: inherited from the caller, or no bound. `plugins` is a tuple of names or the word
    `inherit`; `tools` None is all tools of those plugins, an empty tuple none of them.
    """

    name: str
    description: str = ""
    plugins: tuple[str, ...] | Literal["inherit"] = ()
    tools: tuple[str, ...] | None = None
    disallowed_tools: tuple[str, ...] = ()
    plugin_configs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, hash=False)
    system_instructions: str | None = None
    skills: tuple[str, ...] = ()
    model: str | None = None
    provider: str | None = None
    fallback_models: tuple[str, ...] = ()
    temperature: float | None = None
    reasoning_effort: Effort | None = None
    max_output_tokens: int | None = None
    max_turns: int = 10
    timeout_seconds: float | None = None
    idle_timeout_seconds: float | None = 300.0
    budget: Limits | None = None
    auto_approved: bool = False
    visibility: Visibility = "user-facing"
    output_schema: Mapping[str, Any] | None = field(default=None, hash=False)
    emit_findings: bool = False
    gc: GCConfig | None = field(default=None, hash=False)
    icon: tuple[str, str, str] | None = None
    icon_name: str | None = None
    allow_agents: tuple[str, ...] = ("*",)
    max_children: int | None = None
    max_depth: int | None = None
    reuse: bool = False
    source: Source = field(default=CODE, compare=False)
    unmapped_tools: tuple[str, ...] = ()  # names of another host that may be known when an agent is started
    unmapped_denied: tuple[str, ...] = ()

    if TYPE_CHECKING:  # wider than the fields: what is given is made immutable below

        def __init__(
            self,
            name: str,
            description: str = "",
            plugins: Sequence[str] = (),
            tools: Sequence[str] | None = None,
            disallowed_tools: Sequence[str] | None = (),
            plugin_configs: Mapping[str, Mapping[str, Any]] = {},
            system_instructions: str | None = None,
            skills: Sequence[str] = (),
            model: str | None = None,
            provider: str | None = None,
            fallback_models: Sequence[str] = (),
            temperature: float | None = None,
            reasoning_effort: Effort | None = None,
            max_output_tokens: int | None = None,
            max_turns: int = 10,
            timeout_seconds: float | None = None,
            idle_timeout_seconds: float | None = 300.0,
            budget: Limits | Mapping[str, Any] | None = None,
            auto_approved: bool = False,
            visibility: Visibility = "user-facing",
            output_schema: Mapping[str, Any] | None = None,
            emit_findings: bool = False,
            gc: GCConfig | Mapping[str, Any] | str | None = None,
            icon: Sequence[str] | None = None,
            icon_name: str | None = None,
            allow_agents: Sequence[str] = ("*",),
            max_children: int | None = None,
            max_depth: int | None = None,
            reuse: bool = False,
            source: Source = CODE,
            unmapped_tools: tuple[str, ...] = (),
            unmapped_denied: tuple[str, ...] = (),
        ) -> None: ...

    def __post_init__(self) -> None:
        wrong: list[str] = []
        for name, convert in FIELDS.items():
            value = getattr(self, name)
            if value is _DEFAULTS[name]:  # most are, and a thousand profiles are read at once
                continue
            try:
                object.__setattr__(self, name, convert(value))
            except Unfit as error:
                wrong.append(f"'{name}' {error}")
        if wrong:
            raise ConfigError(f"profile {shown(self.name)}: {'; '.join(wrong)}")

    @property
    def inherits_plugins(self) -> bool:
        """Whether the plugins are those of the caller."""
        return self.plugins == "inherit"

    def as_dict(self) -> dict[str, Any]:
        """Every field as a file would have it, JSON throughout, and where the profile came from."""
        found = {name: _plain(getattr(self, name)) for name in FIELDS}
        return {**found, "source": str(self.source)}

    def summary(self) -> dict[str, Any]:
        """What a listing shows to a model that may delegate to it."""
        chosen = {key: value for key in ("model", "provider") if (value := getattr(self, key)) is not None}
        return {
            "name": self.name,
            "description": self.description,
            "plugins": _plain(self.plugins),
            **chosen,
            "max_turns": self.max_turns,
            "auto_approved": self.auto_approved,
            "source": self.source.kind,
        }


#: What needs no check; a field without a default has one that is never given.
_DEFAULTS = {each.name: each.default for each in fields(SubagentProfile)}


def _plain(value: Any) -> Any:
    if isinstance(value, Limits):
        return {key: _plain(amount) for key, amount in asdict(value).items() if amount is not None}
    if isinstance(value, GCConfig | Source):
        return _plain(asdict(value))
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
