"""build_gate: from what a host passes as `permissions` to the broker that guards its tools."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from shared.errors import ConfigError
from shared.permissions.broker import PermissionBroker
from shared.permissions.channel import Channel, create_channel
from shared.permissions.policy import ACTIONS, ChannelSettings, Policy
from shared.permissions.policy_file import load_policy, parse_policy
from shared.permissions.search import find_policy
from shared.tools import Tool

Permissions: TypeAlias = str | Mapping[str, Any] | Path | PermissionBroker | None


def build_gate(
    permissions: Permissions = None,
    *,
    workspace: Path | None = None,
    trust_workspace: bool | Callable[[], bool] = False,
    channel: Channel | None = None,
    tools: Callable[[], Iterable[Tool]] = tuple,
) -> PermissionBroker:
    """The gate for "allow", "ask", "deny", a policy mapping, a policy file, or (None) the policy that is found.

    A wrong mapping raises PolicyError; a file that is missing or wrong gives a gate that denies everything. Whether
    the workspace is trusted can be a question, which is asked anew whenever the policy is read.
    """
    if isinstance(permissions, PermissionBroker):
        return permissions
    root = workspace or Path.cwd()
    load = _loader(permissions, root, trust_workspace=trust_workspace)
    policy = load()
    return PermissionBroker(policy, channel=channel or _channel(policy), load=load, workspace=root, tools=tools)


def _loader(permissions: Any, workspace: Path, *, trust_workspace: bool | Callable[[], bool]) -> Callable[[], Policy]:
    if permissions is None:
        return lambda: find_policy(workspace, trust_workspace=trust_workspace)
    if isinstance(permissions, Mapping):
        policy = parse_policy(permissions)
        return lambda: policy
    if isinstance(permissions, str) and (permissions in ACTIONS or not _looks_like_path(permissions)):
        policy = parse_policy(permissions)
        return lambda: policy
    if isinstance(permissions, str | os.PathLike):
        path = workspace / Path(permissions).expanduser()
        return lambda: load_policy(path)
    raise ConfigError(
        f"permissions: expected 'allow', 'ask', 'deny', a mapping or a path, got {type(permissions).__name__}"
    )


def _looks_like_path(text: str) -> bool:
    """A mistyped word such as "alow" is reported as one; it is not taken for a missing file."""
    return "/" in text or os.sep in text or text.endswith(".json") or Path(text).exists()


def _channel(policy: Policy) -> Channel:
    """A policy without a channel asks on the console; if there is none, the broker says so when it matters."""
    return create_channel(policy.channel or ChannelSettings("console"))
