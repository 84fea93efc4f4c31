"""Requests: what one process asks of the process that owns a run, through the store."""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from shared.errors import StoreError
from shared.executors.threads import workers
from shared.store import owners
from shared.store.codec import encoded
from shared.store.database import Database, explained
from shared.store.records import Request
from shared.store.store import Store

log = logging.getLogger(__name__)

POLL_SECONDS = 0.25


def ask(path: Path, *, owner: int, agent: int, kind: str, body: dict[str, Any], timeout: float = 10.0) -> str | None:
    """Leave a request for an owner and wait for its answer; None if its process ends first.

    Raises StoreError if none comes in time.
    """
    try:
        with closing(Database(path).open()) as db:
            row = db.execute(
                "INSERT INTO requests (owner, agent, kind, body, at) VALUES (?, ?, ?, ?, ?) RETURNING id",
                (owner, agent, kind, encoded(body), time.time()),
            ).fetchone()
            return _answer(db, owner, row[0], time.monotonic() + timeout)
    except sqlite3.Error as error:
        raise explained(error, path) from error


def _answer(db: sqlite3.Connection, owner: int, request: int, deadline: float) -> str | None:
    while True:
        gone = bool(owners.dead(db, [owner]))  # looked at first: its last answer may have come just before
        row = db.execute("SELECT answer FROM requests WHERE id = ? AND answered_at IS NOT NULL", (request,)).fetchone()
        if row is not None:
            return str(row[0])
        if gone:
            return None
        if time.monotonic() >= deadline:
            db.execute("DELETE FROM requests WHERE id = ? AND answered_at IS NULL", (request,))
            raise StoreError(
                "the process that owns the run does not answer: if it is busy, try again; if it hangs, end it"
            )
        time.sleep(POLL_SECONDS / 2)


class RequestDesk:
    """Answers requests to this process, on a pooled thread that looks only while there are runs to ask about."""

    def __init__(self, store: Store, serve: Callable[[Request], str], is_needed: Callable[[], bool]) -> None:
        self._store, self._serve, self._is_needed = store, serve, is_needed
        self._lock = threading.Lock()
        self._looking = False

    def attend(self) -> None:
        """Look for requests from now on, until there is nothing left to ask about."""
        if self._looking:
            return
        with self._lock:
            if self._looking:
                return
            self._looking = True
        try:
            workers.submit(self._look_on)
        except RuntimeError:  # no thread to be had: the next run tries again
            self._looking = False

    def _look_on(self) -> None:
        while True:
            try:
                self._look()
            except (sqlite3.Error, StoreError):
                log.warning("requests to this process cannot be read", exc_info=True)
            if not self._store.is_open or not self._is_needed():
                with self._lock:
                    self._looking = False
                if not self._is_needed() or not self._store.is_open:  # looked at after the flag was lowered
                    return
                with self._lock:
                    if self._looking:
                        return
                    self._looking = True
            time.sleep(POLL_SECONDS)

    def _look(self) -> None:
        for request in self._store.requests():
            try:
                answer = self._serve(request)
            except Exception as error:  # whatever is asked must not end the looking
                log.warning("a request to %s could not be served", request.kind, exc_info=True)
                answer = f"failed: {error}"
            self._store.answer(request, answer)
