"""Work that an interrupt of the program does not meet halfway."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import TypeVar

_Result = TypeVar("_Result")


def apart(work: Callable[[], _Result]) -> _Result:
    """Does it in a thread of its own and waits for it.

    What the handler of a signal raises, such as `KeyboardInterrupt`, is raised in the main thread, wherever that is. In the midst of
    grpcio it would leave a lock held, and each later call on the channel would hang, its close too. So it meets only the wait; the
    work goes on without anybody who waits for it."""
    if threading.current_thread() is not threading.main_thread():
        return work()
    # Unlike `Queue`, it can be interrupted anywhere.
    outcomes: SimpleQueue[tuple[_Result] | BaseException] = SimpleQueue()

    def run() -> None:
        try:
            outcomes.put((work(),))
        except BaseException as error:
            outcomes.put(error)

    threading.Thread(target=run, name="minerva-call", daemon=True).start()
    outcome = outcomes.get()
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome[0]
