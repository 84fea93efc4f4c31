"""Daemon threads that are kept for reuse: starting one costs far more than waking one."""

from __future__ import annotations

import contextvars
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar, cast

from shared.cancel import CancelToken

T = TypeVar("T")
IDLE_SECONDS = 10.0


class Task(Generic[T]):
    """One piece of work on a thread; `result()` gives its value or raises its error."""

    __slots__ = ("_call", "_done", "_error", "_lock", "_value", "_watchers")

    def __init__(self, call: Callable[[], T]) -> None:
        self._call: Callable[[], T] | None = call
        self._done = False
        self._lock = threading.Lock()
        self._watchers: list[_Gate] = []
        self._value: T | None = None
        self._error: BaseException | None = None

    @property
    def done(self) -> bool:
        """Whether the work has ended, well or badly."""
        return self._done

    def run(self) -> None:
        """Do the work in the current thread."""
        call, self._call = self._call, None
        assert call is not None
        try:
            self._value = call()
        except BaseException as error:  # handed to whoever asks for the result
            self._error = error
        with self._lock:
            self._done = True
            watchers, self._watchers = self._watchers, []
        for latch in watchers:
            _open(latch)

    def wait(self, timeout: float | None = None, *, cancel: CancelToken | None = None) -> bool:
        """Block until the work is done (True), or until time is up or `cancel` fires (False)."""
        latch = threading.Lock()
        latch.acquire()
        with self._lock:
            if self._done:
                return True
            self._watchers.append(latch)
        forget = cancel.on_cancel(lambda: _open(latch)) if cancel is not None else None
        try:
            latch.acquire(timeout=-1 if timeout is None else max(0.0, timeout))
        finally:
            if forget is not None:
                forget()
            with self._lock:
                if latch in self._watchers:
                    self._watchers.remove(latch)
        return self._done

    def watch(self, latch: _Gate) -> bool:
        """Release a gate when the work is done; False if it is done already."""
        with self._lock:
            if self._done:
                return False
            self._watchers.append(latch)
            return True

    def result(self) -> T:
        """The value of finished work; raises what it raised."""
        if self._error is not None:
            raise self._error
        return cast(T, self._value)


def wait_all(tasks: Sequence[Task[Any]], *, cancel: CancelToken) -> bool:
    """Block until all work is done (True) or `cancel` fires (False); whoever waits is woken once, not for each."""
    gate = _Countdown(len(tasks))
    watched = sum(task.watch(gate) for task in tasks)
    gate.count_down(len(tasks) - watched)
    forget = cancel.on_cancel(gate.open)
    try:
        gate.wait()
    finally:
        forget()
    return all(task.done for task in tasks)


class _Countdown:
    """Opens when so many pieces of work have reported, or at once when told to."""

    __slots__ = ("_latch", "_left", "_lock")

    def __init__(self, count: int) -> None:
        self._lock, self._left = threading.Lock(), count
        self._latch = threading.Lock()
        self._latch.acquire()
        if not count:
            self.open()

    def release(self) -> None:
        """One piece of work is done."""
        self.count_down(1)

    def count_down(self, count: int) -> None:
        """So many are done."""
        with self._lock:
            self._left -= count
            last = self._left == 0 and count > 0
        if last:
            self.open()

    def open(self) -> None:
        """Let the waiting thread go on."""
        _open(self._latch)

    def wait(self) -> None:
        """Block until it opens."""
        self._latch.acquire()


class _Gate(Protocol):
    def release(self) -> None: ...


def _open(latch: _Gate) -> None:
    try:
        latch.release()
    except RuntimeError:  # opened by the other side already
        pass


class ThreadPool:
    """Grows as needed, keeps idle threads for a while; what runs in it may be abandoned."""

    def __init__(self, name: str = "jaato") -> None:
        self._name = name
        self._lock = threading.Lock()
        self._idle: deque[_Worker] = deque()
        self._count = 0

    def submit(self, call: Callable[[], T]) -> Task[T]:
        """Run a call on some thread at once, in a copy of the caller's context variables."""
        context = contextvars.copy_context()
        task: Task[T] = Task(lambda: context.run(call))
        with self._lock:
            worker = self._idle.pop() if self._idle else None
            if worker is None:
                self._count += 1
                worker = _Worker(self, f"{self._name}-{self._count}")
                fresh = True
            else:
                fresh = False
            worker.task = task
        if fresh:
            worker.start()
        else:
            worker.latch.release()
        return task

    def after_fork(self) -> None:
        """Forget all threads: a forked process has none of them, and a lock may be held by one."""
        self._lock = threading.Lock()
        self._idle = deque()

    def park(self, worker: _Worker) -> None:
        """Take a worker back for reuse."""
        with self._lock:
            self._idle.append(worker)

    def retire(self, worker: _Worker) -> bool:
        """Let an idle worker go; False if it was given work in the meantime."""
        with self._lock:
            if worker not in self._idle:
                return False
            self._idle.remove(worker)
            return True


class _Worker(threading.Thread):
    def __init__(self, pool: ThreadPool, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.pool = pool
        self.task: Task[Any] | None = None
        self.latch = threading.Lock()
        self.latch.acquire()

    def run(self) -> None:
        while True:
            task, self.task = self.task, None
            assert task is not None
            task.run()
            del task  # an idle thread keeps nothing alive
            self.pool.park(self)
            if not self.latch.acquire(timeout=IDLE_SECONDS):
                if self.pool.retire(self):
                    return
                self.latch.acquire()


#: The one pool of this process.
workers = ThreadPool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=workers.after_fork)
