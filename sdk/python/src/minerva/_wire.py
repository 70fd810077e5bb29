"""Between the words of this package and the messages of the contract."""

from __future__ import annotations

import datetime
import math
import os
from collections.abc import Sequence

from . import _device, cache
from ._types import (
    Access,
    AccessWord,
    Boost,
    BoostUnderWay,
    CreditEntry,
    Credits,
    Description,
    Level,
    LevelWord,
    OperationUnderWay,
    ScheduleEntry,
)
from .v1 import participation_pb2 as v1

_LEVELS = {
    Level.NORMAL: v1.LEVEL_NORMAL,
    Level.LOW: v1.LEVEL_LOW,
    Level.LOWEST: v1.LEVEL_LOWEST,
    Level.IDLE: v1.LEVEL_IDLE,
}
_LEVELS_BACK = {number: level for level, number in _LEVELS.items()}
_ACCESSES = {
    Access.SEQUENTIAL_READ: v1.ACCESS_SEQUENTIAL_READ,
    Access.SEQUENTIAL_WRITE: v1.ACCESS_SEQUENTIAL_WRITE,
    Access.RANDOM_READ: v1.ACCESS_RANDOM_READ,
    Access.RANDOM_WRITE: v1.ACCESS_RANDOM_WRITE,
}
_COUNT_MAX = 2**64 - 1
_SLICES_MAX = 2**32 - 1
_UNIX_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def level_number(level: Level | LevelWord) -> v1.Level.ValueType:
    """The contract's number of a level or its word."""
    return _LEVELS[Level(level)]


def level_of(number: int) -> Level:
    """A level that only a newer server knows counts as normal."""
    return _LEVELS_BACK.get(v1.Level.ValueType(number), Level.NORMAL)


def nanoseconds(seconds: float, what: str) -> int:
    """A span for the wire; `what` names it in the error of one that cannot be meant."""
    if not seconds >= 0 or math.isinf(seconds):
        raise ValueError(f"{what} is a number of seconds from 0 on, not {seconds!r}")
    return min(round(seconds * 1e9), _COUNT_MAX)


def job_request(name: str, size: int | None) -> v1.HoldJobRequest:
    """A batch job, which moves so many bytes if that is known."""
    if size is not None and not 1 <= size <= _COUNT_MAX:
        raise ValueError(f"bytes is a count from 1 on, not {size!r}")
    return v1.HoldJobRequest(name=name, size_bytes=size)


def place_of(answer: v1.HoldJobResponse | None) -> tuple[int, int] | None:
    """A job's place and the count of jobs; none where none goes before another."""
    return (answer.place, answer.jobs) if answer is not None and answer.place > 0 else None


def debt_request(
    name: str,
    service: float,
    tied_bytes: int,
    deadline: float | None,
    device: str,
    path: str | os.PathLike[str] | None,
) -> v1.HoldDebtRequest:
    """Work that can wait."""
    report = debt_report(v1.ReportDebtRequest(name=name), 0, service, tied_bytes)
    request = v1.HoldDebtRequest(
        name=name,
        service_ns=report.service_ns,
        tied_bytes=tied_bytes,
        device=device,
        working_device="" if device else _device.of_path(path),
    )
    if deadline is not None:
        request.done_within_ns = nanoseconds(deadline, "deadline")
    return request


def debt_report(
    before: v1.ReportDebtRequest, done: float, service: float | None, tied_bytes: int | None
) -> v1.ReportDebtRequest:
    """How far it is; what is None is as before."""
    if tied_bytes is not None and not 0 <= tied_bytes <= _COUNT_MAX:
        raise ValueError(f"tied_bytes is a whole number from 0 on, not {tied_bytes!r}")
    return v1.ReportDebtRequest(
        name=before.name,
        service_ns=before.service_ns if service is None else nanoseconds(service, "service"),
        done_ns=nanoseconds(done, "done"),
        tied_bytes=before.tied_bytes if tied_bytes is None else tied_bytes,
    )


def debt_again(request: v1.HoldDebtRequest, report: v1.ReportDebtRequest, left: float | None) -> v1.HoldDebtRequest:
    """The request as it is true now, with so many seconds left."""
    again = v1.HoldDebtRequest()
    again.CopyFrom(request)
    again.service_ns, again.done_ns, again.tied_bytes = report.service_ns, report.done_ns, report.tied_bytes
    if left is not None:
        # What is late already is due at once; 0 would be refused.
        again.done_within_ns = max(1, nanoseconds(max(0.0, left), "deadline"))
    return again


def set_level_request(level: Level | LevelWord, seconds: float | None, process: int | None) -> v1.SetLevelRequest:
    request = v1.SetLevelRequest(level=level_number(level))
    if seconds is not None and process is not None:
        raise ValueError("a level lasts for some seconds or until a process ends; give one of the two")
    if seconds is not None:
        request.for_ns = nanoseconds(seconds, "seconds")
    if process is not None:
        request.process = process
    return request


def boost_request(key: str, seconds: float | None, slices: int | None, device: str) -> v1.BoostRequest:
    request = v1.BoostRequest(request_id=key, device=device)
    if (seconds is None) == (slices is None):
        raise ValueError("a boost is bought for some seconds or some slices; give one of the two")
    if seconds is not None:
        request.for_ns = nanoseconds(seconds, "seconds")
    if slices is not None:
        if not 0 < slices <= _SLICES_MAX:
            raise ValueError(f"slices is a whole number from 1 on, not {slices!r}")
        request.slices = slices
    return request


def coordinate_request(
    key: str,
    size_bytes: int,
    deadline: float | None,
    begin_by: float | None,
    access: Access | AccessWord,
    device: str,
    path: str | os.PathLike[str] | None = None,
    pool: cache.Pool | None = None,
) -> v1.CoordinateRequest:
    if not 0 <= size_bytes <= _COUNT_MAX:
        raise ValueError(f"bytes is a whole number from 0 on, not {size_bytes!r}")
    if deadline is not None and begin_by is not None:
        raise ValueError("an operation is bound by when it is done or by when it begins; give deadline or begin_by")
    request = v1.CoordinateRequest(
        request_id=key,
        size_bytes=size_bytes,
        access=_ACCESSES[Access(access)],
        device=device,
        working_device="" if device else _device.of_path(path),
    )
    if deadline is not None:
        request.done_within_ns = nanoseconds(deadline, "deadline")
    if begin_by is not None:
        request.begin_within_ns = nanoseconds(begin_by, "begin_by")
    if pool is not None and (path is None or "write" not in Access(access).value):
        raise ValueError("what may go to a pool is a file that is written: give its path, and access as one of writes")
    return request


def asked_ago(request: v1.CoordinateRequest, seconds: float) -> v1.CoordinateRequest:
    """The same question some seconds later: its deadline is nearer."""
    again = v1.CoordinateRequest()
    again.CopyFrom(request)
    bound = request.WhichOneof("deadline")
    if bound is not None:
        within_ns = request.begin_within_ns if bound == "begin_within_ns" else request.done_within_ns
        # 0 would be refused as a deadline that has passed, and so it is in the first question.
        setattr(again, bound, min(within_ns, max(within_ns - round(seconds * 1e9), 1)))
    return again


def schedule_request(entries: Sequence[ScheduleEntry], time_zone: str) -> v1.SetScheduleRequest:
    return v1.SetScheduleRequest(entries=[_entry_to_wire(entry) for entry in entries], time_zone=time_zone)


def _entry_to_wire(entry: ScheduleEntry) -> v1.ScheduleEntry:
    if not entry.days <= frozenset(range(7)):
        raise ValueError(f"days are numbers from 0, Monday, to 6, Sunday, not {sorted(entry.days)}")
    return v1.ScheduleEntry(
        begin_minute=entry.begin.hour * 60 + entry.begin.minute,
        end_minute=entry.end.hour * 60 + entry.end.minute,
        days=sum(1 << day for day in entry.days),
        level=level_number(entry.level),
    )


def _entry_of(entry: v1.ScheduleEntry) -> ScheduleEntry:
    return ScheduleEntry(
        begin=_time_of(entry.begin_minute),
        end=_time_of(entry.end_minute),
        level=level_of(entry.level),
        days=frozenset(day for day in range(7) if entry.days >> day & 1),
    )


def _time_of(minute: int) -> datetime.time:
    return datetime.time(minute // 60 % 24, minute % 60)


def description_of(response: v1.DescribeResponse) -> Description:
    left_ns = response.level_left_ns if response.HasField("level_left_ns") else None
    return Description(
        version=response.version,
        tenant=response.tenant,
        identified_by=response.identified_by,
        role=response.role,
        mode=response.mode,
        slice_seconds=response.slice_ns / 1e9,
        level=level_of(response.level),
        level_left_seconds=None if left_ns is None else left_ns / 1e9,
        held_credits=response.held_micro_credits / 1e6,
        boosts=tuple(BoostUnderWay(one.request_id, one.slices_left, one.device) for one in response.boosts),
        operations=tuple(
            OperationUnderWay(one.request_id, one.size_bytes, one.begun) for one in response.operations
        ),
        schedule=tuple(_entry_of(entry) for entry in response.schedule),
    )


def credits_of(response: v1.CreditsResponse) -> Credits:
    return Credits(
        held_micro_credits=response.held_micro_credits,
        accruing_micro_credits=response.accruing_micro_credits,
        slice_price_micro_credits=response.slice_price_micro_credits,
        slice_seconds=response.slice_ns / 1e9,
        entries=tuple(
            CreditEntry(
                at=_UNIX_EPOCH + datetime.timedelta(microseconds=entry.unix_ns // 1000),
                kind=entry.kind,
                micro_credits=entry.micro_credits,
                request_id=entry.request_id,
            )
            for entry in response.entries
        ),
    )


def boost_of(response: v1.BoostResponse) -> Boost:
    return Boost(response.slices, response.price_micro_credits, response.held_micro_credits)
