"""What a tenant can say and be told, in the units that Python programs use: seconds, credits, bytes."""

from __future__ import annotations

import datetime
import enum
from dataclasses import dataclass, field
from typing import Literal


class Level(str, enum.Enum):
    """How far a tenant steps back."""

    NORMAL = "normal"
    """As everyone."""
    LOW = "low"
    """A part of what it would have."""
    LOWEST = "lowest"
    """A small part of it."""
    IDLE = "idle"
    """Only when nobody else uses the disk."""


class Access(str, enum.Enum):
    """What an operation mostly does."""

    SEQUENTIAL_READ = "sequential-read"
    SEQUENTIAL_WRITE = "sequential-write"
    RANDOM_READ = "random-read"
    RANDOM_WRITE = "random-write"


LevelWord = Literal["normal", "low", "lowest", "idle"]
AccessWord = Literal["sequential-read", "sequential-write", "random-read", "random-write"]


class Begun(str, enum.Enum):
    """Why a coordinated operation begins."""

    TOLD = "told"
    """The server said so."""
    IN_TIME = "in-time"
    """Its deadline has come, or as many slices have passed as it was told to wait."""
    UNSERVED = "unserved"
    """There is no server to say so."""
    IN_POOL = "in-pool"
    """The server said: in the pool that the operation may go to, in place of its disk."""


@dataclass(frozen=True)
class ScheduleEntry:
    """A part of the day at which to step back."""

    begin: datetime.time
    end: datetime.time
    """An end that is not after the begin is on the next day."""
    level: Level | LevelWord
    days: frozenset[int] = frozenset()
    """Days on which it begins, Monday is 0 as in `datetime.date.weekday`; none: every day."""


@dataclass(frozen=True)
class BoostUnderWay:
    """Slices of high priority that were bought and are not over."""

    request_id: str
    slices_left: int
    device: str
    """`MAJ:MIN` on the host; empty: every disk."""


@dataclass(frozen=True)
class OperationUnderWay:
    """A coordinated operation that is not finished."""

    request_id: str
    size_bytes: int
    begun: bool


@dataclass(frozen=True)
class Description:
    """Who the server takes the caller for, and what is in force for it. Without a server every field is as it stands here."""

    version: str = ""
    """The server's."""
    tenant: str = ""
    """The tenant's name on the host."""
    identified_by: str = ""
    """`cgroup`, `vsock`, `certificate` or `token`."""
    role: str = "silent"
    """`participant` (may do everything), `guest` (everything but buying) or `silent` (nothing)."""
    mode: str = ""
    """The daemon's: only in `enforce` do levels and boosts reach the kernel."""
    slice_seconds: float = 0.0
    level: Level = Level.NORMAL
    """The level in force."""
    level_left_seconds: float | None = None
    """Time until it ends by itself; absent when it does not."""
    held_credits: float = 0.0
    """What the account can spend."""
    boosts: tuple[BoostUnderWay, ...] = ()
    operations: tuple[OperationUnderWay, ...] = ()
    schedule: tuple[ScheduleEntry, ...] = ()


@dataclass(frozen=True)
class CreditEntry:
    """A line of the account."""

    at: datetime.datetime
    """In UTC."""
    kind: str
    """`earned`, `given`, `spent`, `expired` or `taken`."""
    micro_credits: int
    request_id: str
    """The request behind it; empty when there is none."""

    @property
    def credits(self) -> float:
        """The amount in credits."""
        return self.micro_credits / 1e6


@dataclass(frozen=True)
class Credits:
    """What the account holds. Without a server it holds nothing."""

    held_micro_credits: int = 0
    accruing_micro_credits: int = 0
    slice_price_micro_credits: int = 0
    slice_seconds: float = 0.0
    entries: tuple[CreditEntry, ...] = field(default=())
    """The last ones, oldest first."""

    @property
    def held(self) -> float:
        """What can be spent, in credits."""
        return self.held_micro_credits / 1e6

    @property
    def accruing(self) -> float:
        """Earned and not entered yet, in credits."""
        return self.accruing_micro_credits / 1e6

    @property
    def boost_seconds(self) -> float:
        """How long a boost it would pay for."""
        if self.slice_price_micro_credits == 0:
            return 0.0
        return self.held_micro_credits // self.slice_price_micro_credits * self.slice_seconds


@dataclass(frozen=True)
class Boost:
    """A purchase. Without a server it is one of nothing."""

    slices: int = 0
    price_micro_credits: int = 0
    held_micro_credits: int = 0
    """What is left."""

    @property
    def price(self) -> float:
        """In credits."""
        return self.price_micro_credits / 1e6
