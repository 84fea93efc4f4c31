"""What tests of the plugin `mcp` share: server entries, a server process over HTTP, looks at /proc."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SERVER = str(HERE / "mcp_server.py")
LEGACY = str(HERE / "mcp_legacy_server.py")


def program(*options: str, **more: Any) -> dict[str, Any]:
    """The entry of a stdio server in a process of its own."""
    return {"command": sys.executable, "args": [SERVER, "stdio", *options], **more}


def legacy_program() -> dict[str, Any]:
    """The entry of a stdio server of the older protocol."""
    return {"command": sys.executable, "args": [LEGACY]}


@contextmanager
def web_server(*options: str, transport: str = "http", port: int = 0) -> Iterator[WebServer]:
    """A server over HTTP on the loopback interface, in a process of its own."""
    server = WebServer(*options, transport=transport, port=port)
    try:
        yield server
    finally:
        server.kill()


class WebServer:
    """A running HTTP server; `kill` ends it without a goodbye."""

    def __init__(self, *options: str, transport: str, port: int) -> None:
        command = [sys.executable, SERVER, transport, f"--port={port}", *options]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline().split()[1])
        self.url = f"http://127.0.0.1:{self.port}/{'sse' if transport == 'sse' else 'mcp'}"

    def kill(self) -> None:
        """Kill the process and wait for its end."""
        self._process.kill()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


def alive(pid: int) -> bool:
    """Whether a process runs; one that is dead and not yet collected does not."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return text.rpartition(")")[2].split()[0] != "Z"


def children() -> set[int]:
    """Processes that this one has started and that still exist, dead or alive."""
    found = set()
    for entry in Path("/proc").iterdir():
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except (OSError, IndexError):
            continue
        if entry.name.isdigit() and int(fields[1]) == os.getpid():
            found.add(int(entry.name))
    return found


def open_files() -> dict[str, str]:
    """Open descriptors of this process and what they point to."""
    found = {}
    for entry in Path("/proc/self/fd").iterdir():
        try:
            found[entry.name] = os.readlink(entry)
        except OSError:
            continue
    return found
