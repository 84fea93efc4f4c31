from __future__ import annotations

import sys
import threading

import pytest

from shared.cancel import CancelToken
from shared.errors import ToolError
from shared.process import ProcessEnd, run_process


def run(code: str, **options: object) -> tuple[ProcessEnd, bytes]:
    output = bytearray()
    settings: dict[str, object] = {"cancel": CancelToken(), "timeout": 60.0, **options}
    end = run_process([sys.executable, "-c", code], cwd="/", env={}, on_output=output.extend, **settings)  # type: ignore[arg-type]
    return end, bytes(output)


def test_input_larger_than_a_pipe_is_passed_on() -> None:
    data = b"x" * 1_000_000
    end, output = run("import sys; data = sys.stdin.buffer.read(); print(len(data))", stdin=data)
    assert end == ProcessEnd("exited", 0)
    assert output == b"1000000\n"


def test_standard_error_can_be_left_out() -> None:
    code = "import sys; print('out', flush=True); print('err', file=sys.stderr)"
    assert run(code)[1] == b"out\nerr\n"
    assert run(code, merge_stderr=False)[1] == b"out\n"


def test_a_program_that_is_not_there() -> None:
    with pytest.raises(ToolError, match="could not be started"):
        run_process(
            ["/no/such/program"], cwd="/", env={}, cancel=CancelToken(), timeout=5, on_output=lambda chunk: None
        )


def test_time_is_up() -> None:
    end, output = run("import time; print('x', flush=True); time.sleep(1000)", timeout=1.0, grace=0.0)
    assert end.outcome == "timed_out"
    assert output in (b"x\n", b"")


def test_a_program_that_ends_on_sigterm_may_say_goodbye() -> None:
    code = (
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: (os.write(1, b'bye\\n'), os._exit(0)))\n"
        "os.write(1, b'ready\\n')\ntime.sleep(1000)"
    )
    token, ready, output = CancelToken(), threading.Event(), bytearray()

    def take(chunk: bytes) -> None:
        output.extend(chunk)
        ready.set()

    ends: list[ProcessEnd] = []
    thread = threading.Thread(
        target=lambda: ends.append(
            run_process(
                [sys.executable, "-c", code], cwd="/", env={}, cancel=token, timeout=60, on_output=take, grace=30
            )
        )
    )
    thread.start()
    assert ready.wait(30)
    token.cancel()
    thread.join(60)
    assert ends[0].outcome == "cancelled"
    assert bytes(output) == b"ready\nbye\n"
