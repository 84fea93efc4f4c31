"""Journal: writes wait in a queue and go to the database in batches; `commit` is the barrier.

Whoever calls `commit` writes everything that waits, others' included, in one transaction: runs that end at the same
moment share it, and no run waits for another thread. What nobody commits is written in the background soon after.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable

from shared.errors import StoreError
from shared.executors.threads import workers
from shared.store.database import Database, explained

log = logging.getLogger(__name__)

Write = Callable[[sqlite3.Connection], object]

LINGER = 0.02  # seconds that a write waits for company
PATIENCE = 2.0  # seconds after a failure in which nothing is tried
MOST = 100_000  # writes that may wait for a store that cannot be written
CHECKPOINT = 4000  # writes after which the log is folded into the database


class Journal:
    """One per opened store. A write is a function of the connection; each is applied whole or not at all."""

    def __init__(
        self, database: Database, connection: sqlite3.Connection, on_trouble: Callable[[StoreError], object]
    ) -> None:
        self._database = database
        self._connection: sqlite3.Connection | None = connection
        self._on_trouble = on_trouble
        self._queue: deque[Write] = deque()
        self._writing = threading.Lock()
        self._turns = threading.Lock()  # over who writes for whom
        self._gates: list[_Gate] = []
        self._led = False
        self._wake = threading.Lock()
        self._flushing = False
        self._failed_at: float | None = None
        self._since_checkpoint = 0
        self.trouble: StoreError | None = None  # why nothing is written at the moment

    def put(self, write: Write) -> None:
        """Have something written soon; never blocks on the disk."""
        self._queue.append(write)
        if not self._flushing:
            self._flush_soon()

    def commit(self) -> bool:
        """Everything that was put before is in the database (True), or cannot be written now (False)."""
        gate = _Gate()
        with self._turns:
            self._gates.append(gate)
            gate.leads = not self._led
            self._led = True
        if not gate.leads:
            gate.wait()
        return self._lead(gate) if gate.leads else gate.written

    def run(self, write: Write) -> bool:
        """Put and commit."""
        self._queue.append(write)
        return self.commit()

    def close(self, last: Write | None = None) -> bool:
        """Write what waits, then let go of the file; False if something could not be written."""
        if last is not None:
            self._queue.append(last)
        self._failed_at = None
        written = self.commit()
        with self._writing:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()
        return written

    def abandon(self) -> None:
        """Forget the connection without touching it: in a forked process it belongs to the parent."""
        self._writing, self._turns, self._wake = threading.Lock(), threading.Lock(), threading.Lock()
        self._gates, self._led = [], False
        self._connection, self._queue = None, deque()
        self.trouble = StoreError("the store belongs to the process that this one was forked from")

    # -- inside ----------------------------------------------------------------------------------

    def _lead(self, own: _Gate) -> bool:
        """Write for all who wait; whoever came in the meantime is led by the first of them."""
        written = False
        with self._turns:
            gates, self._gates = self._gates, []
        try:
            with self._writing:
                trouble, former = self._drain()
            written = trouble is None
        finally:
            with self._turns:
                heir = self._gates[0] if self._gates else None
                self._led = heir is not None
            for gate in gates:
                if gate is not own:
                    gate.open(written=written)
            if heir is not None:
                heir.open(leads=True)
        self._tell(trouble, former)
        return written

    def _drain(self) -> tuple[StoreError | None, StoreError | None]:
        """Write the queue in one transaction, holding the lock; returns the trouble there is and there was."""
        former = self.trouble
        if self._connection is None:
            return self._refuse(), former
        if self._failed_at is not None and time.monotonic() - self._failed_at < PATIENCE:
            return self.trouble, former
        batch: list[Write] = []
        while self._queue:
            batch.append(self._queue.popleft())
        if not batch:
            return self.trouble, former
        try:
            self._write(self._connection, batch)
        except sqlite3.Error as error:
            self._queue.extendleft(reversed(batch[-MOST:]))
            self._failed_at, self.trouble = time.monotonic(), explained(error, self._database.path)
            if len(batch) > MOST:
                log.error("%s; %d writes were given up", self.trouble, len(batch) - MOST)
        else:
            self._failed_at = self.trouble = None
            self._since_checkpoint += len(batch)
        return self.trouble, former

    def _refuse(self) -> StoreError:
        """The file was let go of; only one that comes too late is told so."""
        closed = self.trouble or StoreError(f"the store {self._database.path} is closed")
        if self._queue:
            self._queue.clear()
            self.trouble = closed
        return closed

    def _write(self, connection: sqlite3.Connection, batch: list[Write]) -> None:
        try:
            _transact(connection, batch)
        except sqlite3.Error as error:
            if not isinstance(error, (sqlite3.InterfaceError, sqlite3.IntegrityError, sqlite3.ProgrammingError)):
                raise
            self._write_singly(connection, batch)
        except Exception:  # a value that no column takes, of a type or in characters nobody foresaw
            self._write_singly(connection, batch)

    @staticmethod
    def _write_singly(connection: sqlite3.Connection, batch: list[Write]) -> None:
        """One by one, so that a write which cannot be done is left out, loudly, and takes no other with it."""
        for write in batch:
            try:
                _transact(connection, [write])
            except sqlite3.OperationalError:
                raise
            except Exception:  # whatever was wrong with it, the writes after it are done
                log.exception("something could not be stored")

    def _tell(self, trouble: StoreError | None, former: StoreError | None) -> None:
        """Report that writing begins to fail, or works again; outside the lock, for a host may listen."""
        if former is None and self.trouble is not None:
            self._on_trouble(self.trouble)
        elif trouble is None and former is not None:
            log.warning("the store %s can be written again; nothing was lost", self._database.path)

    def _flush_soon(self) -> None:
        with self._wake:
            if self._flushing:
                return
            self._flushing = True
        try:
            workers.submit(self._flush)
        except RuntimeError:  # no thread to be had: the next commit writes it
            self._flushing = False

    def _flush(self) -> None:
        while True:
            time.sleep(LINGER)
            self.commit()
            self._checkpoint()
            with self._wake:
                self._flushing = False
                if not self._queue or self._connection is None:  # looked at after the flag: no write is overlooked
                    return
                self._flushing = True
            if self.trouble is not None:
                time.sleep(PATIENCE)

    def _checkpoint(self) -> None:
        """Fold the log into the database over a connection of its own, so that no commit waits for the disk."""
        if self._since_checkpoint < CHECKPOINT:
            return
        self._since_checkpoint = 0
        try:
            connection = sqlite3.connect(self._database.path, timeout=1, isolation_level=None)
            try:
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            finally:
                connection.close()
        except sqlite3.Error:
            log.warning("the log of the store %s could not be folded in", self._database.path, exc_info=True)


class _Gate:
    """Where one thread waits until another has written for it, or leaves the writing to it."""

    __slots__ = ("_lock", "leads", "written")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()
        self.leads = self.written = False

    def wait(self) -> None:
        self._lock.acquire()

    def open(self, *, written: bool = False, leads: bool = False) -> None:
        self.written, self.leads = written, leads
        self._lock.release()


def _transact(connection: sqlite3.Connection, writes: list[Write]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        for write in writes:
            write(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
