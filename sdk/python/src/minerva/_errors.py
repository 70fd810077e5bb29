"""What can go wrong, and what the server said to it."""

from __future__ import annotations

from typing import Protocol

import grpc

_WORD_KEY = "minerva-refusal"
_RETRY_AFTER_KEY = "minerva-retry-after-ms"


class MinervaError(Exception):
    """Why something was not done; every exception of this package."""


class NoServerWarning(UserWarning):
    """There is no server: what is asked of Minerva has no effect, and the program goes on without."""


class UnservedWarning(UserWarning):
    """There is a server, and it does not serve this program: what is asked of Minerva has no effect, and the program goes on
    without."""


class AddressError(MinervaError, ValueError):
    """The address of the server cannot be read, or what belongs to it is missing."""


class CredentialsError(MinervaError):
    """A file with a certificate, a key or a token cannot be read, or half of a pair is missing."""


class NoServer(MinervaError):
    """The agent has never reached a server. Never raised to a program, which goes on without."""


class Unreachable(MinervaError):
    """The server went away and did not come back in time, or did not answer, or the client was closed before it did. What was asked may
    have been done."""

    def __init__(self, message: str, request_id: str = "") -> None:
        super().__init__(message)
        self.request_id = request_id
        """The key of what was asked, if that counts: asked for again under it, it is done once. Else empty."""


def closed(request_id: str = "") -> Unreachable:
    """What is told who waits for a client that is closed meanwhile."""
    return Unreachable("the client was closed before the server answered", request_id)


class NoThread(MinervaError):
    """The process may start no more threads, and one was needed to hold something or to hear when an operation may begin."""

    def __init__(self) -> None:
        super().__init__("This process may start no more threads, and it takes one to hear the server.")


class Refused(MinervaError):
    """The server said no, and nothing changed. Each word of the contract has a class of its own below this one."""

    def __init__(self, message: str, word: str, code: grpc.StatusCode) -> None:
        super().__init__(message)
        self.word = word
        """The server's word for programs, such as `not-enough-credits`; empty when it gave none."""
        self.code = code
        """The status code."""

    def __reduce__(self) -> tuple[type[Refused], tuple[str, str, grpc.StatusCode]]:
        """A process that works for another hands it over with its exceptions, which Python makes again from what they were made of."""
        return type(self), (str(self), self.word, self.code)


class NotIdentified(Refused):
    """Nobody knows who asks: the certificate or token is nobody's, or has expired."""


class UnknownTenant(Refused):
    """The server does not know the tenant."""


class UnknownDevice(Refused):
    """No such disk."""


class UnknownOperation(Refused):
    """No operation was asked for under this key, or it is over."""


class NotAllowed(Refused):
    """The operator excludes this tenant, or switched this off."""


class OutOfRange(Refused):
    """A number that cannot be meant."""


class TooLate(Refused):
    """A deadline that has passed."""


class NotEnoughCredits(Refused):
    """The account holds less than this costs."""


class TooMany(Refused):
    """Too much is waiting or under way already, or was asked for in too short a time."""


class KeyReused(Refused):
    """The key was used for another request."""


class NotCommitted(Refused):
    """The purchase could not be stored. Nothing was spent."""


class Stopping(Refused):
    """The server is ending."""


class Busy(Refused):
    """The server has more to do than it can take."""


class NotSeenYet(Refused):
    """The server has not seen the caller's cgroup yet; it looks once a slice."""


class UnknownProcess(Refused):
    """There is no such process to bind a level to."""


class NotKnown(Refused):
    """The server is older than this package, and does not know the request."""


UNSERVED = (
    NoThread,
    NotIdentified,
    UnknownTenant,
    UnknownDevice,
    NotSeenYet,
    NotAllowed,
    NotKnown,
    TooMany,
    Busy,
    Stopping,
)
"""What says that the server has nothing to do with this program, does not know what it asks, that its operator wants it so, that it
could not take more for as long as the client is patient, or that nobody here can hear it, and not that the program asked for something
wrong."""

_CLASSES: dict[str, type[Refused]] = {
    "not-identified": NotIdentified,
    "process-held-up": NotIdentified,
    "unknown-tenant": UnknownTenant,
    "unknown-device": UnknownDevice,
    "unknown-operation": UnknownOperation,
    "not-allowed": NotAllowed,
    "out-of-range": OutOfRange,
    "too-late": TooLate,
    "not-enough-credits": NotEnoughCredits,
    "too-many": TooMany,
    "too-many-requests": TooMany,
    "too-many-connections": TooMany,
    "too-many-streams": TooMany,
    "key-reused": KeyReused,
    "not-committed": NotCommitted,
    "stopping": Stopping,
    "busy": Busy,
    "not-seen-yet": NotSeenYet,
    "bad-process": UnknownProcess,
    "no-such-process": UnknownProcess,
}

# The word of an agent that has not reached its server.
_NO_SERVER = "no-server"

# What a lost connection may look like on this side, when no word of the server's comes with it.
_BROKEN = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.UNKNOWN,
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.DEADLINE_EXCEEDED,
    }
)


class _Error(Protocol):
    """What errors of `grpc` and of `grpc.aio` have in common."""

    def code(self) -> grpc.StatusCode: ...

    def details(self) -> str | None: ...

    def trailing_metadata(self) -> object: ...


class Status:
    """How a call ended, whichever half of grpcio made it."""

    def __init__(self, code: grpc.StatusCode, details: str = "", metadata: dict[str, str] | None = None) -> None:
        self.code = code
        self.details = details
        metadata = metadata or {}
        self.word = metadata.get(_WORD_KEY, "")
        milliseconds = metadata.get(_RETRY_AFTER_KEY, "")
        self.retry_after_seconds = int(milliseconds) / 1000 if milliseconds.isdecimal() else 0.0
        """When the server would like to be asked again."""

    @classmethod
    def of(cls, error: _Error) -> Status:
        """From an error of a call."""
        # The two halves of grpcio give pairs in containers of different types.
        pairs = error.trailing_metadata() or ()
        metadata = {key: value for key, value in pairs if isinstance(value, str)}  # type: ignore[attr-defined]
        return cls(error.code(), error.details() or "", metadata)

    @property
    def is_broken(self) -> bool:
        """Whether the connection failed, rather than the server having said no."""
        return not self.word and self.code in _BROKEN

    @property
    def is_silence(self) -> bool:
        """Whether nothing was heard for as long as this side listened."""
        return not self.word and self.code is grpc.StatusCode.DEADLINE_EXCEEDED

    @property
    def is_worth_another_try(self) -> bool:
        """Whether the same request may be answered later."""
        later = (
            grpc.StatusCode.UNAVAILABLE,
            grpc.StatusCode.RESOURCE_EXHAUSTED,
            grpc.StatusCode.DEADLINE_EXCEEDED,
        )
        return self.is_broken or self.code in later

    @property
    def may_be_done(self) -> bool:
        """Whether the request may have been done all the same: its answer was lost, or did not come in time."""
        return self.is_broken or self.code is grpc.StatusCode.DEADLINE_EXCEEDED

    @property
    def is_refusal(self) -> bool:
        """Whether the server said no, for now or for good, rather than having been away."""
        return not self.may_be_done and not self.says_no_server

    @property
    def says_no_server(self) -> bool:
        """Whether an agent says so, which has not reached its server since it started."""
        return self.word == _NO_SERVER

    def error(self, address: str, waited_seconds: float, request_id: str) -> MinervaError:
        """What the program is told when it was tried for long enough."""
        if self.is_refusal:
            return self.refusal()
        reason = f" ({self.details})" if self.details else ""
        message = f"no answer from {address} within {waited_seconds:.0f} s{reason}: is minervad running?"
        if request_id:
            message += f" What was asked may have been done; ask again under the request_id {request_id}"
        return Unreachable(message, request_id)

    def refusal(self) -> Refused:
        """What the program is told when the server said no."""
        message = self.details or f"the server refused: {self.code.value[1]}"
        if self.code is grpc.StatusCode.UNIMPLEMENTED and self.word in ("", "unknown-method"):
            # Servers have sentences of their own for it, none of which says what to do: a library's, and `minervad`'s.
            return NotKnown("the server is too old for this request: it needs a newer minervad", self.word, self.code)
        return _CLASSES.get(self.word, Refused)(message, self.word, self.code)
