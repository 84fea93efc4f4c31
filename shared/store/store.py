"""Store: the store of one runtime; opened when the first thing is worth writing, closed with the runtime."""

from __future__ import annotations

import atexit
import itertools
import logging
import os
import sqlite3
import threading
import weakref
from collections.abc import Callable
from functools import partial

from shared.errors import StoreError
from shared.store import owners
from shared.store.database import Database, explained
from shared.store.journal import Journal, Write
from shared.store.place import Place
from shared.store.reader import Reader
from shared.store.records import Request
from shared.store.recovery import recover
from shared.store.writes import answer_request, read_requests

log = logging.getLogger(__name__)

_open: weakref.WeakSet[Store] = weakref.WeakSet()


class Store:
    """Writing is a call of `put`; `commit` is the barrier. A store that fails never ends the work, unless strict."""

    def __init__(self, place: Place, *, on_trouble: Callable[[StoreError], object] | None = None) -> None:
        self.path, self.strict = place.path, place.strict
        self._database = Database(place.path, ignored=place.ignored)
        self._listener = on_trouble
        self._lock = threading.Lock()
        self._journal: Journal | None = None
        self._reader: Reader | None = None
        self._desk: sqlite3.Connection | None = None  # for reading requests, by one thread at a time
        self._failure: StoreError | None = None
        self._owner = 0
        self._owners: list[int] = []
        self._numbers = itertools.count()
        self.beginning = threading.Lock()  # held while a conversation is begun

    @property
    def is_open(self) -> bool:
        """Whether there is a file that is written to."""
        return self._journal is not None

    @property
    def owner(self) -> int:
        """The id under which this process owns what it starts."""
        return self._owner

    def open(self) -> bool:
        """Open the file if it is not; False if that cannot be done, which a strict store raises instead."""
        if self._journal is not None:
            return self._require_writable()
        with self._lock:
            if self._journal is None and self._failure is None:
                try:
                    self._open()
                except StoreError as error:
                    self._failure = error
                    failed = True
                else:
                    return True
            else:
                failed = False
        failure = self._failure
        if failure is None:
            return True
        if self.strict:
            self._failure = None  # the next attempt may find it mended
            raise failure
        if failed:
            self._trouble(failure)
        return False

    def require_open(self) -> Journal:
        """Open the file if it is not, for what makes no sense without one: raises what prevents it, strict or not."""
        if self.open() and self._journal is not None:
            return self._journal
        failure = self._failure or StoreError(f"the store {self.path} is closed: open a new one")
        raise type(failure)(str(failure)) from failure

    def put(self, write: Write) -> None:
        """Have something written soon; nothing happens where there is no store."""
        if self._journal is not None:
            self._journal.put(write)

    def commit(self) -> bool:
        """Everything that was put before is on disk (True), or cannot be written now (False)."""
        return self._journal is not None and self._journal.commit()

    def mint(self) -> int:
        """A key that no other process mints; within one owner keys only grow."""
        return owners.keys_of(self._owner)[0] + next(self._numbers)

    def take_over(self, claim: Callable[[int, sqlite3.Connection], bool]) -> bool:
        """Own something that had another owner: under a new id, so that what is added sorts after what is there.

        `claim` writes with the new id, in the same transaction; what it returns says whether it could.
        """
        journal = self.require_open()
        claimed: list[int] = []

        def write(db: sqlite3.Connection) -> None:
            owner = owners.register(db)
            if claim(owner, db):
                claimed.append(owner)
            else:
                owners.close([owner], db)

        if not journal.run(write):
            raise journal.trouble or StoreError(f"the store {self.path} cannot be written now: try again")
        for owner in claimed:
            self._owners.append(owner)
            self._owner = owner
        return bool(claimed)

    def requests(self) -> list[Request]:
        """What other processes ask of this one."""
        with self._lock:
            if self._journal is None:
                return []
            if self._desk is None:
                self._desk = self._database.read()
            return read_requests(self._owners, self._desk)

    def answer(self, request: Request, text: str) -> None:
        """Tell the process that asked what became of its request."""
        self.put(partial(answer_request, request.id, text))
        self.commit()

    @property
    def reader(self) -> Reader:
        """What is in the store, with everything that was put before."""
        self.commit()
        with self._lock:
            if self._reader is None:
                self._reader = Reader(self.path)
            return self._reader

    def close(self) -> None:
        """Write what waits and let go of the file; what this process left unfinished is nobody's from now on."""
        with self._lock:
            journal, self._journal = self._journal, None
            reader, self._reader = self._reader, None
            desk, self._desk = self._desk, None
        for each in (reader, desk):
            if each is not None:
                each.close()
        if journal is not None:
            journal.close(partial(owners.close, self._owners))

    def after_fork(self) -> None:
        """A forked process has a store of its own to open; the connection belongs to its parent."""
        if self._journal is not None:
            self._journal.abandon()
        self._journal = self._reader = self._desk = None
        self._failure = StoreError("this process was forked")
        self._lock = threading.Lock()

    # -- inside ----------------------------------------------------------------------------------

    def _open(self) -> None:
        connection = self._database.open()
        try:
            recover(connection)
            self._owner = owners.register(connection)
        except BaseException as error:
            connection.close()
            if isinstance(error, sqlite3.Error):
                raise explained(error, self.path) from error
            raise
        self._owners = [self._owner]
        self._journal = Journal(self._database, connection, self._trouble)
        _open.add(self)

    def _require_writable(self) -> bool:
        """Whether what is put will be written; a strict store raises if not."""
        journal = self._journal
        trouble = journal.trouble if journal is not None else None
        if trouble is not None and self.strict and not self.commit():
            raise trouble
        return journal is not None

    def _trouble(self, error: StoreError) -> None:
        log.warning("%s: the work goes on, but it is not stored", error)
        if self._listener is not None:
            self._listener(error)


def _close_all() -> None:
    for store in list(_open):
        store.close()


def _after_fork() -> None:
    for store in list(_open):
        store.after_fork()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
