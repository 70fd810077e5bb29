"""Wherever a program is interrupted, no lock is held for ever, and nothing is held or under way on the server."""

from __future__ import annotations

import contextlib
import gc
import importlib
import inspect
import sys
import threading
import time
import traceback
from collections.abc import Callable
from types import FrameType

import grpc
import pytest
from conftest import PATIENCE_SECONDS, Running
from test_client import wait
from test_interrupted import Interrupted, interrupted_once

import minerva
from minerva._apart import in_background
from minerva.v1 import participation_pb2 as v1

REFUSAL = (grpc.StatusCode.PERMISSION_DENIED, "not you", "not-allowed")

Manager = contextlib.AbstractContextManager[object]


class Interrupt:
    """For `sys.settrace`: raises at a later step of the library's."""

    def __init__(self, steps: int) -> None:
        self._steps = steps

    def __call__(self, frame: FrameType, event: str, argument: object) -> Interrupt | None:
        if "/minerva/" not in frame.f_code.co_filename:
            return None
        if event in ("call", "return") and frame.f_code.co_flags & inspect.CO_GENERATOR:
            # Signals are looked at before a value is yielded and when it goes on after that, but not as it leaves; and before Python 3.12
            # what is raised here as it goes on is raised outside of its blocks.
            return self
        self._steps -= 1
        if self._steps < 0:
            sys.settrace(None)
            raise Interrupted
        return self


def is_entered(manager: Manager, steps: int) -> bool:
    """Enters the body and leaves it, unless that takes more steps, when it is interrupted."""
    before = sys.gettrace()
    sys.settrace(Interrupt(steps))
    try:
        manager.__enter__()
    except Interrupted:
        return False
    finally:
        sys.settrace(before)
    manager.__exit__(None, None, None)
    return True


def steps_to_enter(make: Callable[[], Manager], check: Callable[[], None]) -> int:
    """How many steps it takes to enter the body; interrupts each of them, and checks after each."""
    steps = 0
    while not is_entered(make(), steps):
        check()
        steps += 1
    check()
    return steps


@pytest.mark.parametrize(
    "hold", [lambda client: client.deprioritized("low"), lambda client: client.job("a"), lambda client: client.debt("a", 1)]
)
def test_a_hold_that_is_interrupted_anywhere_is_released(
    server: Running, hold: Callable[[minerva.Client], Manager]
) -> None:
    script = server.script

    def check() -> None:
        script.until("it is released", lambda: not (script.levels_held[v1.LEVEL_LOW] or script.jobs or script.debts))

    with minerva.connect(server.address) as client:
        assert steps_to_enter(lambda: hold(client), check) > 20
        time.sleep(0.2)
        check()


@pytest.mark.parametrize("answers", [[v1.CoordinateResponse(begin_now=v1.BeginNow())], [wait(0.05)]])
def test_an_operation_that_is_interrupted_anywhere_is_cancelled(
    server: Running, answers: list[v1.CoordinateResponse]
) -> None:
    script = server.script
    script.answers = answers

    def check() -> None:
        script.until("all are over", lambda: set(script.coordinate_keys) <= {*script.cancelled, *script.finished})

    with minerva.connect(server.address) as client:
        assert steps_to_enter(lambda: client.coordinated(bytes=1, deadline=60), check) > 20
        time.sleep(0.2)
        check()
        assert len(script.finished) == 1


def test_the_server_hears_last_that_an_interrupted_operation_is_cancelled(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.script.answers = [wait(60)]
    heard: list[str] = []
    enter = server.script._enter

    def entering(name: str, context: grpc.ServicerContext) -> None:
        heard.append(name)
        enter(name, context)

    monkeypatch.setattr(server.script, "_enter", entering)
    with minerva.connect(server.address) as client:
        assert client._link is not None
        coordinate, inside = client._link.stub.Coordinate, threading.Event()

        def coordinating(*arguments: object, **options: object) -> object:
            # It is interrupted before it asks, and what it asks is on its way before it can be told to stop.
            inside.set()
            time.sleep(0.2)
            call = coordinate(*arguments, **options)  # type: ignore[arg-type]
            server.script.until("it is asked", lambda: server.script.calls["Coordinate"] == 1)
            return call

        setattr(client._link.stub, "Coordinate", coordinating)
        with interrupted_once(inside):
            client.coordinate(bytes=1)
        server.script.until("it is cancelled", lambda: len(server.script.cancelled) == 1)
        time.sleep(0.2)
        assert heard == ["Coordinate", "Cancel"]


def use_all(client: minerva.Client, server: Running) -> None:
    """Each kind of call, in the ways in which it ends."""
    client.describe()
    client.hold_job("sort").release()
    with client.deprioritized("low"), client.debt("rebuild", 50) as debt:
        debt.wait(0.01)
        in_background(server.script.may_work.set)
        debt.wait()
        debt.report(10)
    with client.coordinated(bytes=1):
        pass
    server.script.answers = [wait(60)]
    with client.coordinated(bytes=1, begin_by=0.1):
        pass
    for refused in (lambda: client.hold("low"), lambda: client.coordinate(bytes=1), client.describe):
        server.script.failures = [REFUSAL]
        with pytest.raises(minerva.NotAllowed):
            refused()


def test_the_main_thread_takes_no_lock_that_an_interrupt_may_leave_held(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter, taken = threading.Condition.__enter__, list[str]()

    def entering(condition: threading.Condition) -> bool:
        # Events and the starts of threads have one too.
        if threading.get_ident() == threading.main_thread().ident:
            taken.append("".join(traceback.format_stack(limit=6)))
        return enter(condition)

    with minerva.connect(server.address) as client, monkeypatch.context() as patched:
        patched.setattr(threading.Condition, "__enter__", entering)
        use_all(client, server)
    assert not taken, taken[0]


def test_no_call_of_grpcio_ends_in_the_main_thread(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = importlib.import_module("grpc._channel")._MultiThreadedRendezvous
    begin, end = kind.__init__, kind.__del__
    begun, ended = list[int](), list[int]()

    def beginning(call: object, *arguments: object) -> None:
        begun.append(threading.get_ident())
        begin(call, *arguments)

    def ending(call: object) -> None:
        ended.append(threading.get_ident())
        end(call)

    monkeypatch.setattr(kind, "__init__", beginning)
    monkeypatch.setattr(kind, "__del__", ending)
    # What only it would find may be found in any thread.
    gc.disable()
    try:
        with minerva.connect(server.address) as client:
            use_all(client, server)
        limit = time.monotonic() + PATIENCE_SECONDS / 2
        while len(ended) < len(begun):
            assert time.monotonic() < limit, f"{len(ended)} of {len(begun)}"
            time.sleep(0.01)
    finally:
        gc.enable()
    assert len(begun) >= 7 and threading.get_ident() not in begun + ended
