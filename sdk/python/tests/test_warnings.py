"""A warning shows the line of the program, by whichever way that came to ask."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable

import grpc
import pytest
from conftest import Running

import minerva
import minerva.aio
from minerva import _link

REFUSAL = (grpc.StatusCode.PERMISSION_DENIED, "The operator leaves this tenant out.", "not-allowed")


def lines(ask: Callable[[], object]) -> list[tuple[str, str]]:
    """The kinds of warnings that it comes to, and where."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        ask()
    return [(one.category.__name__, one.filename) for one in told]


def body(manager: object) -> None:
    with manager:  # type: ignore[attr-defined]
        pass


async def body_of_loop(manager: object) -> None:
    async with manager:  # type: ignore[attr-defined]
        pass


def asking(server: Running, way: str) -> None:
    @minerva.deprioritized("low")
    def decorated() -> None:
        pass

    async def loop() -> None:
        async with await minerva.aio.connect(server.address) as client:
            if way == "a level of a loop":
                await body_of_loop(client.deprioritized("low"))
            else:
                await body_of_loop(client.coordinated(bytes=1))

    async def function_of_loop() -> None:
        await body_of_loop(minerva.aio.deprioritized("low"))
        await (await minerva.aio._default()).close()

    if way == "decorated":
        decorated()
    elif way == "function":
        body(minerva.coordinated(bytes=1))
    elif way == "function of a loop":
        asyncio.run(function_of_loop())
    elif "loop" in way:
        asyncio.run(loop())
    else:
        with minerva.connect(server.address) as client:
            body(client.deprioritized("low") if way == "a level" else client.coordinated(bytes=1))


@pytest.mark.parametrize(
    "way",
    [
        "a level",
        "an operation",
        "function",
        "decorated",
        "a level of a loop",
        "an operation of a loop",
        "function of a loop",
    ],
)
def test_that_it_is_not_served(server: Running, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    monkeypatch.setenv("MINERVA_ADDRESS", server.address)
    server.script.failures = [REFUSAL]
    assert lines(lambda: asking(server, way)) == [("UnservedWarning", __file__)]


@pytest.mark.parametrize(
    "ask",
    [
        lambda: minerva.describe(),
        lambda: body(minerva.connect()),
        lambda: asyncio.run(minerva.aio.connect()),
        lambda: asyncio.run(minerva.aio.describe()),
    ],
)
def test_that_there_is_no_server(ask: Callable[[], object]) -> None:
    assert lines(ask) == [("NoServerWarning", __file__)]


def test_that_an_agent_knows_none(server: Running) -> None:
    server.script.failures = [(grpc.StatusCode.UNAVAILABLE, "No server answers at vsock:2:7420.", "no-server")]
    with minerva.connect(server.address) as client:
        assert lines(client.describe) == [("NoServerWarning", __file__)]


def test_what_has_no_program_above_it_is_told_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_link, "_NOT_THE_PROGRAM", _Everything())
    assert [kind for kind, _ in lines(lambda: _link.warn_once("nobody is there"))] == ["NoServerWarning"]


class _Everything(frozenset[str]):
    def __contains__(self, name: object) -> bool:
        return True
