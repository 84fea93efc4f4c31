"""For tests of code that many threads use: rapid switching, a common start, and no thread left hanging."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE = 60.0  # far beyond what any of these tests takes; reached only when something hangs


@contextmanager
def rapid_switching(interval: float = 1e-6) -> Iterator[None]:
    """Let threads take turns after every few instructions, so that races show."""
    former = sys.getswitchinterval()
    sys.setswitchinterval(interval)
    try:
        yield
    finally:
        sys.setswitchinterval(former)


def run_threads(count: int, work: Callable[[int], object]) -> None:
    """Run `work(index)` on many threads that start together; raises the first error, or if one hangs."""
    barrier = threading.Barrier(count)
    errors: list[BaseException] = []

    def body(index: int) -> None:
        try:
            barrier.wait(PATIENCE)
            work(index)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=body, args=(index,), daemon=True) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    hanging = sum(thread.is_alive() for thread in threads)
    if errors:
        raise errors[0]
    assert not hanging, f"{hanging} of {count} threads hang"


def wait_for(condition: Callable[[], bool], *, seconds: float = PATIENCE) -> None:
    """Wait until a condition that another thread brings about holds."""
    pause = threading.Event()
    for _ in range(int(seconds / 0.005)):
        if condition():
            return
        pause.wait(0.005)
    raise AssertionError("the condition never came true")


def times(count: int, work: Callable[[], object]) -> None:
    """Do something many times."""
    for _ in range(count):
        work()
