"""A program that ends, or may start no more threads, neither hangs nor fails for it, and what it asks as it ends is done."""

from __future__ import annotations

import _thread
import gc
import sys
import time
import weakref

import pytest
from conftest import PATIENCE_SECONDS, Running, run_program

import minerva
from minerva._apart import apart
from minerva.v1 import participation_pb2 as v1

# What it holds is let go by the interpreter, after that has stopped all other threads. Nothing is asked any more by then.
LEFT = """
import sys, minerva

class Last:
    def __del__(self):
        print(client.describe().tenant == "" and client.coordinate(bytes=1).begun.value)
        client.close()

client = minerva.connect(sys.argv[1])
held, job, debt = client.deprioritized("low"), client.job("sort"), client.debt("rebuild", 50)
operation = client.coordinated(bytes=1)
for one in (held, job, debt, operation):
    one.__enter__()
last = Last()
print("held")
"""

# The interpreter starts no more threads by then, from 3.12 on.
AT_EXIT = """
import atexit, sys, minerva

client = minerva.connect(sys.argv[1])
held, operation = client.hold("low"), client.coordinate(bytes=1, request_id="mine")

def end():
    operation.finish()
    held.release()
    with client.deprioritized("lowest"), client.coordinated(bytes=1):
        print(client.boost(slices=3).slices)
    client.close()

atexit.register(end)
"""


def test_a_program_that_leaves_what_it_holds_ends(server: Running) -> None:
    assert run_program(sys.executable, "-c", LEFT, server.address).splitlines() == ["held", "unserved"]
    server.script.until("it is released", lambda: server.script.levels_held[v1.LEVEL_LOW] == 0)


def test_what_a_program_asks_as_it_ends_is_done(server: Running) -> None:
    assert run_program(sys.executable, "-c", AT_EXIT, server.address) == "3\n"
    assert len(server.script.purchases) == 1 and server.script.finished[0] == "mine"


def test_where_no_thread_may_be_started_calls_are_made_in_place_and_what_needs_one_says_so(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(*arguments: object) -> None:
        raise RuntimeError("can't start new thread")

    with minerva.connect(server.address) as client:
        held, operation = client.hold("low"), client.coordinate(bytes=1)
        monkeypatch.setattr(_thread, "start_new_thread", start)
        assert client.describe().tenant == "vm4"
        with pytest.warns(minerva.UnservedWarning, match="no more threads") as told:
            with client.deprioritized("idle") as nothing, client.coordinated(bytes=1) as unserved:
                assert (nothing.level, unserved.begun) == (None, minerva.Begun.UNSERVED)
        assert len(told) == 1
        for use in (lambda: client.hold("idle"), lambda: client.hold_job("sort"), lambda: client.coordinate(bytes=1)):
            with pytest.raises(minerva.NoThread):
                use()
        for body in (client.deprioritized("idle", strict=True), client.coordinated(bytes=1, strict=True)):
            with pytest.raises(minerva.NoThread), body:
                pytest.fail("the body ran")
        operation.finish()
        held.release()
        assert server.script.finished == [operation.request_id] and server.script.calls["Coordinate"] == 1
        server.script.until("it is released", lambda: server.script.levels_held[v1.LEVEL_LOW] == 0)


def test_what_is_raised_apart_is_let_go_without_the_garbage_collector() -> None:
    class Failure(Exception):
        pass

    def fail() -> None:
        raise Failure

    gc.disable()
    try:
        try:
            apart(fail)
        except Failure as error:
            failure = weakref.ref(error)
        # The thread may not be quite over.
        end = time.monotonic() + PATIENCE_SECONDS / 2
        while failure() is not None:
            assert time.monotonic() < end
            time.sleep(0.01)
    finally:
        gc.enable()
