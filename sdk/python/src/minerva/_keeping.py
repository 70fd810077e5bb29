"""How what is held goes on, and what is told of work of the program's own: decided here, without clock or connection, for both kinds
of client."""

from __future__ import annotations

import math
from typing import Generic, TypeVar

from . import _link, _wire
from ._errors import MinervaError, Status, closed
from ._link import Server
from ._retry import Backoff
from .v1 import participation_pb2 as v1

_Response = TypeVar("_Response")


class Keeping(Generic[_Response]):
    """What the server said of what is held."""

    def __init__(self) -> None:
        self._backoff = Backoff()
        self._last: _Response | None = None
        """What it said last, for as long as it is held."""
        self._error: MinervaError | None = None
        """Why it is not held any more, and will not be again."""
        self._refusal: MinervaError | None = None
        """What the server said to the last try, if it said no for now; nothing once it has taken the next."""
        self._tried: float | None = None
        """Since when nothing has come of the last try."""

    def _refused(self, now: float) -> MinervaError | None:
        """What the server said last, unless it hangs by now."""
        tried = self._tried
        return None if tried is not None and now - tried >= _link.SILENT_SECONDS else self._refusal

    def _taken(self) -> None:
        """The server has taken what is asked."""
        self._refusal = None

    def _told(self, server: Server, answer: _Response) -> None:
        self._backoff.reset()
        server.is_served = True
        self._last = answer

    def _stream_ended(self, server: Server, status: Status, is_closed: bool) -> float | None:
        """How long to wait before it is asked for again, in seconds; absent: it is not, as `_error` says."""
        error: MinervaError | None = server.absence(status)
        if error is None and not status.is_worth_another_try:
            error = status.refusal()
        elif error is None and is_closed:
            error = closed()
        # Before the rest: whoever sees that it is held no more finds out why.
        self._error = error
        self._refusal = status.refusal() if status.is_refusal else None
        self._tried = None
        self._last = None
        return self._backoff.after(status) if error is None else None


class Owing:
    """How much work of its own a program has, and how much of that the server is told. Instants are seconds of any one clock."""

    def __init__(self, request: v1.HoldDebtRequest, now: float) -> None:
        self._request = request
        self._newest = v1.ReportDebtRequest(
            name=request.name, service_ns=request.service_ns, tied_bytes=request.tied_bytes
        )
        self._reported = -math.inf
        self._due = now + request.done_within_ns / 1e9 if request.HasField("done_within_ns") else None
        self._is_asked = False
        self.is_untold = False
        """Whether there is a report that no try has sent."""

    def asked(self, now: float) -> v1.HoldDebtRequest:
        """What to register: the first time as the program said it, and then as it is by now."""
        if not self._is_asked:
            self._is_asked = True
            return self._request
        return _wire.debt_again(self._request, self._newest, None if self._due is None else self._due - now)

    def report(self, done: float, service: float | None, tied_bytes: int | None, now: float) -> None:
        """How far it is; told at most once a second, and the end of it at once."""
        self._newest = _wire.debt_report(self._newest, done, service, tied_bytes)
        is_over = self._newest.done_ns >= self._newest.service_ns
        if is_over or now - self._reported >= _link.REPORT_SECONDS:
            self._reported = now
            self.is_untold = True

    def newest(self, last: v1.HoldDebtResponse | None) -> v1.ReportDebtRequest:
        """What a try sends that begins now. A report that comes meanwhile is one more to send."""
        self.is_untold = False
        report = v1.ReportDebtRequest()
        report.CopyFrom(self._newest)
        # It is registered anew under another number each time, and under none where the server does not know it.
        report.registration = 0 if last is None else last.registration
        return report
