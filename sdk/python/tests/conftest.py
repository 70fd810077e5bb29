"""A server of the tests' own: it speaks the contract over a real socket, answers as each test says, can be killed and come
back, and counts what it was asked."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent import futures
from pathlib import Path

import grpc
import pytest

from minerva import _find, _link
from minerva.v1 import participation_pb2 as v1
from minerva.v1 import participation_pb2_grpc as v1_grpc

PATIENCE_SECONDS = 60.0
"""Far above anything that is waited for; only a broken client takes as long."""


class Scripted(v1_grpc.ParticipationServicer):
    """Answers as the tests say."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.metadata: dict[str, str] = {}
        self.purchases: dict[str, v1.BoostResponse] = {}
        self.coordinate_keys: list[str] = []
        self.offered: list[tuple[int, str] | None] = []
        """The pool of each question, as bytes that it takes and its disk."""
        self.disks: list[tuple[str, str]] = []
        """The disk that each operation named, and the one below its path."""
        self.within_ns: list[int] = []
        """The deadline of each question when an operation may begin."""
        self.boost_keys: list[str] = []
        self.description: v1.DescribeResponse | None = None
        """Instead of the usual one."""
        self.finished: list[str] = []
        self.cancelled: list[str] = []
        self.begun: list[str] = []
        self.levels_held: Counter[int] = Counter()
        self.jobs: list[v1.HoldJobRequest] = []
        self.debts: list[v1.HoldDebtRequest] = []
        self.debt_reports: list[v1.ReportDebtRequest] = []
        self.may_work = threading.Event()
        """Lets who waits with work of its own begin."""
        self.is_replaced = False
        """Who waits with work of its own is told that a later debt took its place."""
        self.changed = threading.Condition()
        self.failures: list[tuple[grpc.StatusCode, str, str]] = []
        """Refusals of the next calls: status, sentence and word."""
        self.losses = 0
        """Purchases that are done and whose answers are lost."""
        self.answers: list[v1.CoordinateResponse] = [v1.CoordinateResponse(begin_now=v1.BeginNow())]
        """To each question when an operation may begin. After the last one that is not `begin_now` comes silence."""
        self.schedule: v1.SetScheduleRequest | None = None
        self.level_set: v1.SetLevelRequest | None = None

    def until(self, what: str, holds: Callable[[], bool]) -> None:
        """Waits until it holds."""
        with self.changed:
            assert self.changed.wait_for(holds, PATIENCE_SECONDS), f"waited in vain until {what}"

    def _enter(self, name: str, context: grpc.ServicerContext) -> None:
        with self.changed:
            self.calls[name] += 1
            self.metadata = {key: str(value) for key, value in context.invocation_metadata()}
            failure = self.failures.pop(0) if self.failures else None
            self.changed.notify_all()
        if failure is not None:
            code, sentence, word = failure
            if word:
                context.set_trailing_metadata((("minerva-refusal", word), ("minerva-retry-after-ms", "1")))
            context.abort(code, sentence)

    def _until_closed(self, context: grpc.ServicerContext) -> None:
        closed = threading.Event()
        if context.add_callback(closed.set):
            closed.wait(PATIENCE_SECONDS)

    def Describe(self, request: v1.DescribeRequest, context: grpc.ServicerContext) -> v1.DescribeResponse:
        self._enter("Describe", context)
        if self.description is not None:
            return self.description
        return v1.DescribeResponse(
            version="0.1.0",
            tenant="vm4",
            identified_by="cgroup",
            role="participant",
            mode="enforce",
            slice_ns=1_000_000_000,
            level=v1.LEVEL_LOW,
            level_left_ns=2_500_000_000,
            held_micro_credits=1_250_000,
            boosts=[v1.BoostUnderWay(request_id="b", slices_left=3, device="8:0")],
            operations=[v1.OperationUnderWay(request_id="o", size_bytes=5, begun=True)],
            schedule=[v1.ScheduleEntry(begin_minute=1320, end_minute=360, days=0b0100001, level=v1.LEVEL_IDLE)],
        )

    def SetLevel(self, request: v1.SetLevelRequest, context: grpc.ServicerContext) -> v1.SetLevelResponse:
        self._enter("SetLevel", context)
        self.level_set = request
        return v1.SetLevelResponse(level=request.level)

    def HoldLevel(
        self, request: v1.HoldLevelRequest, context: grpc.ServicerContext
    ) -> Iterator[v1.HoldLevelResponse]:
        self._enter("HoldLevel", context)
        with self.changed:
            self.levels_held[request.level] += 1
            self.changed.notify_all()
        try:
            yield v1.HoldLevelResponse(level=request.level)
            self._until_closed(context)
        finally:
            with self.changed:
                self.levels_held[request.level] -= 1
                self.changed.notify_all()

    def HoldJob(self, request: v1.HoldJobRequest, context: grpc.ServicerContext) -> Iterator[v1.HoldJobResponse]:
        self._enter("HoldJob", context)
        with self.changed:
            self.jobs.append(request)
        try:
            yield v1.HoldJobResponse(place=2, jobs=3)
            self._until_closed(context)
        finally:
            with self.changed:
                self.jobs.remove(request)
                self.changed.notify_all()

    def HoldDebt(self, request: v1.HoldDebtRequest, context: grpc.ServicerContext) -> Iterator[v1.HoldDebtResponse]:
        self._enter("HoldDebt", context)
        with self.changed:
            self.debts.append(request)
        try:
            yield v1.HoldDebtResponse(may_work=False, registration=7)
            while context.is_active() and not self.may_work.wait(0.01):
                pass
            if self.is_replaced:
                context.abort(grpc.StatusCode.ALREADY_EXISTS, "A later debt of this name took its place.")
            yield v1.HoldDebtResponse(may_work=True, registration=7)
            self._until_closed(context)
        finally:
            with self.changed:
                self.debts.remove(request)
                self.changed.notify_all()

    def ReportDebt(self, request: v1.ReportDebtRequest, context: grpc.ServicerContext) -> v1.ReportDebtResponse:
        self._enter("ReportDebt", context)
        with self.changed:
            self.debt_reports.append(request)
            self.changed.notify_all()
        return v1.ReportDebtResponse()

    def SetSchedule(self, request: v1.SetScheduleRequest, context: grpc.ServicerContext) -> v1.SetScheduleResponse:
        self._enter("SetSchedule", context)
        self.schedule = request
        return v1.SetScheduleResponse(level=v1.LEVEL_NORMAL)

    def Credits(self, request: v1.CreditsRequest, context: grpc.ServicerContext) -> v1.CreditsResponse:
        self._enter("Credits", context)
        entry = v1.CreditEntry(unix_ns=1_000_000_000, kind="earned", micro_credits=6_000_000)
        return v1.CreditsResponse(
            held_micro_credits=60_000_000,
            accruing_micro_credits=500_000,
            slice_price_micro_credits=25_000_000,
            slice_ns=1_000_000_000,
            entries=[entry] * min(request.entries_max, 2),
        )

    def Boost(self, request: v1.BoostRequest, context: grpc.ServicerContext) -> v1.BoostResponse:
        self.boost_keys.append(request.request_id)
        self._enter("Boost", context)
        with self.changed:
            bought = self.purchases.get(request.request_id)
            if bought is None:
                slices = request.slices or -(-request.for_ns // 1_000_000_000)
                bought = v1.BoostResponse(slices=slices, price_micro_credits=slices * 25_000_000)
                self.purchases[request.request_id] = bought
            lost = self.losses > 0
            self.losses -= lost
        if lost:
            context.abort(grpc.StatusCode.UNAVAILABLE, "")
        return bought

    def Coordinate(
        self, request: v1.CoordinateRequest, context: grpc.ServicerContext
    ) -> Iterator[v1.CoordinateResponse]:
        self.coordinate_keys.append(request.request_id)
        offer = (request.pool.left_bytes, request.pool.device)
        self.offered.append(offer if request.HasField("pool") else None)
        self.disks.append((request.device, request.working_device))
        self.within_ns.append(request.begin_within_ns + request.done_within_ns)
        self._enter("Coordinate", context)
        with self.changed:
            answers = list(self.answers)
        yield from answers
        if not answers or answers[-1].WhichOneof("answer") not in {"begin_now", "write_to_pool"}:
            self._until_closed(context)

    def Begin(self, request: v1.BeginRequest, context: grpc.ServicerContext) -> v1.BeginResponse:
        self._enter("Begin", context)
        self._note(self.begun, request.request_id)
        return v1.BeginResponse()

    def Finish(self, request: v1.FinishRequest, context: grpc.ServicerContext) -> v1.FinishResponse:
        self._enter("Finish", context)
        self._note(self.finished, request.request_id)
        return v1.FinishResponse()

    def Cancel(self, request: v1.CancelRequest, context: grpc.ServicerContext) -> v1.CancelResponse:
        self._enter("Cancel", context)
        self._note(self.cancelled, request.request_id)
        return v1.CancelResponse()

    def Report(self, request_iterator: object, context: grpc.ServicerContext) -> v1.ReportResponse:
        context.abort(grpc.StatusCode.UNIMPLEMENTED, "reports are the agent's")

    def _note(self, where: list[str], key: str) -> None:
        with self.changed:
            where.append(key)
            self.changed.notify_all()


class Running:
    """The server at its address; it can be killed, and come back."""

    def __init__(self, path: Path) -> None:
        self.address = f"unix:{path}"
        self.script = Scripted()
        self._server: grpc.Server | None = None
        self.start()

    def start(self) -> None:
        server = grpc.server(futures.ThreadPoolExecutor(max_workers=16))
        v1_grpc.add_ParticipationServicer_to_server(self.script, server)
        assert server.add_insecure_port(self.address)
        server.start()
        self._server = server

    def kill(self) -> None:
        """Every connection breaks."""
        if self._server is not None:
            self._server.stop(grace=0).wait()
            self._server = None


def run_program(*command: str) -> str:
    """Runs a program that forks to its end; what it printed. One that hangs is killed with its children, which would hang on
    without it."""
    environment = {**os.environ, "GRPC_VERBOSITY": "NONE"}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as program:
        try:
            printed, _ = program.communicate(timeout=PATIENCE_SECONDS)
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)
            raise
    assert program.returncode == 0, program.returncode
    return printed


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    running = Running(tmp_path / "tenant.sock")
    yield running
    running.kill()


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No test finds the machine's own server, each is warned anew, and none is hurried on a busy machine."""
    for name in ("ADDRESS", "UPSTREAM", "CA", "CERTIFICATE", "KEY", "TOKEN", "TOKEN_FILE"):
        monkeypatch.delenv(f"MINERVA_{name}", raising=False)
    monkeypatch.setenv("MINERVA_AGENT", "")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.setattr("minerva._find._SOCKETS", ())
    # Tests look straight afterwards at what was told, and count what is told once a second however long they take.
    monkeypatch.setattr(_link, "TELL_SECONDS_MAX", PATIENCE_SECONDS)
    monkeypatch.setattr(_link, "REPORT_SECONDS", PATIENCE_SECONDS)
    # Neither hangs a server of theirs that is merely slow, nor is a question late.
    monkeypatch.setattr(_link, "SILENT_SECONDS", PATIENCE_SECONDS)
    monkeypatch.setattr(_link, "LATE_SECONDS", PATIENCE_SECONDS)
    # An agent of the tests is a Python that has to import grpcio first.
    monkeypatch.setattr(_find, "_START_SECONDS_MAX", PATIENCE_SECONDS)
    monkeypatch.setattr(_link, "_warned", False)
    monkeypatch.setattr(_link, "_warned_unserved", False)
    monkeypatch.setattr("minerva._client", None)
