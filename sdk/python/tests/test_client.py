"""The client for programs without an event loop, against a server whose answers the test chooses."""

from __future__ import annotations

import datetime
import sys
import threading
import time

import grpc
import pytest
from conftest import Running, run_program

import minerva
from minerva.v1 import participation_pb2 as v1


def wait(at_most_seconds: float | None = None) -> v1.CoordinateResponse:
    at_most_ns = None if at_most_seconds is None else int(at_most_seconds * 1e9)
    return v1.CoordinateResponse(wait=v1.Wait(at_most_ns=at_most_ns))


def now() -> v1.CoordinateResponse:
    return v1.CoordinateResponse(begin_now=v1.BeginNow())


def test_describe_and_credits_speak_seconds_and_credits(server: Running) -> None:
    with minerva.connect(server.address) as client:
        assert client.absence is None and client.address == server.address
        told = client.describe()
        assert (told.tenant, told.role, told.level, told.level_left_seconds) == (
            "vm4",
            "participant",
            minerva.Level.LOW,
            2.5,
        )
        assert (told.held_credits, told.slice_seconds) == (1.25, 1.0)
        assert told.boosts == (minerva.BoostUnderWay("b", 3, "8:0"),)
        (entry,) = told.schedule
        assert (entry.begin, entry.end, entry.days) == (datetime.time(22), datetime.time(6), frozenset({0, 5}))
        account = client.credits(entries=2)
        assert (account.held, account.accruing, account.boost_seconds) == (60.0, 0.5, 2.0)
        assert [one.credits for one in account.entries] == [6.0, 6.0]
        assert account.entries[0].at == datetime.datetime(1970, 1, 1, 0, 0, 1, tzinfo=datetime.timezone.utc)


def test_levels_and_schedules_are_set_as_the_contract_counts_them(server: Running) -> None:
    with minerva.connect(server.address) as client:
        assert client.set_level("idle", seconds=1.5) is minerva.Level.IDLE
        assert server.script.level_set is not None and server.script.level_set.for_ns == 1_500_000_000
        client.set_level(minerva.Level.LOW, process=0)
        assert server.script.level_set.WhichOneof("lifetime") == "process"
        night = minerva.ScheduleEntry(datetime.time(22), datetime.time(6), "idle", frozenset({0, 6}))
        client.set_schedule([night], "Europe/Berlin")
        sent = server.script.schedule
        assert sent is not None and sent.time_zone == "Europe/Berlin"
        entry = sent.entries[0]
        assert (entry.begin_minute, entry.end_minute, entry.days, entry.level) == (1320, 360, 0b1000001, v1.LEVEL_IDLE)


def test_a_level_is_held_while_the_body_runs(server: Running) -> None:
    with minerva.connect(server.address) as client:
        with client.deprioritized("idle") as held:
            assert held.level is minerva.Level.IDLE
            assert server.script.levels_held[v1.LEVEL_IDLE] == 1
        server.script.until("it is released", lambda: server.script.levels_held[v1.LEVEL_IDLE] == 0)
        with pytest.raises(KeyError), client.deprioritized("low"):
            raise KeyError("the body's own")
        server.script.until("it is released", lambda: server.script.levels_held[v1.LEVEL_LOW] == 0)


def test_a_program_is_a_job_while_the_body_runs(server: Running) -> None:
    with minerva.connect(server.address) as client:
        with client.job("sort", bytes=500) as job:
            assert job.place == (2, 3)
            assert [(one.name, one.size_bytes) for one in server.script.jobs] == [("sort", 500)]
        server.script.until("it is over", lambda: not server.script.jobs)
        with client.job("count"):
            assert not server.script.jobs[0].HasField("size_bytes")
        with pytest.raises(ValueError, match="bytes is a count"), client.job("sort", bytes=0):
            pytest.fail("the body ran")


def test_work_of_ones_own_is_done_when_it_is_told_that_it_may_be(server: Running) -> None:
    script = server.script
    with minerva.connect(server.address) as client:
        with client.debt("rebuild", 50, tied_bytes=4096, deadline=60) as debt:
            asked = script.debts[0]
            assert (asked.name, asked.service_ns, asked.tied_bytes) == ("rebuild", 50 * 10**9, 4096)
            assert asked.done_within_ns == 60 * 10**9
            assert not debt.may_work and not debt.wait(0.01)
            script.may_work.set()
            assert debt.wait(20) and debt.may_work
            debt.report(10, tied_bytes=2048)
            debt.report(11)
            debt.report(50)
            done = [report.done_ns // 10**9 for report in script.debt_reports]
            assert done == [10, 50], "at most once a second, and the end at once"
            assert all(report.registration == 7 for report in script.debt_reports) and debt.ended is None
        script.until("it is over", lambda: not script.debts)
        for bad in (-1.0, float("nan"), float("inf")):
            with pytest.raises(ValueError, match="service is a number of seconds"), client.debt("rebuild", bad):
                pytest.fail("the body ran")
        with pytest.raises(ValueError, match="tied_bytes"), client.debt("rebuild", 1, tied_bytes=-1):
            pytest.fail("the body ran")


def test_who_was_replaced_hears_so_and_reports_no_more(server: Running) -> None:
    script = server.script
    script.is_replaced = True
    with minerva.connect(server.address) as client, client.debt("rebuild", 50) as debt:
        script.may_work.set()
        assert debt.wait(20), "nobody says any more when"
        while debt.ended is None:
            time.sleep(0.01)
        assert "took its place" in str(debt.ended)
        debt.report(10)
        assert not script.debt_reports and script.calls["HoldDebt"] == 1


def test_work_of_ones_own_is_registered_again_as_far_as_it_is_then(server: Running) -> None:
    script = server.script
    with minerva.connect(server.address) as client, client.debt("rebuild", 50, deadline=600) as debt:
        debt.report(20, service=60)
        server.kill()
        script.until("the stream is gone", lambda: not script.debts)
        server.start()
        script.until("it is there again", lambda: bool(script.debts))
        again = script.debts[0]
        assert (again.service_ns, again.done_ns) == (60 * 10**9, 20 * 10**9)
        assert 0 < again.done_within_ns < 600 * 10**9


def test_a_held_level_is_taken_again_when_the_server_is_back(server: Running) -> None:
    with minerva.connect(server.address) as client, client.deprioritized("low") as held:
        server.kill()
        server.script.until("the stream is gone", lambda: server.script.levels_held[v1.LEVEL_LOW] == 0)
        server.start()
        server.script.until("it is held again", lambda: server.script.levels_held[v1.LEVEL_LOW] == 1)
        while held.level is None:
            time.sleep(0.01)
        assert held.level is minerva.Level.LOW


def test_functions_and_decorators_share_a_client(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    @minerva.deprioritized("lowest")
    def backup() -> int:
        return server.script.levels_held[v1.LEVEL_LOWEST]

    @minerva.coordinated(bytes=1 << 20, deadline=5)
    def load() -> int:
        return len(server.script.coordinate_keys)

    # Found when the function is called, not when it is defined.
    monkeypatch.setenv("MINERVA_ADDRESS", server.address)
    assert (backup(), load(), load()) == (1, 1, 2)
    server.script.until("it is released", lambda: server.script.levels_held[v1.LEVEL_LOWEST] == 0)
    assert backup() == 1
    assert len(set(server.script.coordinate_keys)) == 2
    assert minerva.describe().tenant == "vm4"
    assert minerva.boost(seconds=30).slices == 30


def test_a_purchase_whose_answer_was_lost_is_not_made_twice(server: Running) -> None:
    server.script.losses = 3
    with minerva.connect(server.address) as client:
        bought = client.boost(seconds=1.5)
        assert (bought.slices, bought.price) == (2, 50.0)
        assert server.script.calls["Boost"] == 4 and len(server.script.purchases) == 1
        client.boost(slices=1, request_id="mine")
        client.boost(slices=1, request_id="mine")
        assert len(server.script.purchases) == 2


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("not-enough-credits", minerva.NotEnoughCredits),
        ("not-allowed", minerva.NotAllowed),
        ("out-of-range", minerva.OutOfRange),
        ("key-reused", minerva.KeyReused),
        ("not-committed", minerva.NotCommitted),
        ("busy", minerva.Busy),
        ("not-seen-yet", minerva.NotSeenYet),
        ("a-word-of-a-newer-server", minerva.Refused),
    ],
)
def test_a_refusal_is_an_exception_of_its_word(
    server: Running, word: str, kind: type[minerva.Refused]
) -> None:
    server.script.failures = [(grpc.StatusCode.FAILED_PRECONDITION, "The account holds 3 credits.", word)]
    with minerva.connect(server.address) as client:
        with pytest.raises(kind, match="holds 3 credits") as raised:
            client.boost(slices=1)
        assert type(raised.value) is kind and raised.value.word == word
        assert server.script.calls["Boost"] == 1


def test_what_may_pass_is_asked_again(server: Running) -> None:
    busy = (grpc.StatusCode.RESOURCE_EXHAUSTED, "slower", "too-many")
    stopping = (grpc.StatusCode.UNAVAILABLE, "ending", "stopping")
    server.script.failures = [busy, stopping, busy]
    with minerva.connect(server.address) as client:
        assert client.describe().tenant == "vm4"
        assert server.script.calls["Describe"] == 4


def test_a_server_that_stays_away_is_told_in_the_end(server: Running) -> None:
    with minerva.connect(server.address, patience_seconds=0.5) as client:
        server.kill()
        with pytest.raises(minerva.Unreachable, match="is minervad running"):
            client.describe()


def test_an_operation_waits_to_be_told_and_is_finished(server: Running) -> None:
    server.script.answers = [wait(60), now()]
    with minerva.connect(server.address) as client:
        with client.coordinated(bytes=500 << 20, deadline=20, access="random-read") as operation:
            assert operation.begun is minerva.Begun.TOLD
            assert server.script.finished == []
        assert server.script.finished == [operation.request_id] == server.script.coordinate_keys
        with pytest.raises(KeyError), client.coordinated(bytes=1) as failed:
            raise KeyError("the body's own")
        assert server.script.cancelled == [failed.request_id]
        assert server.script.begun == []


def test_a_wait_goes_on_under_the_same_key_after_a_restart(server: Running) -> None:
    server.script.answers = [wait()]

    def restart() -> None:
        server.script.until("it is asked", lambda: server.script.calls["Coordinate"] == 1)
        server.kill()
        server.script.answers = [now()]
        server.start()

    thread = threading.Thread(target=restart)
    with minerva.connect(server.address) as client:
        thread.start()
        with client.coordinated(bytes=1, deadline=60) as operation:
            assert operation.begun is minerva.Begun.TOLD
        thread.join()
        assert set(server.script.coordinate_keys) == {operation.request_id}
        assert server.script.calls["Coordinate"] >= 2


def test_a_deadline_ends_the_wait_whatever_the_server_does(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    with minerva.connect(server.address) as client:
        # It is silent, or promises too much, or promises less than the deadline.
        for answers, deadline in (([], 0.2), ([wait(60)], 0.2), ([wait(0.2)], 60.0)):
            server.script.answers = answers
            with client.coordinated(bytes=1, deadline=deadline) as operation:
                assert operation.begun is minerva.Begun.IN_TIME
            assert server.script.begun[-1] == server.script.finished[-1] == operation.request_id
        after = v1.BeginAfter(slices=1, slice_ns=50_000_000)
        server.script.answers = [v1.CoordinateResponse(begin_after=after)]
        with client.coordinated(bytes=1, begin_by=60) as operation:
            assert operation.begun is minerva.Begun.IN_TIME
        server.kill()
        # Nobody is there to be told.
        monkeypatch.setattr("minerva._link.TELL_SECONDS_MAX", 0.1)
        with client.coordinated(bytes=1, begin_by=0.2) as operation:
            assert operation.begun is minerva.Begun.IN_TIME


def test_an_operation_without_deadline_begins_when_the_server_stays_away(server: Running) -> None:
    with minerva.connect(server.address, patience_seconds=0.3) as client:
        server.kill()
        with client.coordinated(bytes=1) as operation:
            assert operation.begun is minerva.Begun.UNSERVED


def test_an_operation_that_is_refused_does_not_run(server: Running) -> None:
    server.script.failures = [(grpc.StatusCode.INVALID_ARGUMENT, "too large", "out-of-range")]
    with minerva.connect(server.address) as client:
        with pytest.raises(minerva.OutOfRange), client.coordinated(bytes=1):
            pytest.fail("the body ran")


@pytest.mark.filterwarnings("default")
def test_without_a_server_nothing_is_asked_and_the_program_is_told_once() -> None:
    with pytest.warns(minerva.NoServerWarning, match="no server listens") as warned:
        with minerva.job("sort") as job:
            assert job.place is None
        with minerva.deprioritized("idle") as held:
            assert held.level is None
        for _ in range(2):
            with minerva.connect() as client, client.coordinated(bytes=1 << 40, deadline=3600) as operation:
                assert operation.begun is minerva.Begun.UNSERVED and client.absence
        assert minerva.boost(seconds=30) == minerva.Boost()
        assert minerva.credits().held == 0.0
        assert minerva.describe() == minerva.Description()
        assert minerva.set_level("low") is minerva.Level.NORMAL
    assert len(warned) == 1


@pytest.mark.parametrize(
    "call",
    [
        lambda client: client.boost(seconds=-1),
        lambda client: client.boost(),
        lambda client: client.boost(seconds=1, slices=1),
        lambda client: client.boost(slices=0),
        lambda client: client.set_level("low", seconds=float("nan")),
        lambda client: client.set_level("gentle"),
        lambda client: client.coordinate(bytes=-1),
        lambda client: client.coordinate(bytes=1, deadline=1, begin_by=1),
        lambda client: client.coordinate(bytes=1, access="sideways"),
    ],
)
def test_what_cannot_be_meant_is_a_value_error_before_it_is_sent(server: Running, call: object) -> None:
    with minerva.connect(server.address) as client:
        with pytest.raises(ValueError):
            call(client)  # type: ignore[operator]
    assert not server.script.calls


# Forks in a program of its own: pytest's process has threads of the server in it.
FORK = """
import os, sys, warnings, minerva
warnings.simplefilter("error")
client = minerva.connect(sys.argv[1])
with client.deprioritized("low"):
    child = os.fork()
    if child == 0:
        try:
            client.describe()
        except minerva.NoServerWarning:
            with client.deprioritized("idle") as held, minerva.coordinated(bytes=1):
                os._exit(7 if held.level is None else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    print(client.describe().tenant)
"""


def test_a_forked_child_does_without(server: Running) -> None:
    assert run_program(sys.executable, "-c", FORK, server.address) == "vm4\n"
    assert server.script.calls["HoldLevel"] == 1
