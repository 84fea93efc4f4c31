"""Permissions: a policy, one approval queue for all agents, and the channels that answer it."""

from __future__ import annotations

from shared.permissions.approvals import Outcome
from shared.permissions.broker import LogEntry, PermissionBroker
from shared.permissions.channel import Channel
from shared.permissions.gate import Permissions, build_gate
from shared.permissions.policy import Policy, Verdict
from shared.permissions.request import Decision, PermissionRequest
from shared.permissions.rules import Rules

__all__ = [
    "Channel",
    "Decision",
    "LogEntry",
    "Outcome",
    "PermissionBroker",
    "PermissionRequest",
    "Permissions",
    "Policy",
    "Rules",
    "Verdict",
    "build_gate",
]
