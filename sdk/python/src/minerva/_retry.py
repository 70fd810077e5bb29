"""When to ask again: waits that double, and an end to it."""

from __future__ import annotations

import random

from ._errors import Status
from ._link import Server

_FIRST_SECONDS = 0.1
_LONGEST_SECONDS = 5.0
# A try that would have less than one part in so many of the patience is none.
_LAST_PART = 20


class Backoff:
    """Waits that double from try to try. The jitter keeps the clients of a server that comes back from asking all at once."""

    def __init__(self) -> None:
        self._next_seconds = _FIRST_SECONDS

    def reset(self) -> None:
        """After something worked: the next wait is the first again."""
        self._next_seconds = _FIRST_SECONDS

    def after(self, status: Status) -> float:
        """The next wait in seconds; no shorter than the server asked for."""
        base = self._next_seconds
        self._next_seconds = min(base * 2, _LONGEST_SECONDS)
        return max(base * random.uniform(0.5, 1.0), status.retry_after_seconds)


class Attempts:
    """The tries of one request. Every request of the contract may be sent twice: what counts carries a key."""

    def __init__(self, server: Server, request_id: str, now: float) -> None:
        self._server = server
        self._request_id = request_id
        self._begin = now
        self._end = now + server.patience_seconds
        self._backoff = Backoff()
        self._is_first = True
        self._unsure: Status | None = None
        """The last after which what was asked may have been done."""
        self._last: Status | None = None
        """How the last try ended. If nothing was heard of it, what was heard before says more, but for a request that may have been done."""

    def left(self, now: float) -> float:
        """How long the next try may take, in seconds."""
        return max(self._end - now, 0.0)

    def failed(self, status: Status, now: float) -> float:
        """How long to wait before the next try; raises when there is none."""
        absence = self._server.absence(status) if self._is_first else None
        if absence is not None:
            raise absence
        if not status.is_worth_another_try:
            raise status.refusal()
        self._is_first = False
        if not status.is_silence or self._request_id or self._last is None:
            self._last = status
            if status.may_be_done:
                # A later `busy` does not undo it.
                self._unsure = status
        left = self.left(now)
        # The last waits are shorter, so that a server that is back by then is asked in time.
        wait = max(min(self._backoff.after(status), left / 2), status.retry_after_seconds)
        # A try takes some time itself.
        if left <= 0 or left - wait < self._server.patience_seconds / _LAST_PART:
            told = self._unsure or self._last or status
            raise told.error(self._server.address, now - self._begin, self._request_id)
        return wait
