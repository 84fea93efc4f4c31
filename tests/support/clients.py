"""Clients as the front of skills and delegation, whose model follows a script."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.subagents import user_texts

from shared import JaatoClient
from shared.providers.base import ModelRequest
from shared.providers.script import ScriptProvider, Step


def echo(request: ModelRequest) -> Step:
    """Say again what was said last."""
    return f"said: {user_texts(request)[-1]}"


@contextmanager
def connected(workspace: Path, script: Any = echo, **arguments: Any) -> Iterator[JaatoClient]:
    """A client without plugins, connected."""
    client = JaatoClient("script", workspace=workspace, **arguments)
    client.register_provider("script", ScriptProvider(script))
    client.connect()
    try:
        yield client
    finally:
        client.close()
