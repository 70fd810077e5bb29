"""How long a coordinated operation waits: decided here, without clock or connection, for both kinds of client."""

from __future__ import annotations

import threading

from . import _link, _wire, cache
from ._errors import OutOfRange, Refused, Status, TooLate
from ._link import Server
from ._retry import Backoff
from ._types import Begun
from .v1 import participation_pb2 as v1


class Operation:
    """An operation, and where what it writes goes."""

    def __init__(self, key: str, written: cache.Written | None) -> None:
        self.request_id = key
        """The key it was asked for under."""
        self.begun = Begun.UNSERVED
        """Why it begins."""
        self.waited_seconds = 0.0
        """How long it was held."""
        self._written = written

    @property
    def path(self) -> str | None:
        """Where to write: the path that was given. Asked for the first time, it is by then a link to an empty file in the pool, if the
        operation goes there and the pool takes it; what was there before is gone. For that the cache's service of this machine is asked,
        and its answer waited for, also in a program with an event loop."""
        if self._written is None:
            return None
        return (self._written if self.begun is Begun.IN_POOL else self._written.in_place()).placed()


class Waiting:
    """The wait of one operation. Whatever becomes of the server, it ends: with its word, with the deadline, or when the server
    was away for longer than the client is patient. Instants are seconds of any one clock."""

    def __init__(self, server: Server, request: v1.CoordinateRequest, now: float) -> None:
        self._server = server
        self._request = request
        self._asked = now
        self._tried: float | None = None
        """Since when nothing has come of the last try."""
        self._passed = 0.0
        """How much nearer the deadline was then than when the program asked, in seconds."""
        self._patience_seconds = server.patience_seconds
        self._backoff = Backoff()
        self._is_answered = False
        self._away_since: float | None = now
        self._limit: float | None = None
        bound = request.WhichOneof("deadline")
        if bound is not None:
            within_ns = request.begin_within_ns if bound == "begin_within_ns" else request.done_within_ns
            # A span too long for any clock is as good as none.
            if within_ns / 1e9 < threading.TIMEOUT_MAX:
                self._limit = now + within_ns / 1e9
        self._begun: Begun | None = None
        self._refusal: Refused | None = None
        """What the server said to the last try, if it said no; nothing once it has taken the next, or hangs over it."""

    def question(self, now: float) -> v1.CoordinateRequest:
        """What a try asks that begins now."""
        self._tried = now
        self._passed = now - self._asked
        return _wire.asked_ago(self._request, self._passed)

    def taken(self) -> None:
        """The server has taken the question."""
        self._refusal = None

    def left(self, now: float) -> float | None:
        """For how long to listen, in seconds; absent: until there is an answer."""
        limits = [limit for limit, _ in self._limits()]
        return min(max(min(limits) - now, 0.0), threading.TIMEOUT_MAX) if limits else None

    def _limits(self) -> list[tuple[float, Begun]]:
        limits = []
        if self._limit is not None:
            limits.append((self._limit, Begun.IN_TIME))
        if self._away_since is not None:
            limits.append((self._away_since + self._patience_seconds, Begun.UNSERVED))
        return limits

    def begun(self, now: float) -> Begun | None:
        """Why it begins, of its own accord if need be; absent while it waits. Raises when the server refused it until then."""
        if self._begun is None:
            passed = [(limit, why) for limit, why in self._limits() if now >= limit]
            hangs = self._tried is not None and now - self._tried >= _link.SILENT_SECONDS
            if passed and self._refusal is not None and not self._is_answered and not hangs:
                raise self._refusal
            self._begun = min(passed)[1] if passed else None
        return self._begun

    def answered(self, response: v1.CoordinateResponse, now: float) -> bool:
        """The server answered. Whether it begins now."""
        self._is_answered = self._server.is_served = True
        self._away_since = None
        self._backoff.reset()
        answer = response.WhichOneof("answer")
        if answer == "begin_now":
            self._begun = Begun.TOLD
        elif answer == "write_to_pool":
            self._begun = Begun.IN_POOL
        elif answer == "begin_after":
            # One slice more than it says, so that the server, which counts whole slices, is heard before this side
            # begins on its own.
            after = response.begin_after
            self._promised(now + (after.slices + 1) * after.slice_ns / 1e9)
        elif answer == "wait" and response.wait.HasField("at_most_ns"):
            self._promised(now + response.wait.at_most_ns / 1e9)
        return self._begun is not None

    def _promised(self, limit: float) -> None:
        # A deadline for being done is no time to begin at: what the server promises is earlier.
        self._limit = limit if self._limit is None else min(self._limit, limit)

    def ended(self, status: Status, now: float) -> float:
        """The stream ended before it could begin. How long to wait before asking again under the same key, in seconds;
        raises when the server refused."""
        self._tried = None
        absence = self._server.absence(status)
        if absence is not None:
            raise absence
        if not status.is_worth_another_try:
            if self._is_answered:
                # It is not failed by a server that knows it no more.
                self._begun = Begun.UNSERVED
            elif self._is_late(status.refusal()):
                self._begun = Begun.IN_TIME
            else:
                raise status.refusal()
            return 0.0
        self._refusal = status.refusal() if status.is_refusal else None
        if self._away_since is None:
            self._away_since = now
        wait = self._backoff.after(status)
        left = self.left(now)
        return wait if left is None else min(wait, left)

    def _is_late(self, refusal: Refused) -> bool:
        """Whether it is refused only because it could not be asked about sooner: what can no longer be done in time is to begin at once."""
        is_bound = self._request.WhichOneof("deadline") == "done_within_ns"
        return is_bound and self._passed >= _link.LATE_SECONDS and isinstance(refusal, OutOfRange | TooLate)
