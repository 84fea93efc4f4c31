"""What went wrong with a server, in one sentence that says what to do."""

from __future__ import annotations

from urllib.parse import urlsplit

import httpx2
from mcp import MCPError
from mcp.types import CONNECTION_CLOSED, REQUEST_TIMEOUT
from pydantic import ValidationError

from shared.errors import ToolError, ToolTimeout
from shared.plugins.mcp.spec import ServerSpec

ERROR_CHARS = 500

_REFUSALS = {
    401: "HTTP 401 (not authorised): check the credentials in 'headers'",
    403: "HTTP 403 (forbidden): check the credentials in 'headers'",
    404: "HTTP 404 (not found): check the path of 'url'",
}


def explain(error: BaseException, spec: ServerSpec, http_status: int | None = None) -> str:
    """Why a session could not be opened, or broke, in one line."""
    return _one_line(_explained(root_cause(error), spec, http_status))


def _explained(cause: BaseException, spec: ServerSpec, http_status: int | None) -> str:
    if isinstance(cause, MCPError):
        return _protocol(cause, spec, http_status)
    if isinstance(cause, httpx2.HTTPStatusError):
        return _refusal(cause.response.status_code)
    if isinstance(cause, httpx2.HTTPError):
        return f"cannot reach {_host(spec)} ({type(cause).__name__}: {cause}): is the server running?"
    if isinstance(cause, OSError) and spec.transport == "stdio":
        return _spawn(cause, spec)
    return _other(cause)


def call_error(error: BaseException, spec: ServerSpec, tool: str, http_status: int | None) -> ToolError:
    """What the model is told about a call that gave no result."""
    what = f"mcp server '{spec.name}', tool '{tool}'"
    cause = root_cause(error)
    if isinstance(cause, MCPError) and cause.code == CONNECTION_CLOSED:
        return ToolError(
            f"{what}: the connection broke during the call, so whether it had effects is unknown; "
            "the next call connects again"
        )
    if isinstance(cause, MCPError) and cause.code == REQUEST_TIMEOUT:
        return ToolTimeout(f"{what}: no answer in time; the call was cancelled")
    if isinstance(cause, MCPError):
        status = f"HTTP {http_status}, " if http_status is not None else ""
        return ToolError(f"{what}: {status}error {cause.code}: {_one_line(cause.message)}")
    return ToolError(f"{what}: {_one_line(_other(cause))}")


def root_cause(error: BaseException) -> BaseException:
    """The first real error inside nested groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _other(cause: BaseException) -> str:
    if isinstance(cause, ValidationError):
        first = cause.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        return f"the server's answer breaks the protocol: {cause.title} {where}: {first['msg']}"
    return f"{type(cause).__name__}: {cause}"


def _one_line(text: str) -> str:
    """Text of a server, fit for a line of status."""
    return " ".join(text.split())[:ERROR_CHARS]


def _protocol(error: MCPError, spec: ServerSpec, http_status: int | None) -> str:
    if http_status is not None:
        return _refusal(http_status)
    if error.code == CONNECTION_CLOSED and spec.transport == "stdio":
        return f"the program '{spec.command}' ended or closed its output: run it by hand to see why"
    if error.code == REQUEST_TIMEOUT:
        return "the server did not answer in time"
    return f"the server answered with error {error.code}: {error.message}"


def _refusal(status: int) -> str:
    return _REFUSALS.get(status, f"the server answered with HTTP {status}")


def _spawn(error: OSError, spec: ServerSpec) -> str:
    if isinstance(error, FileNotFoundError):
        if str(error.filename) == spec.cwd:
            return f"the folder '{spec.cwd}' does not exist: correct 'cwd'"
        return f"command '{spec.command}' was not found: install it or correct 'command'"
    return f"cannot start '{spec.command}': {error.strerror or error}"


def _host(spec: ServerSpec) -> str:
    """The address without what may be secret: user, path parameters, query."""
    parts = urlsplit(spec.url)
    return f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}"
