"""A program that is interrupted while it asks leaves nothing behind on the server; neither does its child hang for what it did."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType

import grpc
import pytest
from conftest import PATIENCE_SECONDS, Running, run_program
from test_client import wait

import minerva


class Interrupted(BaseException):
    """What a program's handler of a signal raises."""


@contextlib.contextmanager
def interrupted_once(is_so: threading.Event) -> Iterator[None]:
    """The main thread is interrupted, as by Ctrl-C, when it is so."""

    def handler(number: int, frame: FrameType | None) -> None:
        raise Interrupted

    def send() -> None:
        if is_so.wait(PATIENCE_SECONDS):
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, handler)
    sender = threading.Thread(target=send)
    sender.start()
    try:
        with pytest.raises(Interrupted):
            yield
    finally:
        sender.join()
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize(
    "hold",
    [lambda client: client.hold("idle"), lambda client: client.hold_job("sort"), lambda client: client.hold_debt("a", 1)],
)
def test_a_hold_that_is_interrupted_is_released(
    server: Running, monkeypatch: pytest.MonkeyPatch, hold: Callable[[minerva.Client], object]
) -> None:
    asked, ended = threading.Event(), threading.Event()

    def silent(name: str, context: grpc.ServicerContext) -> None:
        asked.set()
        server.script._until_closed(context)
        ended.set()

    monkeypatch.setattr(server.script, "_enter", silent)
    with minerva.connect(server.address) as client:
        with interrupted_once(asked):
            hold(client)
        assert ended.wait(PATIENCE_SECONDS / 2), "the server still has it"


def test_an_operation_whose_wait_is_interrupted_is_cancelled(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = threading.Event()
    enter = server.script._enter

    def entering(name: str, context: grpc.ServicerContext) -> None:
        enter(name, context)
        asked.set()

    monkeypatch.setattr(server.script, "_enter", entering)
    server.script.answers = [wait(600)]
    with minerva.connect(server.address) as client:
        with interrupted_once(asked):
            client.coordinate(bytes=1, request_id="mine")
        server.script.until("it is cancelled", lambda: server.script.cancelled == ["mine"])


@pytest.mark.parametrize(
    ("method", "use"),
    [
        ("Describe", lambda client: client.describe()),
        ("Coordinate", lambda client: client.coordinate(bytes=1)),
        ("Cancel", lambda client: client.coordinate(bytes=1).cancel()),
    ],
)
def test_what_grpcio_does_is_not_interrupted_halfway(
    server: Running, method: str, use: Callable[[minerva.Client], object]
) -> None:
    with minerva.connect(server.address) as client:
        assert client._link is not None
        called, inside, done = getattr(client._link.stub, method), threading.Event(), threading.Event()

        def calling(*arguments: object, **options: object) -> object:
            # As if it held a lock: where the interrupt is raised here, it is not let go.
            inside.set()
            time.sleep(0.2)
            done.set()
            return called(*arguments, **options)

        setattr(client._link.stub, method, calling)
        with interrupted_once(inside):
            use(client)
            # Over before it was interrupted, on a slow machine.
            time.sleep(PATIENCE_SECONDS)
        assert done.wait(PATIENCE_SECONDS / 2)
        assert client.describe().tenant == "vm4"


def test_the_close_of_a_client_is_not_interrupted_halfway(server: Running) -> None:
    client = minerva.connect(server.address)
    client.describe()
    assert client._link is not None
    close, inside, done = client._link.channel.close, threading.Event(), threading.Event()

    def closing() -> None:
        inside.set()
        time.sleep(0.2)
        close()
        done.set()

    setattr(client._link.channel, "close", closing)
    with interrupted_once(inside):
        client.close()
        time.sleep(PATIENCE_SECONDS)
    assert done.wait(PATIENCE_SECONDS / 2)


# Its first thread forks while another one is still looking for the server.
FORK = """
import os, threading, minerva
from minerva import _find, _link

looking, parent = threading.Event(), os.getpid()

def find(address, environment):
    if os.getpid() == parent:
        looking.set()
        threading.Event().wait()
    return _find.Found(None, "nobody is there")

_link.find = find
threading.Thread(target=minerva.describe, daemon=True).start()
looking.wait()
child = os.fork()
if child == 0:
    os._exit(7 if minerva.describe() == minerva.Description() else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
"""


def test_a_child_that_is_forked_while_its_parent_looks_for_the_server_looks_itself() -> None:
    run_program(sys.executable, "-W", "ignore", "-c", FORK)
