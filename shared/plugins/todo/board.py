"""Board: the plans of all agents, and those who want to see them change."""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable
from dataclasses import replace

from shared.errors import ToolError
from shared.plugins.todo.plan import Plan

log = logging.getLogger(__name__)

MAX_PLANS = 1_000
Watcher = Callable[[Plan], object]


class Board:
    """One plan per agent. Changes are atomic; watchers are called outside the lock.

    Two threads may report at once, so a watcher that wants the newest plan compares `version`.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._plans: dict[str, Plan] = {}
        self._watchers: dict[int, Watcher] = {}
        self._keys = itertools.count()

    def get(self, agent_id: str) -> Plan | None:
        """An agent's plan, if it has one."""
        with self._lock:
            return self._plans.get(agent_id)

    def all(self) -> list[Plan]:
        """All plans, the longest unchanged first."""
        with self._lock:
            return list(self._plans.values())

    def put(self, plan: Plan) -> Plan | None:
        """Give an agent a new plan; returns the one it replaces."""
        with self._lock:
            old = self._plans.pop(plan.agent_id, None)
            plan = replace(plan, version=old.version + 1) if old else plan
            self._store(plan)
            watchers = list(self._watchers.values())
        _tell(watchers, plan)
        return old

    def change(self, agent_id: str, edit: Callable[[Plan], Plan]) -> Plan:
        """Change an agent's plan in one step; what `edit` raises leaves it as it was."""
        with self._lock:
            plan = self._plans.get(agent_id)
            if plan is None:
                raise ToolError("there is no plan yet: make one with create_plan")
            plan = edit(plan)
            del self._plans[agent_id]
            self._store(plan)
            watchers = list(self._watchers.values())
        _tell(watchers, plan)
        return plan

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """Call back with each new version of any plan; returns a function that ends it."""
        with self._lock:
            key = next(self._keys)
            self._watchers[key] = watcher
        return lambda: self._forget(key)

    def clear(self) -> None:
        """Drop all plans; watchers stay."""
        with self._lock:
            self._plans.clear()

    def _store(self, plan: Plan) -> None:
        self._plans[plan.agent_id] = plan
        while len(self._plans) > MAX_PLANS:
            del self._plans[next(iter(self._plans))]

    def _forget(self, key: int) -> None:
        with self._lock:
            self._watchers.pop(key, None)


def _tell(watchers: list[Watcher], plan: Plan) -> None:
    for watcher in watchers:
        try:
            watcher(plan)
        except Exception:  # a view that fails must not fail the agent's work
            log.exception("a plan watcher failed")
