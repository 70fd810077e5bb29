"""An operation of a program without an event loop, and how it waits until it may begin."""

from __future__ import annotations

import _thread
import os
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import TypeVar

import grpc

from . import cache
from ._apart import Latch, in_background
from ._connection import Link, status_of_stream, tell
from ._errors import NoServer, NoThread, Refused, Status, closed
from ._types import Begun
from ._waiting import Operation, Waiting
from .v1 import participation_pb2 as v1
from .v1.participation_pb2_grpc import ParticipationStub

_Request = TypeVar("_Request")
_Response = TypeVar("_Response")


class Coordinated(Operation):
    """An operation that may begin."""

    def __init__(self, link: Link | None, key: str, written: cache.Written | None = None) -> None:
        super().__init__(key, written)
        self._link = link
        self._before_end: Callable[[], object] | None = None
        """Returns when the server has heard all that it hears before the operation's end."""
        self._end_is_told = _thread.allocate_lock()
        """Taken for good, by the thread that tells it."""

    def finish(self) -> None:
        """It is done; the measured time makes the next estimate better. Twice is as good as once."""
        self._end(lambda stub: stub.Finish, v1.FinishRequest(request_id=self.request_id))

    def cancel(self) -> None:
        """It will not be done, or not to its end."""
        self._end(lambda stub: stub.Cancel, v1.CancelRequest(request_id=self.request_id))

    def _end(
        self,
        method: Callable[[ParticipationStub], grpc.UnaryUnaryMultiCallable[_Request, _Response]],
        request: _Request,
    ) -> None:
        """Tells it to nobody the second time, or in a child of the process that asked."""
        link = self._link
        if link is None or link.process != os.getpid():
            return

        def send() -> None:
            if self._end_is_told.acquire(blocking=False):
                if self._before_end is not None:
                    self._before_end()
                link.call(method(link.stub), request)

        tell(send, lambda: link.try_once(method(link.stub), request))
        # Not before: who is interrupted until here ends it once more, and of the two one is told.
        self._link = None

    def _ask(self, request: v1.CoordinateRequest, asked: float) -> None:
        """Returns when it may begin. What raises leaves nothing under way."""
        link = self._link
        if link is None:
            return
        waiting = Waiting(link.server, request, asked)
        if self._written is not None:
            self._written.offer(request, waiting.left(time.monotonic()))
        asking = Asking(link, self.request_id, waiting)
        self._before_end = asking.end
        try:
            self.begun = asking.wait()
            self.waited_seconds = time.monotonic() - asked
            if self.begun is Begun.IN_POOL:
                # Nothing is under way on the server.
                self._link = None
            elif self.begun is not Begun.TOLD:
                # It has begun, whether or not the server is there to hear of it.
                self._before_end = tell_begun(link, self.request_id, asking.end)
        except (Refused, NoServer):
            # It is not under way.
            self._link = None
            in_background(asking.end)
            raise
        except BaseException:
            self.cancel()
            raise


def tell_begun(link: Link, key: str, after: Callable[[], object]) -> Callable[[], object] | None:
    """That an operation has begun by itself, once `after` has returned. What returns when the server has heard it, if it has not by now."""
    request = v1.BeginRequest(request_id=key)

    def send() -> None:
        after()
        link.call(link.stub.Begin, request)

    return tell(send, lambda: link.try_once(link.stub.Begin, request), is_awaited=False)


class _Stream:
    """One question when an operation may begin. Another thread listens for the answers."""

    def __init__(self, link: Link, request: v1.CoordinateRequest) -> None:
        self._link = link
        self._request = request
        self.heard: SimpleQueue[v1.CoordinateResponse | Status | Exception | None] = SimpleQueue()
        """None once the server has taken the question, then the answers, and last how the stream ended, or why there was none."""
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
            call.initial_metadata()
            self.heard.put(None)
            for response in call:
                self.heard.put(response)
                if response.WhichOneof("answer") in ("begin_now", "write_to_pool"):
                    call.cancel()
                    return Status(grpc.StatusCode.OK)
            return Status(grpc.StatusCode.UNAVAILABLE, "the server ended the wait")
        except grpc.RpcError as error:
            return status_of_stream(error)
        except ValueError:
            if not self._link.is_closed:
                raise
            return Status(grpc.StatusCode.CANCELLED)
        finally:
            self._call = None


class Asking:
    """The wait of one operation, which another thread can end."""

    def __init__(self, link: Link, key: str, waiting: Waiting) -> None:
        self._link = link
        self._key = key
        self._waiting = waiting
        self._stream: _Stream | None = None

    def wait(self) -> Begun:
        """Asks, and asks again under the same key when the server was away, until the operation begins."""
        while True:
            self._stream = stream = _Stream(self._link, self._waiting.question(time.monotonic()))
            if in_background(stream.listen) is None:
                raise NoThread
            status = self._listen(stream.heard)
            begun = self._waiting.begun(time.monotonic())
            if begun is None:
                self._link.pause(self._waiting.ended(status, time.monotonic()))
                begun = self._waiting.begun(time.monotonic())
            if begun is not None:
                return begun
            if self._link.is_closed:
                raise closed(self._key)
            self._link.server.revive(self._waiting.left(time.monotonic()))

    def end(self) -> None:
        """Returns when nothing is asked any more. Not for the main thread."""
        stream = self._stream
        if stream is not None:
            stream.end()

    def _listen(self, heard: SimpleQueue[v1.CoordinateResponse | Status | Exception | None]) -> Status:
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
            if answer is None:
                self._waiting.taken()
            elif self._waiting.answered(answer, time.monotonic()):
                return Status(grpc.StatusCode.OK)
        return Status(grpc.StatusCode.CANCELLED)
