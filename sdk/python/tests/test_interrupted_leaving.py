"""Wherever a program is interrupted as it leaves a body, what the body held is released, and its operation is over."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

import pytest
from conftest import Running
from test_interrupted import Interrupted
from test_interrupted_anywhere import Interrupt, Manager

import minerva
from minerva.v1 import participation_pb2 as v1

HOLDS: list[Callable[[minerva.Client], Manager]] = [
    lambda client: client.deprioritized("low"),
    lambda client: client.job("a"),
    lambda client: client.debt("a", 1),
]


def is_left(manager: Manager, steps: int, error: Exception | None) -> bool:
    """Enters the body and leaves it, with an error of its own or without, unless that takes more steps, when it is interrupted."""
    manager.__enter__()
    before = sys.gettrace()
    sys.settrace(Interrupt(steps))
    try:
        with contextlib.suppress(KeyError):
            manager.__exit__(None if error is None else type(error), error, None)
    except Interrupted:
        return False
    finally:
        sys.settrace(before)
    return True


def steps_to_leave(
    make: Callable[[], Manager], check: Callable[[], None], first: int = 0, error: Exception | None = None
) -> int:
    """How many steps it takes to leave the body; interrupts each of them from the first on, and checks after each."""
    steps = first
    while not is_left(make(), steps, error):
        check()
        steps += 1
    check()
    return steps


@pytest.mark.parametrize("error", [None, KeyError("the body's own")])
@pytest.mark.parametrize("hold", HOLDS)
def test_what_is_held_is_released(
    server: Running, hold: Callable[[minerva.Client], Manager], error: Exception | None
) -> None:
    script = server.script

    def check() -> None:
        script.until("it is released", lambda: not (script.levels_held[v1.LEVEL_LOW] or script.jobs or script.debts))

    with minerva.connect(server.address) as client:
        assert steps_to_leave(lambda: hold(client), check, error=error) > 20


@pytest.mark.parametrize("error", [None, KeyError("the body's own")])
def test_an_operation_is_over(server: Running, error: Exception | None) -> None:
    script = server.script

    def check() -> None:
        script.until("all are over", lambda: set(script.coordinate_keys) <= {*script.cancelled, *script.finished})

    with minerva.connect(server.address) as client:
        assert steps_to_leave(lambda: client.coordinated(bytes=1), check, error=error) > 20
    # One of the two is told, and of one that failed never that it is done.
    assert len(script.cancelled) + len(script.finished) == len(set(script.coordinate_keys))
    assert error is None or not script.finished


def test_a_client_is_closed(server: Running) -> None:
    script = server.script

    @contextlib.contextmanager
    def connected() -> Iterator[None]:
        with minerva.connect(server.address) as client:
            client.hold("low")
            yield

    def check() -> None:
        script.until("the connection is closed", lambda: not script.levels_held[v1.LEVEL_LOW])

    # The first two are before anything of `__exit__` is done, where nobody could do it again.
    assert steps_to_leave(connected, check, first=2) > 15
