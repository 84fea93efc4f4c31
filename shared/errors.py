"""Every exception the package raises, in one tree.

    JaatoError
    ├── ConfigError              a setting, file or argument of the developer is wrong
    │   └── MissingDependency    an optional package is not installed
    ├── SessionBusy              two turns at once on one session
    ├── PluginError              a plugin is unknown, broken or clashes with another
    ├── ToolError                a tool call failed; the model reads the text
    │   ├── UnknownTool
    │   ├── ToolArgumentError    the arguments do not fit the schema
    │   ├── ToolDenied           permission, hook or required_agent said no
    │   ├── ToolTimeout
    │   └── VersionConflict      a shared value changed since it was read
    ├── PolicyError              a permission policy cannot be read
    ├── SubagentError            a subagent could not be started, found or awaited
    │   ├── SubagentConfigError     a profile, plugin, tool or argument is wrong
    │   ├── SubagentNotFoundError   no agent of that id or name
    │   ├── SubagentNestingError    a limit on depth, children or spawns
    │   └── SubagentTimeoutError    it took longer than one would wait
    ├── SkillError               a skill could not be found, read, checked or used
    │   ├── SkillNotFoundError      no skill of that name or at that place
    │   ├── SkillParseError         its text cannot be read
    │   ├── SkillValidationError    its fields or its arguments are wrong, or it may not be used so
    │   ├── SkillLoadError          its files cannot be read, fetched or put in place
    │   └── SkillConflictError      two skills of equal rank have one name
    ├── StoreError               the store of runs cannot be opened, read or written
    │   ├── StoreLocked             another process keeps it locked
    │   ├── StoreFull               the disk is full
    │   └── StoreCorrupt            the file is damaged, or no store
    ├── BudgetExceeded           a token, cost, call or spawn budget has no room
    ├── CancelledException       the work was cancelled
    └── ProviderError            a model call failed
        ├── RateLimited          429: too many requests (retryable, retry_after)
        ├── Overloaded           529 or 503: the service is busy (retryable)
        ├── ServerFailed         other 5xx (retryable)
        ├── ConnectionFailed     no connection, dropped, silent (retryable)
        │   └── IncompleteStream the stream ended without its closing event (retryable)
        ├── ContextOverflow      the prompt is too long for the model
        ├── AuthFailed           missing or refused credentials
        ├── ModelNotFound        no such model at this provider
        ├── BadRequest           the provider refused the request as malformed
        ├── Refused              the model or its safety filter declined
        └── ReplayMismatch       a replayed agent asked for something that was not recorded

All of them pickle: `args` holds the message, everything else is a plain attribute.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shared.types import TokenUsage


class JaatoError(Exception):
    """Root of all errors of this package; its text is one readable sentence."""


class ConfigError(JaatoError):
    """A setting, file or argument given by the developer or user is wrong."""


class MissingDependency(ConfigError):
    """A feature needs a package that is not installed."""


class SessionBusy(JaatoError):
    """A session runs one turn at a time."""


class PluginError(JaatoError):
    """A plugin is unknown, broken, or clashes with another one."""


class ToolError(JaatoError):
    """A tool could not do its work; the text is for the model."""


class UnknownTool(ToolError):
    """The model named a tool that this agent does not have."""


class ToolArgumentError(ToolError):
    """The arguments of a call do not fit the tool's schema."""


class ToolDenied(ToolError):
    """The call was not allowed."""


class ToolTimeout(ToolError):
    """The tool took longer than it may."""


class VersionConflict(ToolError):
    """A shared value changed since it was read; `current` is its version now."""

    def __init__(self, message: str = "", *, current: int = 0) -> None:
        super().__init__(message)
        self.current = current


class PolicyError(JaatoError):
    """A permission policy is broken; until it is mended everything is denied."""


class SubagentError(JaatoError):
    """A subagent could not be started, found or awaited."""


class SubagentConfigError(SubagentError, ConfigError):
    """A profile, plugin, tool or argument of a spawn is wrong; nothing was started."""


class SubagentNotFoundError(SubagentError):
    """There is no agent of that id or name."""


class SubagentNestingError(SubagentError):
    """A limit on depth, children or spawns is reached; nothing was started."""


class SubagentTimeoutError(SubagentError):
    """A subagent took longer than the caller would wait."""


class SkillError(JaatoError):
    """A skill could not be found, read, checked or used."""


class SkillNotFoundError(SkillError):
    """There is no skill of that name, or at that place."""


class SkillParseError(SkillError):
    """The text of a skill cannot be read."""


class SkillValidationError(SkillError):
    """A skill's fields are wrong, or it may not be used in this way."""


class SkillLoadError(SkillError):
    """The files of a skill cannot be read, fetched or put in place."""


class SkillConflictError(SkillError):
    """Two skills of equal rank have one name."""


class StoreError(JaatoError):
    """The store of runs cannot be opened, read or written."""


class StoreLocked(StoreError):
    """Another process keeps the store locked."""


class StoreFull(StoreError):
    """The disk has no room for the store, or cannot be written."""


class StoreCorrupt(StoreError):
    """The file is damaged, or not a store of runs."""


class BudgetExceeded(JaatoError):
    """A budget has no room for what was asked."""

    def __init__(self, message: str = "", *, limit: str = "") -> None:
        super().__init__(message)
        self.limit = limit


class CancelledException(JaatoError):
    """The work was cancelled; the message says by what."""

    def __init__(self, message: str = "cancelled", *, usage: TokenUsage | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.usage = usage  # tokens already spent on a cancelled model call, where known


class ProviderError(JaatoError):
    """A model call failed. `retryable` says whether the same request may succeed later."""

    retryable = False

    def __init__(
        self,
        message: str = "",
        *,
        provider: str = "",
        status: int | None = None,
        retry_after: float | None = None,
        request_id: str | None = None,
        usage: TokenUsage | None = None,
    ) -> None:
        super().__init__(message)
        self.provider = provider
        self.status = status
        self.retry_after = retry_after
        self.request_id = request_id
        self.usage = usage  # tokens already spent on the failed attempt, where known


class RateLimited(ProviderError):
    """Too many requests; `retry_after` is what the service asked for."""

    retryable = True


class Overloaded(ProviderError):
    """The service is too busy."""

    retryable = True


class ServerFailed(ProviderError):
    """The service failed."""

    retryable = True


class ConnectionFailed(ProviderError):
    """The connection could not be made, broke, or stayed silent."""

    retryable = True


class IncompleteStream(ConnectionFailed):
    """A stream ended without its closing event, so the answer is not whole."""


class ContextOverflow(ProviderError):
    """The prompt does not fit into the model's context."""


class AuthFailed(ProviderError):
    """Credentials are missing or were refused."""


class ModelNotFound(ProviderError):
    """The provider does not know the model."""


class BadRequest(ProviderError):
    """The provider refused the request as malformed."""


class Refused(ProviderError):
    """The model or its safety filter declined to answer."""


class ReplayMismatch(ProviderError):
    """A replayed agent asked for something that was not recorded; the text has the nearest match and a diff."""


def unknown_name(kind: str, name: str, known: Iterable[str], *, hint: str = "") -> str:
    """The sentence for an unknown name: what it was, what was probably meant, what there is."""
    names = sorted(set(known))
    close = get_close_matches(name, names, n=1, cutoff=0.6)
    guess = f" Did you mean '{close[0]}'?" if close else ""
    listing = f" Known: {', '.join(names)}." if names else " None are known."
    return f"unknown {kind} '{name}'.{guess}{listing}{' ' + hint if hint else ''}"
