"""The thread pool: reuse, no lost wake-ups, waiting that a cancel ends, errors, abandoned work."""

from __future__ import annotations

import contextvars
import gc
import os
import threading
import weakref

import pytest
from support.stress import rapid_switching, run_threads, wait_for

from shared.cancel import CancelToken
from shared.executors import threads
from shared.executors.threads import Task, ThreadPool, workers


def test_a_task_gives_its_value_or_raises_its_error() -> None:
    pool = ThreadPool()
    good, bad = pool.submit(lambda: 42), pool.submit(lambda: 1 // 0)
    assert good.wait(60)
    assert bad.wait(60)
    assert good.result() == 42
    with pytest.raises(ZeroDivisionError):
        bad.result()
    assert good.done
    assert bad.done


def test_not_even_system_exit_ends_a_worker() -> None:
    pool = ThreadPool("exit")

    def leave() -> None:
        raise SystemExit(3)

    task = pool.submit(leave)
    assert task.wait(60)
    with pytest.raises(SystemExit):
        task.result()
    wait_for(lambda: len(pool._idle) == 1)


def test_idle_threads_are_used_again() -> None:
    pool = ThreadPool("reuse")
    seen: set[int] = set()
    for _ in range(50):
        task = pool.submit(threading.get_ident)
        assert task.wait(60)
        seen.add(task.result())
        wait_for(lambda: len(pool._idle) == pool._count)
    assert len(seen) == 1


def test_work_never_queues_behind_other_work() -> None:
    pool = ThreadPool()
    barrier = threading.Barrier(30)
    tasks = [pool.submit(lambda: barrier.wait(60)) for _ in range(30)]
    assert all(task.wait(60) for task in tasks)
    for task in tasks:
        task.result()


def test_context_variables_come_along_and_do_not_leak_back() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")
    variable.set("caller")
    pool = ThreadPool()

    def change() -> str:
        seen = variable.get()
        variable.set("worker")
        return seen

    for _ in range(3):
        task = pool.submit(change)
        assert task.wait(60)
        assert task.result() == "caller"
    assert variable.get() == "caller"


def test_waiting_ends_with_time_or_cancel_and_the_work_goes_on() -> None:
    pool, release = ThreadPool(), threading.Event()
    task = pool.submit(lambda: release.wait(60))
    assert not task.wait(0)
    assert not task.wait(-1)
    token = CancelToken()
    canceller = threading.Thread(target=lambda: token.cancel())
    canceller.start()
    assert not task.wait(cancel=token)
    canceller.join(60)
    assert not task.wait(cancel=token), "an old cancel ends the waiting at once"
    release.set()
    assert task.wait(60)
    assert task.wait(cancel=token), "what is done is done, cancelled or not"
    assert task.result() is True
    assert not task._watchers


def test_an_idle_thread_keeps_nothing_of_its_last_work_alive() -> None:
    class Thing:
        pass

    pool, thing = ThreadPool(), Thing()
    gone = weakref.ref(thing)
    task: Task[int] | None = pool.submit(lambda thing=thing: id(thing))  # type: ignore[misc]
    assert task is not None
    assert task.wait(60)
    wait_for(lambda: len(pool._idle) == 1)
    del thing
    task = None
    gc.collect()
    assert gone() is None


def test_idle_threads_retire(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "IDLE_SECONDS", 0.01)
    pool = ThreadPool("retire")
    task = pool.submit(threading.current_thread)
    assert task.wait(60)
    thread = task.result()
    thread.join(60)
    assert not thread.is_alive()
    assert not pool._idle
    again = pool.submit(lambda: "alive")
    assert again.wait(60)
    assert again.result() == "alive"


def test_no_work_is_lost_between_retiring_and_waking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "IDLE_SECONDS", 0.0)
    pool = ThreadPool("brink")
    with rapid_switching():

        def work(index: int) -> None:
            for step in range(400):
                task = pool.submit(lambda step=step: (index, step))  # type: ignore[misc]
                assert task.wait(60), "a task was given to a thread that had gone"
                assert task.result() == (index, step)

        run_threads(6, work)


def test_no_wake_up_is_lost_with_many_waiters_and_cancels() -> None:
    pool = ThreadPool("waiters")
    with rapid_switching():
        for round_ in range(300):
            gate, token = threading.Event(), CancelToken()
            task = pool.submit(gate.wait)

            def work(
                index: int, task: Task[bool] = task, gate: threading.Event = gate, token: CancelToken = token
            ) -> None:
                if index == 0:
                    gate.set()
                elif index == 1:
                    token.cancel()
                elif index % 2:
                    task.wait(cancel=token)
                else:
                    assert task.wait(60)

            run_threads(6, work)
            assert task.wait(60), round_
            assert not task._watchers


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_has_threads_of_its_own() -> None:
    first = workers.submit(lambda: 1)
    assert first.wait(60)
    wait_for(lambda: len(workers._idle) > 0)
    child = os.fork()
    if child == 0:
        task = workers.submit(lambda: 7)
        os._exit(task.result() if task.wait(30) else 99)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 7
