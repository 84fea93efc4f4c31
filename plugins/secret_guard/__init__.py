"""Secret guard: what a tool gives back reaches the model without credentials in it."""

from __future__ import annotations

from typing import Any

from shared.command_environment import is_secret
from shared.config import environment
from shared.folder_plugins.api import PluginAPI

from .files import CONTENTS, SecretFiles
from .names import secret_names
from .patterns import FILES, HARMLESS, compiled
from .redactor import MARK, Redactor


def register(api: PluginAPI) -> None:
    """Set the hooks: one looks at calls before they run, one at what they gave."""
    files = SecretFiles((*FILES, *api.config["block"]), (*HARMLESS, *api.config["allow"]))
    known = [value for name, value in environment().items() if is_secret(name, "")]
    redactor = Redactor(compiled(api.config["patterns"]), known)

    def check(tool_name: str, args: dict[str, Any]) -> dict[str, Any] | None:
        if tool_name == secret_names.__name__:
            return None
        if mark := next(_marks(args), None):
            return _refusal(f"{mark} stands for a secret; writing it would put the mark in the place of the real value")
        if reason := files.reason(args):
            return _refusal(f"{reason}; `secret_names` tells which variables a file sets")
        return None

    def clean(tool_name: str, args: dict[str, Any], result: Any) -> str | None:
        return redactor.cleaned(result)

    api.register_hook("before_tool_call", check)
    api.register_hook("after_tool_call", clean)
    api.register_tool("secret_names", handler=secret_names, permission="none")


def _marks(args: dict[str, Any]) -> Any:
    """Marks of hidden secrets in what a tool is about to write or run."""
    for key, value in args.items():
        if isinstance(value, str) and (key in CONTENTS or key == "command"):
            yield from (found[0] for found in MARK.finditer(value))


def _refusal(reason: str) -> dict[str, Any]:
    return {"block": True, "reason": f"{reason}. The skill 'handling-secrets' says how to go on."}
