"""The cache's pool, with a service that is made up and without any."""

from __future__ import annotations

import json
import os
import socket
import threading
from pathlib import Path
from typing import Any

import minerva
import pytest


def serve(at: Path, answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Answers as many questions; what was asked is in what is returned."""
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
