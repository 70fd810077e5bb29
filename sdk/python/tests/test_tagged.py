"""Tags of requests: what the kernel is told, for this thread alone, and that it is taken back."""

from __future__ import annotations

import threading

import minerva
import pytest
from minerva import _tagged


def in_thread(work: object) -> None:
    """Threads of the tests keep nothing."""
    failures: list[BaseException] = []

    def run() -> None:
        try:
            work()  # type: ignore[operator]
        except BaseException as failure:
            failures.append(failure)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]


def test_the_bits_are_those_of_the_other_clients() -> None:
    assert minerva.tag_ioprio(200, stream=3) == 2 << 13 | 3 << 8 | 8 << 3 | 1
    assert minerva.tag_ioprio(1, stream=31) == 2 << 13 | 31 << 8 | 1 << 3 | 7
    assert 1 <= (minerva.tag_ioprio(200) >> 8 & 0x1F) <= 31


@pytest.mark.parametrize(("tag", "stream"), [(0, 1), (255, 1), (1, 0), (1, 32)])
def test_what_is_no_tag_is_refused(tag: int, stream: int) -> None:
    with pytest.raises(ValueError, match="go from 1 to"), minerva.tagged(tag, stream=stream):
        pass


def test_a_thread_has_its_tag_until_the_block_ends() -> None:
    def work() -> None:
        _tagged._set(2 << 13 | 6)
        with minerva.tagged(200, stream=3) as levels:
            expected = minerva.tag_ioprio(200, stream=3) if levels == 254 else 2 << 13 | 1
            assert _tagged._get() == expected
            with pytest.raises(KeyError), minerva.tagged(12):
                raise KeyError
            assert _tagged._get() == expected
        assert _tagged._get() == 2 << 13 | 6

    before = _tagged._get()
    in_thread(work)
    assert _tagged._get() == before


def test_it_decorates() -> None:
    @minerva.tagged(100, stream=1)
    def function() -> int:
        return _tagged._get()

    in_thread(lambda: function() in (minerva.tag_ioprio(100, stream=1), 2 << 13 | 4) or pytest.fail("not tagged"))
