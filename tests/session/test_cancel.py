"""Stop means stopped: at every point of a turn, with a valid history behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading

from support.tools import Lab, calls, results_of, steps

from shared import JaatoClient
from shared.providers.script import Reply
from shared.testing import check_history, scripted_client


def _stopped(client: JaatoClient, when: threading.Semaphore | threading.Event, message: str = "go") -> str:
    answers: list[str] = []
    thread = threading.Thread(target=lambda: answers.append(client.send_message(message)))
    thread.start()
    assert when.acquire(timeout=20) if isinstance(when, threading.Semaphore) else when.wait(20)
    assert client.stop()
    thread.join(20)
    assert not thread.is_alive()
    check_history(client.get_history())
    return answers[0]


def test_stop_in_a_model_call_keeps_the_text_so_far() -> None:
    asked = threading.Event()

    def script(request: object) -> Reply:
        asked.set()
        return Reply("never", delay=60)

    with scripted_client(script) as client:
        assert _stopped(client, asked) == "[cancelled]"
        assert client.is_processing is False


def test_stop_in_a_tool_that_listens() -> None:
    lab = Lab()
    with scripted_client(steps(calls(("wait", {}), text="Waiting."), "fine"), lab) as client:
        assert _stopped(client, lab.entered) == "Waiting.\n[cancelled]"
        assert results_of(client.get_history())[0].startswith("Cancelled")
        assert client.send_message("and now?") == "fine"
        check_history(client.get_history())


def test_a_tool_that_ignores_cancel_is_fenced() -> None:
    lab = Lab()
    with scripted_client(steps(calls(("stubborn", {}), ("add", {"a": 1})), "fine"), lab) as client:
        _stopped(client, lab.entered)
        before = client.get_history()
        assert lab.ran == []
        lab.release.set()
        assert client.send_message("and now?") == "fine"
        assert client.get_history()[: len(before)] == before
        check_history(client.get_history())


def test_stop_without_a_turn_says_so() -> None:
    with scripted_client(steps("hi")) as client:
        assert client.stop() is False
        assert client.send_message("still works") == "hi"


def test_stop_at_random_moments_always_leaves_a_valid_history() -> None:
    lab = Lab()
    old = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with scripted_client(steps(calls(("add", {"a": 1}), ("add", {"a": 2}))), lab) as client:
            for _ in range(150):
                thread = threading.Thread(target=client.send_message, args=("go",))
                thread.start()
                while not client.stop():
                    pass
                thread.join(20)
                assert not thread.is_alive()
                check_history(client.get_history())
                client.reset_session()
    finally:
        sys.setswitchinterval(old)


def test_ctrl_c_leaves_the_session_usable() -> None:
    program = textwrap.dedent(
        """
        import sys, threading
        sys.path.insert(0, "tests")
        from support.tools import Lab, calls, steps
        from shared.testing import check_history, scripted_client
        lab = Lab()
        with scripted_client(steps(calls(("wait", {})), "fine"), lab) as client:
            def tell():
                lab.entered.acquire()
                print("ready", flush=True)
            threading.Thread(target=tell, daemon=True).start()
            try:
                client.send_message("go")
                print("no interrupt")
            except KeyboardInterrupt:
                check_history(client.get_history())
                print(client.send_message("again"))
        """
    )
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    os.kill(process.pid, signal.SIGINT)
    assert process.stdout.read() == "fine\n"
    assert process.wait(20) == 0
