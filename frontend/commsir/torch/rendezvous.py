"""Ranks find each other in a store that others have used: runtime/support/Rendezvous.h in Python, on the same keys.

Each rank draws a number; rank 0 greets the numbers that it finds and goes on when all ranks have answered. A number
that an earlier job left in the store never does.
"""

from __future__ import annotations

import secrets
import string
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import torch.distributed

dist: Any = torch.distributed

__all__ = ["Rendezvous", "RendezvousResult", "store_of"]

#: What torch's stores raise where they do not answer: files and sockets of theirs raise as the system does.
_STORE_ERRORS = (dist.DistError, RuntimeError, OSError)

_SHORT = 0.02
#: Rank 0 tells at its deadline, which may be a little later.
_GRACE = 3.0
#: The most bytes that a rank says of itself, and the most ranks: a store may hold anything.
_MOST_SAID = 1 << 16
_MOST_RANKS = 1 << 16
#: The most characters of a text that is quoted within a sentence.
_MOST_QUOTED = 160


def store_of(process_group: Any) -> Any:
    """A separate connection to the store of a process group of any backend. Groups in Python do not expose theirs."""
    store = process_group.get_group_store() or dist.distributed_c10d._get_process_group_store(process_group)
    return store.clone()


@dataclass
class RendezvousResult:
    """Outcome of a rendezvous: `epoch` identifies it; empty: ranks have not met, for the reason in `failure`."""

    epoch: str = ""
    failure: str = ""
    said: list[str] = field(default_factory=list)
    stopped: bool = False


@dataclass
class _Member:
    greeted: str = ""
    number: str = ""
    says: str = ""
    here: bool = False
    #: What the store holds in place of the rank's number or answer.
    foreign: str | None = None


def _look(store: Any, key: str, seconds: float) -> bytes | None:
    """Polls for a key for some time, because torch's stores log a warning for each wait that times out."""
    end, pause = time.monotonic() + seconds, 0.0002
    while not store.check([key]):
        if time.monotonic() >= end:
            return None
        time.sleep(pause)
        pause = min(2 * pause, 0.01)
    return bytes(store.get(key))


def _unpacked(packed: bytes) -> list[_Member] | None:
    """Decodes the texts of all ranks from rank 0's message. Returns None if it is no list of them."""
    guests = list[_Member]()
    while packed:
        number, _, packed = packed.partition(b" ")
        digits, space, packed = packed.partition(b" ")
        length = int(digits) if digits.isdigit() and len(digits) < 10 and space else -1
        name = number.decode(errors="replace")
        if not (_is_number(name) and 0 <= length <= min(len(packed), _MOST_SAID) and len(guests) < _MOST_RANKS):
            return None
        guests.append(_Member("", name, packed[:length].decode(errors="replace")))
        packed = packed[length:]
    return guests


def _is_number(text: str) -> bool:
    """Whether a text of the store can be a number that a rank has drawn. It becomes part of keys."""
    return 0 < len(text) <= 64 and all(c in string.digits + string.ascii_lowercase for c in text)


def _shown(text: str) -> str:
    """What an error shows of a text of the store, which can hold anything."""
    shown = "".join(c if c.isprintable() or c == "\n" else "?" for c in text[:1500])
    return shown + (" [...]" if len(text) > len(shown) else "")


def _describe_foreign(text: str, rank: int) -> str:
    """Says that a store holds `text` where the rank should have written something else."""
    shown = _shown(text[:_MOST_QUOTED])
    if len(text) > _MOST_QUOTED:
        shown += f" [...] of {len(text)} characters"
    return f"the store holds '{shown}' in place of the text of rank {rank}"


class Rendezvous:
    """One rank's part. `stopped` is called a few times a second and returns whether to give up."""

    def __init__(
        self,
        store: Any,
        rank: int,
        ranks: int,
        timeout: timedelta,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self._store, self._rank, self._ranks, self._stopped = store, rank, ranks, stopped
        self._timeout = timeout.total_seconds()
        self._end = time.monotonic() + self._timeout
        self._number = secrets.token_hex(8)
        self._pause = _SHORT
        self._broken = False
        #: What the store has said last where it did not answer.
        self._why = ""

    def hold(self, says: str = "") -> RendezvousResult:
        """Runs the rendezvous. Collective. All ranks can read `says` afterwards."""
        if self._ranks == 1:
            return RendezvousResult(self._number, said=[says])
        return self._lead(says) if self._rank == 0 else self._follow(says)

    def _slice(self) -> float:
        now, self._pause = self._pause, min(2 * self._pause, 0.25)
        return max(0.001, min(now, self._end - time.monotonic()))

    def _over(self, why: str) -> RendezvousResult | None:
        if self._stopped():
            return RendezvousResult(failure="it was interrupted while it waited in the store", stopped=True)
        if self._broken:
            return RendezvousResult(failure=self._silent())
        return RendezvousResult(failure=why) if time.monotonic() > self._end else None

    def _ask(self, key: str) -> str | None:
        """An answer that is none, before its time is over, is the store's trouble."""
        seconds, begun = self._slice(), time.monotonic()
        try:
            found = _look(self._store, key, seconds)
            # What a stranger has left in the store may be no text.
            return None if found is None else found.decode(errors="replace")
        except _STORE_ERRORS as error:
            self._why = str(error)
            self._broken = self._broken or time.monotonic() - begun < 0.5 * seconds - 0.01
            return None

    def _tell(self, key: str, value: str) -> None:
        try:
            self._store.set(key, value)
        except _STORE_ERRORS as error:
            self._why, self._broken = str(error), True

    def _silent(self) -> str:
        return "the store does not answer" + (f" (the store: {self._why})" if self._why else "")

    def _greet(self, other: int, guest: _Member) -> None:
        here = self._ask(f"here/{other}")
        if here is None:
            return
        guest.foreign = None if _is_number(here) else here
        if guest.foreign is not None:
            return
        if here != guest.greeted:
            guest.greeted = here
            self._tell(f"hello/{here}", self._number)
        ack = self._ask(f"ack/{self._number}/{other}")
        if ack is None:
            return
        number, space, says = ack.partition(" ")
        if not (_is_number(number) and space and len(says) <= _MOST_SAID):
            guest.foreign = ack
            return
        guest.number, guest.says = number, says
        guest.here = True
        self._pause = _SHORT

    def _lead(self, says: str) -> RendezvousResult:
        guests = [_Member() for _ in range(self._ranks)]
        guests[0] = _Member(self._number, self._number, says, True)
        while True:
            for other, guest in enumerate(guests):
                if not guest.here and not self._broken and not self._stopped():
                    self._greet(other, guest)
            if all(guest.here for guest in guests) and not self._broken:
                break
            if failed := self._over(self._absent(guests)):
                self._tell(f"go/{self._number}", f"no {failed.failure}")
                return failed
        # Lengths are of bytes, as in C++.
        packed = "".join(f"{guest.number} {len(guest.says.encode())} {guest.says}" for guest in guests)
        self._tell(f"go/{self._number}", f"yes {packed}")
        return self._finish(self._number, guests)

    def _absent(self, guests: list[_Member]) -> str:
        missing = [str(rank) for rank, guest in enumerate(guests) if not guest.here]
        stale = any(guest.greeted and guest.foreign is None for guest in guests if not guest.here)
        one = len(missing) == 1
        return (
            f"{'rank' if one else 'ranks'} {', '.join(missing)} of {self._ranks} {'has' if one else 'have'} not "
            f"arrived within {int(self._timeout)} s"
            + (" (the store holds what an earlier run left of them)" if stale else "")
            + self._describe_foreigners(guests)
        )

    @staticmethod
    def _describe_foreigners(guests: list[_Member]) -> str:
        """Describes what the store holds in place of what missing ranks have said."""
        texts = [
            _describe_foreign(guest.foreign, rank)
            for rank, guest in enumerate(guests)
            if not guest.here and guest.foreign is not None
        ]
        return f" ({'; '.join(texts)})" if texts else ""

    def _follow(self, says: str) -> RendezvousResult:
        self._tell(f"here/{self._rank}", self._number)
        leader = foreign = ""
        while True:
            # Another rank 0 may have come since.
            hello = self._ask(f"hello/{self._number}")
            if hello is not None and not _is_number(hello):
                foreign = f" ({_describe_foreign(hello, 0)})"
            elif hello and hello != leader:
                if not leader:
                    self._end += _GRACE
                leader, foreign, self._pause = hello, "", _SHORT
                self._tell(f"ack/{leader}/{self._rank}", f"{self._number} {says}")
            go = self._ask(f"go/{leader}") if leader else None
            if go is not None:
                return self._hear(leader, go)
            what = "seen all ranks" if leader else "arrived"
            if failed := self._over(f"rank 0 has not {what} within {int(self._timeout)} s{foreign}"):
                return failed

    def _hear(self, leader: str, go: str) -> RendezvousResult:
        if go.startswith("no "):
            return RendezvousResult(failure=f"rank 0 says: {_shown(go[3:])}")
        guests = _unpacked(go[4:].encode()) if go.startswith("yes ") else None
        if guests is None:
            return RendezvousResult(failure=_describe_foreign(go, 0))
        if len(guests) != self._ranks:
            return RendezvousResult(
                failure=f"ranks disagree on how many they are: rank {self._rank} is one of {self._ranks}, "
                f"and rank 0 is one of {len(guests)}"
            )
        if guests[self._rank].number != self._number:
            return RendezvousResult(
                failure=f"rank 0 has met another process as rank {self._rank}; give each process its own rank"
            )
        return self._finish(leader, guests)

    def _finish(self, epoch: str, guests: list[_Member]) -> RendezvousResult:
        if self._broken:
            return RendezvousResult(failure=self._silent())
        return RendezvousResult(epoch, said=[guest.says for guest in guests])
