"""Work that an interrupt of the program does not meet halfway.

What the handler of a signal raises, such as `KeyboardInterrupt`, is raised in the main thread, wherever that is. In the midst of grpcio,
or of what `threading` writes in Python, such as `Event`, `Condition` and `Thread.start`, it would leave a lock held, and other threads
would wait for it for ever. So the main thread meets only locks of the interpreter's own, and what it waits for goes on without it.
"""

from __future__ import annotations

import _thread
import contextlib
import sys
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import TypeVar

_Result = TypeVar("_Result")


class Latch:
    """Closed until it is opened, for ever. Of two threads that wait for it at a time, one that is interrupted may keep the other."""

    def __init__(self) -> None:
        self.is_open = False
        self._lock = _thread.allocate_lock()
        self._lock.acquire()

    def open(self) -> None:
        """Twice is as good as once."""
        self.is_open = True
        with contextlib.suppress(RuntimeError):
            self._lock.release()

    def wait(self, seconds: float = threading.TIMEOUT_MAX) -> bool:
        """Returns when it is open, or after some seconds; whether it is open."""
        if not self.is_open and self._lock.acquire(timeout=seconds):
            self.open()
        return self.is_open


def in_background(work: Callable[[], object]) -> Latch | None:
    """Does it in a thread of its own; what opens when it is done. None where no more threads may be started."""
    done = Latch()

    def run() -> None:
        try:
            work()
        finally:
            done.open()

    if sys.is_finalizing():
        # Before 3.12 it would be started and never run.
        return None
    try:
        _thread.start_new_thread(run, ())
    except RuntimeError:
        # The interpreter ends, or the process has as many as it may have.
        return None
    return done


def apart(work: Callable[[], _Result]) -> _Result:
    """Does it in a thread of its own and waits for it; in place where no more threads may be started. Whoever is interrupted leaves it
    to go on without anybody who waits for it."""
    if threading.get_ident() != threading.main_thread().ident:
        return work()
    # Unlike `Queue`, it can be interrupted anywhere.
    outcomes: SimpleQueue[tuple[_Result] | BaseException] = SimpleQueue()

    def run() -> None:
        try:
            outcomes.put((work(),))
        except BaseException as error:
            outcomes.put(error)

    if in_background(run) is None:
        run()
    outcome = outcomes.get()
    if isinstance(outcome, BaseException):
        try:
            raise outcome
        finally:
            # It has this frame in its traceback: only the garbage collector would let go of the two, and of what the caller has.
            del outcome
    return outcome[0]
