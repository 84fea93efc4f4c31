"""For whom host code delegates: a client, a runtime with its main session, or any session."""

from __future__ import annotations

from typing import Protocol

from shared.errors import SubagentConfigError
from shared.runtime import JaatoRuntime
from shared.session import JaatoSession


class Host(Protocol):
    """Whatever has a main session, such as a client."""

    def get_runtime(self) -> JaatoRuntime: ...
    def get_session(self) -> JaatoSession: ...


Parent = Host | JaatoRuntime | JaatoSession


def runtime_of(parent: Parent) -> JaatoRuntime:
    """The runtime that a parent works on."""
    if isinstance(parent, JaatoSession):
        return parent.runtime
    return parent if isinstance(parent, JaatoRuntime) else parent.get_runtime()


def session_of(parent: Parent) -> JaatoSession:
    """The session whose subagents those of a parent are; that of a client may be another one later."""
    if isinstance(parent, JaatoSession):
        return parent
    if not isinstance(parent, JaatoRuntime):
        return parent.get_session()
    if (main := parent.main_session) is None:
        raise SubagentConfigError("no main session to delegate for: call runtime.set_main_session() first")
    return main
