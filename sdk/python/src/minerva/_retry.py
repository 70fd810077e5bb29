"""When to ask again: waits that double, and an end to it."""

from __future__ import annotations

import random

from ._errors import Status

_FIRST_SECONDS = 0.1
_LONGEST_SECONDS = 5.0


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

    def __init__(self, address: str, patience_seconds: float, now: float) -> None:
        self._address = address
        self._begin = now
        self._end = now + patience_seconds
        self._backoff = Backoff()

    def left(self, now: float) -> float:
        """How long the next try may take, in seconds."""
        return max(self._end - now, 0.0)

    def failed(self, status: Status, now: float) -> float:
        """How long to wait before the next try; raises when there is none."""
        wait = self._backoff.after(status)
        if not status.is_worth_another_try or now + wait > self._end:
            raise status.error(self._address, now - self._begin)
        return wait
