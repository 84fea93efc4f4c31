"""Optional packages: which extra brings each, and the one sentence for a feature that lacks its package."""

from __future__ import annotations

from collections.abc import Mapping

from shared.errors import MissingDependency

#: package → the extra of jaato-subagent that installs it
EXTRAS: Mapping[str, str] = {"ddgs": "web", "llama_cpp": "local", "mcp": "mcp", "opentelemetry": "otel"}


def install_command(package: str) -> str:
    """What to type to get a package."""
    extra = EXTRAS.get(package)
    return f"pip install 'jaato-subagent[{extra}]'" if extra else "pip install --upgrade jaato-subagent"


def missing(feature: str, error: ModuleNotFoundError) -> MissingDependency:
    """The error for a feature whose package is not installed; a module of our own that is missing is a bug."""
    package = (error.name or "").partition(".")[0]
    if package in ("", "shared"):
        raise error
    return MissingDependency(f"{feature} needs the package '{package}': {install_command(package)}")
