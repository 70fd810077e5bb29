"""An operation of a program without an event loop, and how it waits until it may begin."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue

import grpc

from . import cache
from ._apart import Latch, in_background
from ._connection import Link, status_of_stream
from ._errors import MinervaError, Status
from ._types import Begun
from ._waiting import Waiting
from .v1 import participation_pb2 as v1


class Coordinated:
    """An operation that may begin."""

    def __init__(self, link: Link | None, key: str, written: cache.Written | None = None) -> None:
        self._link = link
        self.request_id = key
        """The key it was asked for under."""
        self.begun = Begun.UNSERVED
        """Why it begins."""
        self.waited_seconds = 0.0
        """How long it was held."""
        self._written = written
        self._before_end: Callable[[], object] | None = None
        """Returns when the server has heard all that it hears before the operation's end."""

    @property
    def path(self) -> str | None:
        """Where to write: the path that was given. Asked for the first time, it is by then a link to an empty file in the pool, if the
        operation goes there and the pool takes it; what was there before is gone."""
        if self._written is None:
            return None
        return (self._written if self.begun is Begun.IN_POOL else self._written.in_place()).placed()

    def finish(self) -> None:
        """It is done; the measured time makes the next estimate better. Twice is as good as once."""
        link = self._end()
        if link is not None:
            link.tell(link.stub.Finish, v1.FinishRequest(request_id=self.request_id), self._before_end)

    def cancel(self) -> None:
        """It will not be done, or not to its end."""
        link = self._end()
        if link is not None:
            link.tell(link.stub.Cancel, v1.CancelRequest(request_id=self.request_id), self._before_end)

    def _end(self) -> Link | None:
        """Whom to tell: nobody the second time, or in a child of the process that asked."""
        link, self._link = self._link, None
        return link if link is not None and link.process == os.getpid() else None

    def _ask(self, request: v1.CoordinateRequest) -> None:
        """Returns when it may begin. What raises leaves nothing under way."""
        link, asked = self._link, time.monotonic()
        if link is None:
            return
        asking = Asking(link, request)
        self._before_end = asking.end
        try:
            begun = asking.wait()
            self.begun, self.waited_seconds = begun or Begun.UNSERVED, time.monotonic() - asked
            if begun is Begun.IN_POOL or begun is None:
                # Nothing is under way on the server.
                self._link = None
            elif begun is not Begun.TOLD:
                # It has begun, whether or not the server is there to hear of it.
                begin = v1.BeginRequest(request_id=self.request_id)
                self._before_end = link.tell(link.stub.Begin, begin, asking.end, is_awaited=False)
        except MinervaError:
            # Refused, it is not under way.
            self._link = None
            in_background(asking.end)
            raise
        except BaseException:
            self.cancel()
            raise


class _Stream:
    """One question when an operation may begin. Another thread listens for the answers."""

    def __init__(self, link: Link, request: v1.CoordinateRequest) -> None:
        self._link = link
        self._request = request
        self.heard: SimpleQueue[v1.CoordinateResponse | Status | Exception] = SimpleQueue()
        """The answers, and last how the stream ended, or why there was none."""
        self._call: grpc.Call | None = None
        self._is_begun = False
        self._is_ended = False
        self._over = Latch()

    def listen(self) -> None:
        """Until there is no more to hear."""
        self._is_begun = True
        try:
            if not self._is_ended:
                self.heard.put(self._listen())
        except Exception as error:
            self.heard.put(error)
        finally:
            self._over.open()

    def end(self) -> None:
        """Returns when nothing is asked any more. Not for the main thread."""
        self._is_ended = True
        # One that begins later than this asks nothing.
        if self._is_begun:
            call = self._call
            if call is not None:
                call.cancel()
            self._over.wait()

    def _listen(self) -> Status:
        try:
            self._call = call = self._link.stub.Coordinate(self._request, metadata=self._link.server.metadata)
            if self._is_ended:
                call.cancel()
            for response in call:
                self.heard.put(response)
                if response.WhichOneof("answer") in ("begin_now", "write_to_pool"):
                    call.cancel()
                    return Status(grpc.StatusCode.OK)
            return Status(grpc.StatusCode.UNAVAILABLE, "the server ended the wait")
        except grpc.RpcError as error:
            return status_of_stream(error)
        finally:
            self._call = None


class Asking:
    """The wait of one operation, which another thread can end."""

    def __init__(self, link: Link, request: v1.CoordinateRequest) -> None:
        self._link = link
        self._request = request
        self._waiting = Waiting(link.server, request, time.monotonic())
        self._stream = _Stream(link, request)

    def wait(self) -> Begun | None:
        """Asks, and asks again under the same key when the server was away, until the operation begins. None where nobody can listen for
        the answer, as the interpreter ends."""
        while True:
            self._stream = _Stream(self._link, self._request)
            if in_background(self._stream.listen) is None:
                return None
            status = self._listen(self._stream.heard)
            begun = self._waiting.begun(time.monotonic())
            if begun is None:
                time.sleep(self._waiting.ended(status, time.monotonic()))
                begun = self._waiting.begun(time.monotonic())
            if begun is not None:
                return begun
            self._link.server.revive(self._waiting.left(time.monotonic()))

    def end(self) -> None:
        """Returns when nothing is asked any more. Not for the main thread."""
        self._stream.end()

    def _listen(self, heard: SimpleQueue[v1.CoordinateResponse | Status | Exception]) -> Status:
        """Until the operation may begin, the stream ends, or there is no more time for it."""
        while (left := self._waiting.left(time.monotonic())) != 0:
            try:
                answer = heard.get(timeout=left)
            except Empty:
                continue
            if isinstance(answer, Exception):
                raise answer
            if isinstance(answer, Status):
                return answer
            if self._waiting.answered(answer, time.monotonic()):
                return Status(grpc.StatusCode.OK)
        return Status(grpc.StatusCode.CANCELLED)
