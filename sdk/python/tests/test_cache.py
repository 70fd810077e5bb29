"""The cache's pool, with a service that is made up and without any."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import threading
import time
from pathlib import Path
from typing import Any

import minerva
import minerva.aio
import pytest
from conftest import Running
from minerva import _wire
from minerva.v1 import participation_pb2 as v1


def serve(at: Path, answers: list[dict[str, Any]], after: float = 0) -> list[dict[str, Any]]:
    """Answers as many questions, each after some seconds; what was asked is in what is returned."""
    asked: list[dict[str, Any]] = []
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(at))
    listener.listen()

    def work() -> None:
        with listener:
            for answer in answers:
                stream, _ = listener.accept()
                with stream, stream.makefile("rw") as lines:
                    asked.append(json.loads(lines.readline()))
                    time.sleep(after)
                    lines.write(json.dumps(answer) + "\n")
                    lines.flush()

    threading.Thread(target=work, daemon=True).start()
    return asked


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    at = tmp_path / "control.sock"
    monkeypatch.setenv("MINERVA_CACHE_SOCKET", str(at))
    return at


def test_without_a_service_a_file_is_written_to_its_place(service: Path, tmp_path: Path) -> None:
    with minerva.deferred(tmp_path / "file") as file:
        file.write(b"text")
    with minerva.deferred(tmp_path / "words", "w", encoding="utf-8") as file:
        file.write("text")
    assert (tmp_path / "file").read_bytes() == (tmp_path / "words").read_bytes() == b"text"


def test_what_the_service_names_is_written(service: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    asked = serve(service, [{"answer": "deferring", "id": 1, "data": str(data)}, {"answer": "refused", "why": "full"}])
    for _ in range(2):
        with minerva.deferred(tmp_path / "file", pool="temporary", bytes=4) as file:
            file.write(b"text")
    assert data.read_bytes() == (tmp_path / "file").read_bytes() == b"text"
    shown = os.stat(tmp_path)
    assert asked[0]["directory"] == [shown.st_dev, shown.st_ino]
    assert (asked[0]["path"], asked[0]["pool"], asked[0]["bytes"]) == (str(tmp_path / "file"), "temporary", 4)


def test_a_file_of_the_tree_is_opened_and_nothing_outside(
    service: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with minerva.cache.open("file", "wb") as file:
        file.write(b"text")
    assert (tmp_path / f"minerva-cache-{os.getuid()}" / "file").read_bytes() == b"text"
    for path in ["/etc/passwd", "../file", "a/../../file"]:
        with pytest.raises(ValueError, match="leads out of the tree"):
            minerva.cache.open(path)
    tree = {"path": str(tmp_path)}
    serve(service, [{"answer": "status", "tenants": [{"temporary": tree, "stable": tree}]}])
    with minerva.cache.open("other", "wb") as file:
        file.write(b"text")
    assert (tmp_path / "other").read_bytes() == b"text"


def test_a_mode_that_does_not_write_anew_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is a new one"), minerva.deferred(tmp_path / "file", "rb"):
        pass
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(FileExistsError), minerva.deferred(tmp_path / "file", "xb"):
        pass


def status(left_bytes: int) -> dict[str, Any]:
    tree = {"is_served": True, "deferrable_bytes": left_bytes, "device": "8:16"}
    return {"answer": "status", "tenants": [{"temporary": tree, "stable": tree}]}


def test_an_operation_is_told_to_write_to_the_pool(service: Path, server: Running, tmp_path: Path) -> None:
    data = tmp_path / "data"
    deferring = {"answer": "deferring", "id": 1, "data": str(data)}
    asked = serve(service, [status(100), deferring, status(90), {"answer": "refused", "why": "full"}, status(80)])
    server.script.answers = [v1.CoordinateResponse(write_to_pool=v1.WriteToPool())]
    place = tmp_path / "file"
    with minerva.connect(server.address) as client:
        with client.coordinated(bytes=4, access="sequential-write", path=place, pool="stable") as operation:
            assert operation.begun is minerva.Begun.IN_POOL
            assert [question["ask"] for question in asked] == ["status"], "nothing is replaced before it is written"
            # The link, which leads to the file wherever it is by then.
            assert (operation.path, operation.path) == (str(place), str(place))
            assert (asked[-1]["ask"], asked[-1]["path"]) == ("defer", str(place))
        with client.coordinated(bytes=4, access="sequential-write", path=place, pool="stable") as operation:
            assert operation.path == str(place), "the pool took it not"
        server.script.answers = [v1.CoordinateResponse(begin_now=v1.BeginNow())]
        with client.coordinated(bytes=4, access="random-write", path=place, pool="stable") as operation:
            assert (operation.begun, operation.path) == (minerva.Begun.TOLD, str(place))
        with client.coordinated(bytes=4, access="random-write", path=place, pool="stable") as operation:
            assert operation.path == str(place), "no service answers any more"
        with pytest.raises(ValueError, match="file that is written"):
            client.coordinate(bytes=4, path=place, pool="stable")
    assert server.script.offered == [(100, "8:16"), (90, "8:16"), (80, "8:16"), None]
    assert len(server.script.finished) == 2, "of what goes to the pool nothing is told"
    assert [question["ask"] for question in asked] == ["status", "defer", "status", "defer", "status"]


def test_an_operation_is_told_so_in_a_loop_too(service: Path, server: Running, tmp_path: Path) -> None:
    data = tmp_path / "data"
    asked = serve(service, [status(100), {"answer": "deferring", "id": 1, "data": str(data)}])
    server.script.answers = [v1.CoordinateResponse(write_to_pool=v1.WriteToPool())]

    async def work() -> str | None:
        async with (
            await minerva.aio.connect(server.address) as client,
            client.coordinated(
                bytes=4, access="sequential-write", path=tmp_path / "file", pool="temporary"
            ) as operation,
        ):
            assert operation.begun is minerva.Begun.IN_POOL
            return operation.path

    assert asyncio.run(work()) == str(tmp_path / "file")
    assert [question["ask"] for question in asked] == ["status", "defer"]


def test_what_others_would_find_changed_is_not_deferred(service: Path, tmp_path: Path) -> None:
    asked = serve(service, [{"answer": "refused", "why": "full"}] * 9)
    other = tmp_path / "other"
    other.write_bytes(b"")
    (tmp_path / "link").symlink_to(other)
    with minerva.deferred(tmp_path / "link") as file:
        file.write(b"text")
    assert (tmp_path / "link").is_symlink() and other.read_bytes() == b"text", "written through"
    os.link(other, tmp_path / "second name")
    with minerva.deferred(other) as file:
        file.write(b"more")
    assert (tmp_path / "second name").read_bytes() == b"more"
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    with minerva.deferred(tmp_path / "pipe") as file:
        file.write(b"text")
    assert os.read(reader, 9) == b"text"
    os.close(reader)
    assert asked == []
    (tmp_path / "waiting").symlink_to("/minerva/stable/.deferred/1")
    with pytest.raises(OSError), minerva.deferred(tmp_path / "waiting"):  # noqa: PT011
        pass
    assert [question["path"] for question in asked] == [str(tmp_path / "waiting")], "what waits may be written anew"


def test_a_deferred_file_keeps_its_permissions_and_its_directory(service: Path, tmp_path: Path) -> None:
    asked = serve(service, [{"answer": "refused", "why": "full"}] * 2)
    inner = tmp_path / "far" / "inner"
    inner.mkdir(parents=True)
    (tmp_path / "link").symlink_to(inner)
    private = tmp_path / "far" / "private"
    private.write_bytes(b"")
    private.chmod(0o600)
    # The kernel goes up from where the link leads.
    with minerva.deferred(f"{tmp_path}/link/../private") as file:
        file.write(b"text")
    assert (asked[0]["path"], asked[0]["mode"]) == (str(private), 0o600)
    assert private.read_bytes() == b"text"


def test_a_file_that_replaces_one_that_still_waits_keeps_its_permissions(service: Path, tmp_path: Path) -> None:
    asked = serve(service, [{"answer": "refused", "why": "full"}] * 2)
    waiting = tmp_path / "tree" / ".deferred" / "waiting"
    waiting.parent.mkdir(parents=True)
    waiting.write_bytes(b"of before")
    waiting.chmod(0o600)
    (tmp_path / "file").symlink_to(waiting)
    with minerva.deferred(tmp_path / "file") as file:
        file.write(b"text")
    assert [question["mode"] for question in asked] == [0o600]
    os.link(waiting, tmp_path / "tree" / "second")
    with minerva.deferred(tmp_path / "file") as file:
        file.write(b"more")
    assert len(asked) == 1, "of what others share the next would be another"
    assert (tmp_path / "tree" / "second").read_bytes() == b"more"


def test_of_two_who_make_a_file_one_does(service: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    asked = serve(service, [{"answer": "deferring", "id": 1, "data": str(data)}])
    with minerva.deferred(tmp_path / "file", "xb") as file:
        # As long as the service has not put a link there, the place is taken by an empty file.
        with pytest.raises(FileExistsError), minerva.deferred(tmp_path / "file", "xb"):
            pass
        file.write(b"text")
    assert data.read_bytes() == b"text" and len(asked) == 1


def test_a_deadline_is_nearer_when_the_pool_has_told_what_it_takes(
    service: Path, server: Running, tmp_path: Path
) -> None:
    serve(service, [status(100)] * 2, after=0.2)
    path = tmp_path / "file"
    with minerva.connect(server.address) as client:
        client.coordinate(bytes=4, deadline=1000, access="sequential-write", path=path, pool="stable").finish()
        client.coordinate(bytes=4, begin_by=1000, access="sequential-write", path=path, pool="stable").finish()
    assert server.script.offered == [(100, "8:16")] * 2
    assert all(0 < within_ns <= 10**12 - 2 * 10**8 for within_ns in server.script.within_ns)
    assert _wire.asked_ago(v1.CoordinateRequest(done_within_ns=1), 5).done_within_ns == 1, "0 would be refused"
    assert _wire.asked_ago(v1.CoordinateRequest(begin_within_ns=0), 5).begin_within_ns == 0, "as it should be"


def test_a_service_that_answers_piece_by_piece_is_waited_for_no_longer(service: Path) -> None:
    listener, is_over = socket.socket(socket.AF_UNIX), threading.Event()
    listener.bind(str(service))
    listener.listen()

    def work() -> None:
        stream, _ = listener.accept()
        with listener, stream, contextlib.suppress(OSError):
            for _ in range(100):
                stream.sendall(b" ")
                is_over.wait(0.05)
            stream.sendall(json.dumps(status(100)).encode() + b"\n")

    dripping = threading.Thread(target=work)
    dripping.start()
    assert minerva.cache.offer("stable", 0.2) is None
    is_over.set()
    dripping.join()
