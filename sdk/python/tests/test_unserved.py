"""Programs that the server does not serve run on, as without a server; and the disk is that of the path."""

from __future__ import annotations

import os
import pathlib
import pickle
import time
import warnings

import grpc
import pytest
from conftest import Running

import minerva
from minerva import _device

NO_DISK = (grpc.StatusCode.NOT_FOUND, "This tenant has used no disk yet, so say which one.", "unknown-device")
NOBODY = (grpc.StatusCode.UNAUTHENTICATED, "Process 7 is in the root group.", "not-identified")
FULL = (grpc.StatusCode.RESOURCE_EXHAUSTED, "16 operations wait or are under way.", "too-many")


def test_who_is_not_served_runs_on_with_one_warning(server: Running) -> None:
    ran: list[minerva.Begun | minerva.Level | None] = []
    with minerva.connect(server.address) as client:
        server.script.failures = [NO_DISK, NOBODY]
        with pytest.warns(minerva.UnservedWarning, match="used no disk yet") as told:
            with client.coordinated(bytes=1 << 20, deadline=5) as operation:
                ran.append(operation.begun)
            with client.deprioritized("low") as held:
                ran.append(held.level)
        assert len(told) == 1
    assert ran == [minerva.Begun.UNSERVED, None]
    assert server.script.finished == [] and server.script.cancelled == []


def test_whom_the_operator_excludes_runs_on(server: Running) -> None:
    with minerva.connect(server.address) as client:
        server.script.failures = [(grpc.StatusCode.PERMISSION_DENIED, "The operator leaves this tenant out.", "not-allowed")]
        with pytest.warns(minerva.UnservedWarning, match="leaves this tenant out"), client.deprioritized("low") as held:
            assert held.level is None


@pytest.mark.parametrize("word", ["", "unknown-method"])
def test_a_server_that_does_not_know_the_request_serves_no_program(server: Running, word: str) -> None:
    with minerva.connect(server.address) as client:
        server.script.failures = [(grpc.StatusCode.UNIMPLEMENTED, "unknown method", word)]
        with pytest.warns(minerva.UnservedWarning, match="needs a newer minervad"), client.job("sort") as job:
            assert job.place is None


def test_a_refusal_passes_between_processes() -> None:
    refusal = minerva.TooLate("the deadline has passed", "too-late", grpc.StatusCode.FAILED_PRECONDITION)
    copy = pickle.loads(pickle.dumps(refusal))
    assert (type(copy), str(copy), copy.word, copy.code) == (minerva.TooLate, str(refusal), refusal.word, refusal.code)


def test_who_is_refused_for_as_long_as_it_waits_runs_on_with_a_warning(server: Running) -> None:
    # Long enough for the refusal to arrive on a busy machine.
    with minerva.connect(server.address, patience_seconds=3) as client:
        server.script.failures = [FULL] * 100
        with pytest.warns(minerva.UnservedWarning, match="16 operations"), client.coordinated(bytes=1) as operation:
            assert operation.begun is minerva.Begun.UNSERVED
        with client.deprioritized("low") as held, client.job("sort") as job:
            assert (held.level, job.place) == (None, None)
        # Here it is the deadline that ends the wait, not the patience.
        with (
            minerva.connect(server.address) as patient,
            pytest.raises(minerva.TooMany),
            patient.coordinated(bytes=1, begin_by=3, strict=True),
        ):
            pytest.fail("the body ran")
        with pytest.raises(minerva.TooMany):
            client.hold("low")
        calls = server.script.calls["HoldLevel"]
        server.script.failures = []
        # What is given up is not asked for again, and who goes away after it has refused is away.
        time.sleep(0.5)
        assert server.script.calls["HoldLevel"] == calls
        server.script.failures = [FULL] + [(grpc.StatusCode.UNAVAILABLE, "", "")] * 100
        assert client.coordinate(bytes=1).begun is minerva.Begun.UNSERVED
        server.script.failures = [FULL] + [(grpc.StatusCode.UNAVAILABLE, "", "")] * 100
        held = client.hold("low")
        server.script.failures = []
        held.release()


def test_strict_makes_it_an_exception(server: Running) -> None:
    with minerva.connect(server.address) as client:
        server.script.failures = [NO_DISK, NOBODY]
        with pytest.raises(minerva.UnknownDevice), client.coordinated(bytes=1, strict=True):
            pytest.fail("the body ran")
        with pytest.raises(minerva.NotIdentified), client.deprioritized(strict=True):
            pytest.fail("the body ran")


def test_a_disk_that_the_program_names_must_be_there(server: Running) -> None:
    with minerva.connect(server.address) as client:
        server.script.failures = [NO_DISK]
        with pytest.raises(minerva.UnknownDevice), client.coordinated(bytes=1, device="250:250"):
            pytest.fail("the body ran")


def test_a_request_that_cannot_be_meant_is_an_exception(server: Running) -> None:
    with minerva.connect(server.address) as client:
        server.script.failures = [(grpc.StatusCode.INVALID_ARGUMENT, "An operation moves 1 to 7 bytes.", "out-of-range")]
        with pytest.raises(minerva.OutOfRange), client.coordinated(bytes=0):
            pytest.fail("the body ran")


def test_the_disk_is_that_of_the_path_or_of_the_working_directory(
    server: Running, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_device, "of_path", lambda path: "7:1" if path is None else f"8:{len(str(path))}")
    with minerva.connect(server.address) as client:
        for named in ({}, {"path": "abc"}, {"device": "259:0"}):
            with client.coordinated(bytes=1, **named):  # type: ignore[arg-type]
                pass
    assert server.script.disks == [("", "7:1"), ("", "8:3"), ("259:0", "")]


def test_a_path_that_is_not_there_yet_lies_where_it_will(tmp_path: pathlib.Path) -> None:
    assert _device.of_path(tmp_path / "not" / "there") == _device.of_path(tmp_path)
    assert _device.of_path("/proc/self/stat") == ""


def test_what_waits_in_a_pool_lies_where_its_link_is(tmp_path: pathlib.Path) -> None:
    own = _device.of_path(tmp_path)
    waiting, dangling = tmp_path / "waiting", tmp_path / "dangling"
    waiting.symlink_to("/proc/no-such-pool/.deferred/1")
    dangling.symlink_to("not there/yet")
    assert (_device.of_path(waiting), _device.of_path(dangling)) == (own, own)


def test_a_file_system_with_a_number_of_its_own_is_found_among_the_mounts(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text("30 1 0:27 /sub /data rw shared:1 - btrfs /dev/sdb1 rw\n31 1 8:1 / / rw - ext4 /dev/sda1 rw\n")
    monkeypatch.setattr(_device, "_MOUNTS", str(mounts))
    assert _device._source_of_mount("0:27") == "/dev/sdb1"
    assert _device._source_of_mount("0:28") == ""


def test_a_working_directory_that_was_removed_is_no_error(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    os.rmdir(gone)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert isinstance(_device.of_path(None), str)
