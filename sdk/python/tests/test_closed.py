"""Whoever waits while another thread closes the client is told so, by an error of the library's, and what is held has ended."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

import grpc
import pytest
from conftest import PATIENCE_SECONDS, Running

import minerva
from minerva import _find, _link, _retry
from minerva._address import Address

USES: list[tuple[Callable[[Any], Any], str]] = [
    (lambda client: client.describe(), ""),
    (lambda client: client.boost(slices=1, request_id="mine"), "mine"),
    (lambda client: client.hold("low"), ""),
    (lambda client: client.hold_debt("rebuild", 50), ""),
    (lambda client: client.coordinate(bytes=1, request_id="mine"), "mine"),
    (lambda client: client.coordinate(bytes=1, deadline=3600, request_id="mine"), "mine"),
]
"""What is asked of a client of either kind, and the key that the error has."""


@pytest.fixture(params=["in flight", "between tries"])
def asked(server: Running, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> threading.Event:
    """Whoever asks waits for an answer that does not come, or for the next try."""
    asked = threading.Event()

    def silent(name: str, context: grpc.ServicerContext) -> None:
        asked.set()
        server.script._until_closed(context)

    def after(backoff: _retry.Backoff, status: object) -> float:
        asked.set()
        return 1800.0

    if request.param == "in flight":
        monkeypatch.setattr(server.script, "_enter", silent)
    else:
        monkeypatch.setattr(_retry.Backoff, "after", after)
        # Each of them is refused.
        monkeypatch.setattr(server.script, "failures", [(grpc.StatusCode.UNAVAILABLE, "", "")] * 9)
    return asked


@pytest.mark.parametrize(("use", "key"), USES)
def test_who_waits_is_told(
    server: Running, asked: threading.Event, use: Callable[[minerva.Client], object], key: str
) -> None:
    outcomes: SimpleQueue[object] = SimpleQueue()
    client = minerva.connect(server.address, patience_seconds=math.inf)

    def ask() -> None:
        try:
            outcomes.put(use(client))
        except BaseException as error:
            outcomes.put(error)

    threading.Thread(target=ask, daemon=True).start()
    assert asked.wait(PATIENCE_SECONDS)
    client.close()
    error = outcomes.get(timeout=PATIENCE_SECONDS / 2)
    assert isinstance(error, minerva.Unreachable) and "was closed" in str(error)
    assert error.request_id == key


@pytest.mark.parametrize(("use", "key"), USES)
def test_who_asks_a_closed_client_is_told(
    server: Running, use: Callable[[minerva.Client], object], key: str
) -> None:
    client = minerva.connect(server.address)
    client.close()
    with pytest.raises(minerva.Unreachable, match="was closed") as raised:
        use(client)
    assert raised.value.request_id == key
    with pytest.raises(minerva.Unreachable, match="was closed"), client.deprioritized("low"):
        pytest.fail("the body ran")


def test_what_is_held_has_ended_and_no_agent_is_started_for_it(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = minerva.connect(server.address)
    debt, held, revived = client.hold_debt("rebuild", 50), client.hold("low"), list[float | None]()
    assert client._link is not None and debt.ended is None and not debt.may_work
    monkeypatch.setattr(client._link.server, "revive", revived.append)
    client.close()
    assert debt.wait(PATIENCE_SECONDS / 2) and "was closed" in str(debt.ended)
    for one in (debt, held):
        assert one._over is not None and one._over.wait(PATIENCE_SECONDS / 2)
    assert not revived
    debt.release()


def test_a_client_that_is_closed_while_it_looks_for_a_server_stays_closed(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_link, "LOOK_PERIOD_SECONDS", 0.0)
    monkeypatch.setattr(_link, "_warned", True)
    looking, barrier, found = threading.Event(), threading.Event(), threading.Event()
    client = minerva.connect("unix:/nonexistent/tenant.sock")
    look_again = client._look_again

    def find(address: str | None, environment: object) -> _find.Found:
        looking.set()
        assert barrier.wait(PATIENCE_SECONDS)
        return _find.Found(Address.parse(server.address))

    def looking_again() -> None:
        look_again()
        found.set()

    monkeypatch.setattr(_link, "find", find)
    monkeypatch.setattr(client, "_look_again", looking_again)
    assert client.describe() == minerva.Description() and looking.wait(PATIENCE_SECONDS)
    client.close()
    barrier.set()
    assert found.wait(PATIENCE_SECONDS)
    assert client.address is None and client.describe() == minerva.Description()
