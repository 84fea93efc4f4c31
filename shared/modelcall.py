"""One model call, whole: budget, rate gate, attempts, ledger row and event."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal

from shared.budget import Budget, Reservation
from shared.bus import EventBus
from shared.cancel import CancelToken
from shared.errors import CancelledException, Overloaded, ProviderError, RateLimited
from shared.events import ModelCallEnded, RetryScheduled
from shared.governor import Governor
from shared.ledger import Account, LedgerRow
from shared.prices import PriceTable
from shared.providers.base import ChunkKind, ModelRequest, OnChunk, Provider
from shared.providers.tap import generate
from shared.types import CHARS_PER_TOKEN, Part, ProviderResponse, TokenUsage

RetryCallback = Callable[[str, int, int, float], object]

_NOTHING = TokenUsage()
MIN_OUTPUT = 256  # below this many tokens an answer is not worth asking for
MAX_RESERVED_OUTPUT = 8192  # so that one agent does not hold a whole shared budget


@dataclass(frozen=True)
class ModelCaller:
    """Everything that surrounds the calls of one agent to one model."""

    agent_id: str
    provider: Provider
    model: str
    governor: Governor
    account: Account
    prices: PriceTable
    bus: EventBus
    budget: Budget | None = None
    on_retry: RetryCallback | None = None
    agent_path: str = "main"

    def call(
        self, request: ModelRequest, *, cancel: CancelToken, on_chunk: OnChunk, purpose: str = "turn"
    ) -> ProviderResponse:
        """Answer a request, with as many attempts as the errors allow; every outcome is booked."""
        request, reservation = self._reserve(request, cancel)
        started = time.perf_counter()
        attempts = _Attempts(self, cancel, on_chunk)
        response, error = None, None
        try:
            response = attempts.run(request)
            return response
        except (ProviderError, CancelledException) as failure:
            error = f"{type(failure).__name__}: {failure}"
            raise
        finally:
            self._book(reservation, attempts, response, purpose, error, started)

    def _reserve(self, request: ModelRequest, cancel: CancelToken) -> tuple[ModelRequest, Reservation | None]:
        """Hold budget for the prompt and the longest answer, and ask for no longer answer than that."""
        budget = self.budget
        if budget is None or not budget.bounded:
            return request, None
        prompt = request.prompt_tokens * 11 // 10  # an estimate: rather hold too much than spend too much
        wanted = request.settings.max_output_tokens or MAX_RESERVED_OUTPUT
        room = budget.room("total_tokens")
        if room is not None:
            wanted = max(min(MIN_OUTPUT, wanted), min(wanted, int(room) - prompt))
        most = TokenUsage.of(prompt, wanted)
        cost = self.prices.cost(self.model, most) or Decimal(0)
        reservation = budget.reserve(cancel=cancel, total_tokens=most.total_tokens, cost_usd=cost)
        return replace(request, settings=replace(request.settings, max_output_tokens=wanted)), reservation

    def _book(
        self,
        reservation: Reservation | None,
        attempts: _Attempts,
        response: ProviderResponse | None,
        purpose: str,
        error: str | None,
        started: float,
    ) -> None:
        took, retries = time.perf_counter() - started, attempts.retries
        usage = response.usage if response is not None else _NOTHING
        usage = usage if attempts.wasted is _NOTHING else usage + attempts.wasted
        cost = self.prices.cost(self.model, usage)
        if reservation is not None:
            reservation.settle({"total_tokens": usage.total_tokens, "cost_usd": cost or Decimal(0)})
        name = self.provider.name
        self.account.record(LedgerRow(self.agent_id, name, self.model, usage, cost, purpose, took, retries, error))
        if self.bus.wants(ModelCallEnded):
            facts = self.agent_id, name, self.model, purpose, usage, took, retries, error
            self.bus.emit(ModelCallEnded(*facts, *_answered(response)))


def _answered(response: ProviderResponse | None) -> tuple[str | None, str | None, tuple[Part, ...]]:
    """Why an answer ended, which model gave it where the service tells, and what it says."""
    if response is None:
        return None, None, ()
    model = response.raw.get("model") if isinstance(response.raw, dict) else None
    return response.finish_reason.value, model, response.parts


class _Attempts:
    """The attempts of one call: which errors are tried again, and how long to wait before."""

    def __init__(self, caller: ModelCaller, cancel: CancelToken, on_chunk: OnChunk) -> None:
        self._caller, self._cancel, self._on_chunk = caller, cancel, on_chunk
        self.retries = 0
        self.wasted = _NOTHING
        self._pause = 0.0
        self._letters = 0  # of the answer so far

    def run(self, request: ModelRequest) -> ProviderResponse:
        policy = self._caller.governor.policy
        failures = busy = 0
        while True:
            try:
                return self._attempt(request)
            except CancelledException as cancelled:
                self.wasted += cancelled.usage or self._heard(request)
                raise
            except ProviderError as error:
                self.wasted += error.usage or TokenUsage()
                self._cancel.raise_if_cancelled()
                if not error.retryable or (error.retry_after or 0) > policy.longest_wait:
                    raise
                crowded = isinstance(error, (RateLimited, Overloaded))
                busy, failures = busy + crowded, failures + (not crowded)
                count, most = (busy, policy.rate_limit_attempts) if crowded else (failures, policy.attempts)
                if count >= most:
                    raise
                # A busy service pauses the gate for all; any other failure is this call's own affair.
                delay = self._pause if crowded else policy.delay(failures, error.retry_after)
                self.retries += 1
                self._tell(error, self.retries, most, delay)
                if not crowded and self._cancel.wait(delay):
                    self._cancel.raise_if_cancelled()

    def _heard(self, request: ModelRequest) -> TokenUsage:
        """What a call that was cut short has cost, by estimate: nothing if the answer had not begun."""
        if not self._letters:
            return TokenUsage()
        return TokenUsage.of(request.prompt_tokens, self._letters // CHARS_PER_TOKEN + 1)

    def _listen(self, kind: ChunkKind, text: str) -> None:
        self._letters += len(text)
        self._on_chunk(kind, text)

    def _attempt(self, request: ModelRequest) -> ProviderResponse:
        provider, agent = self._caller.provider, self._caller.agent_path
        self._letters = 0
        if not provider.traits.governed:
            return generate(provider, agent, request, cancel=self._cancel, on_chunk=self._listen)
        governor = self._caller.governor
        governor.enter(self._cancel)
        taken = _Acceptance(governor, self._listen)
        try:
            response = generate(provider, agent, request, cancel=self._cancel, on_chunk=taken.on_chunk)
        except (RateLimited, Overloaded) as error:
            self._pause = governor.refused(error.retry_after)
            raise
        except BaseException:
            governor.leave()
            raise
        taken.accept()
        governor.leave()
        return response

    def _tell(self, error: ProviderError, attempt: int, most: int, delay: float) -> None:
        caller = self._caller
        message = f"{error} — trying again in {delay:.1f} s"
        caller.bus.emit(RetryScheduled(caller.agent_id, message, attempt, most, delay))
        if caller.on_retry is not None:
            caller.on_retry(message, attempt, most, delay)


class _Acceptance:
    """Tells the governor once, at the first sign of an answer, that the service took the call."""

    __slots__ = ("_done", "_governor", "_on_chunk")

    def __init__(self, governor: Governor, on_chunk: OnChunk) -> None:
        self._governor, self._on_chunk, self._done = governor, on_chunk, False

    def accept(self) -> None:
        if not self._done:
            self._done = True
            self._governor.accepted()

    def on_chunk(self, kind: ChunkKind, text: str) -> None:
        self.accept()
        self._on_chunk(kind, text)
