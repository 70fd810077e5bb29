"""Priorities of single requests, for programs in a guest whose disk minerva-blk serves. No server is asked."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
from collections.abc import Iterator

TAG_MAX = 254
STREAM_MAX = 31

_CLASS_SHIFT = 13
_BEST_EFFORT = 2 << _CLASS_SHIFT
_LEVEL_LOWEST = 7
# IOPRIO_WHO_PROCESS, which means a thread; thread 0 is the calling one (include/uapi/linux/ioprio.h).
_WHO_PROCESS = 1
_EINVAL = 22

# Numbers of ioprio_set and ioprio_get; glibc has no function for them.
_GENERIC = (30, 31)
_NUMBERS = {
    "x86_64": (251, 252),
    "aarch64": _GENERIC,
    "riscv64": _GENERIC,
    "loongarch64": _GENERIC,
    "i386": (289, 290),
    "i686": (289, 290),
    "armv7l": (314, 315),
    "ppc64le": (273, 274),
    "s390x": (282, 283),
}


def _call(which: int, *arguments: int) -> int:
    numbers = _NUMBERS.get(platform.machine())
    if numbers is None:
        raise NotImplementedError(f"the number of ioprio_set on {platform.machine()} is not known")
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    result = int(libc.syscall(*(ctypes.c_long(argument) for argument in (numbers[which], *arguments))))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), "ioprio_set" if which == 0 else "ioprio_get")
    return result


def _set(ioprio: int) -> None:
    _call(0, _WHO_PROCESS, 0, ioprio)


def _get() -> int:
    ioprio = _call(1, _WHO_PROCESS, 0)
    # A thread without a class cannot be given a level back.
    return ioprio if ioprio >> _CLASS_SHIFT else 0


def _level(tag: int) -> int:
    return _BEST_EFFORT | (_LEVEL_LOWEST - (tag >> 5))


def tag_ioprio(tag: int, *, stream: int | None = None) -> int:
    """The I/O priority that carries a tag, 1 to 254: for io_uring's `sqe->ioprio` and libaio's `aio_reqprio`, each a request's own.

    `stream`, 1 to 31, tells applications of a guest apart; without it, it follows from the process and the tag.
    """
    if not 1 <= tag <= TAG_MAX:
        raise ValueError(f"tags go from 1 to {TAG_MAX}, and {tag} is none")
    if stream is None:
        stream = (os.getpid() + tag) % STREAM_MAX + 1
    if not 1 <= stream <= STREAM_MAX:
        raise ValueError(f"streams go from 1 to {STREAM_MAX}, and {stream} is none")
    return _level(tag) | stream << 8 | (tag & 0x1F) << 3


@contextlib.contextmanager
def tagged(tag: int, *, stream: int | None = None) -> Iterator[int]:
    """Gives the requests of this thread a tag, 1 to 254, more is better, until the end of the block; also a decorator.

    Threads and processes that are started in it keep the tag. It is the thread's: a coroutine must not wait in the block, as others run
    in the thread meanwhile. Gives how many levels the kernel passes: 254, or 8 on kernels before 6.1.191 and 6.5, where tags that are
    close together are one. Reads, and direct and synced writes, have the tag; what the kernel writes back later has none.
    """
    ioprio = tag_ioprio(tag, stream=stream)
    before = _get()
    levels = TAG_MAX
    try:
        _set(ioprio)
    except OSError as error:
        if error.errno != _EINVAL:
            raise
        _set(_level(tag))
        levels = _LEVEL_LOWEST + 1
    try:
        yield levels
    finally:
        _set(before)
