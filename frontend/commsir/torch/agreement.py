"""Whether all ranks of a process group run the same kernel at a site of a compiled graph.

Each rank compiles for itself, and may come to other arithmetic behind a collective than the others: it multiplies by
its number, adds a bias that only it has, or fuses nothing. What all ranks have in common is the collective itself. So
a place ("site") begins with the process group's own collective, and before that a rank writes into the store what it
would rather run. No rank has the collective's result before all have begun it, and all have written by then: all see
the same, and where each has written the same, all go over to the kernel.

The collective's number in the process group tells which calls belong together, also where some rank calls it from a
function that is not compiled. Such a rank writes nothing, so the others leave the collective as it is. Nobody waits
for what may never be written.

An operation of another library need not be counted by the process group. There each rank writes, with what it wants, a
number that it never uses again. Behind the operation, ranks that have read the same numbers of all are in the same
call. They tell each other so, and the first word in the store decides: that of the last rank, or that of one which has
waited too long.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
import time
from collections import Counter, deque
from collections.abc import Callable
from typing import Any, TypeVar

import torch
import torch.distributed as dist

from commsir.torch.rendezvous import store_of

__all__ = ["Agreement", "digest_of"]

_log = logging.getLogger("commsir.compile")
_DIST: Any = dist
_Made = TypeVar("_Made")
#: How often a rank says at once what it wants at a site: it may be the first to have compiled it.
_TRIES = 3
#: Then it says so once for so many collectives of the process group, in a call that is the same for all ranks.
_PERIOD = 1024
#: Seconds that ranks which want the same behind an uncounted operation wait for each other.
_PATIENCE = 2.0


def digest_of(*what: Any) -> str:
    """Returns a short name for the text that is the same in every process."""
    return hashlib.sha256(repr(what).encode()).hexdigest()[:16]


class Agreement:
    """Whether all ranks of a process group want a kernel, on one device (-1: the CPU)."""

    def __init__(self, process_group: Any, device: int) -> None:
        self._ranks, self._rank = int(process_group.size()), int(process_group.rank())
        self._store = _DIST.PrefixStore(f"commsir/ops/agreed/{device >= 0}", store_of(process_group))
        self._backend = process_group._get_backend(torch.device("cpu" if device < 0 else "cuda"))
        self._tries: Counter[str] = Counter()
        self._periods: dict[str, int] = {}
        self._written: deque[str] = deque()
        #: Sites that have no kernel, on any rank.
        self._closed: set[str] = set()
        self._calls = 0

    def is_open(self, site: str) -> bool:
        """Whether the ranks still vote at this site in this call."""
        if site in self._closed:
            return False
        return self._tries[site] < _TRIES or self._periods[site] != self._number() // _PERIOD

    def close(self, site: str) -> None:
        """Ends the votes at this site: no kernel can be made there, which all ranks have heard."""
        self._closed.add(site)

    def attempt(
        self, site: str, wanted: str, collective: Callable[[], _Made], is_counted: bool = True
    ) -> tuple[_Made, bool]:
        """Runs `collective`, which ends on the host. Returns its result, and whether all ranks want `wanted` in its
        place. `is_counted`: the process group counts it.
        """
        number = self._number()
        self._calls += 1
        self._tries[site] += 1
        self._periods[site] = number // _PERIOD
        if is_counted:
            self._write(f"{number}/{wanted}/{self._rank}")
            made = collective()
            all_want = bool(self._store.check([f"{number}/{wanted}/{rank}" for rank in range(self._ranks)]))
        else:
            made, all_want = self._attempt_uncounted(wanted, collective)
        if all_want:
            self._tries[site] = _TRIES
        elif self._tries[site] == _TRIES:
            _log.info(
                "rank %d: ranks do not want the same kernel at %s: the collective stays, followed by the arithmetic",
                self._rank,
                site,
            )
        return made, all_want

    def _attempt_uncounted(self, wanted: str, collective: Callable[[], _Made]) -> tuple[_Made, bool]:
        own = f"vote/{self._rank}"
        self._set(own, f"{wanted} {secrets.token_hex(8)}")
        made = collective()
        votes = self._votes()
        is_wanted = len(votes) == self._ranks and all(vote.startswith(f"{wanted} ") for vote in votes)
        all_want = is_wanted and self._decided(digest_of(votes))
        self._set(own, "-")
        return made, all_want

    def _votes(self) -> list[str]:
        """What all ranks have written last; nothing where one has never written."""
        keys = [f"vote/{rank}" for rank in range(self._ranks)]
        return [self._store.get(key).decode() for key in keys] if self._store.check(keys) else []

    def _decided(self, call: str) -> bool:
        """Whether all ranks have come here in that call. All that have hear the same."""
        came, decision = f"came/{call}", f"decided/{call}"
        self._store.add(came, 1)
        deadline = time.monotonic() + _PATIENCE
        while True:
            if self._store.add(came, 0) == self._ranks:
                said = self._store.compare_set(decision, "", "yes")
            elif time.monotonic() > deadline:
                said = self._store.compare_set(decision, "", "no")
            elif self._store.check([decision]):
                said = self._store.get(decision)
            else:
                time.sleep(0.0005)
                continue
            return bool(said == b"yes")

    def _number(self) -> int:
        """Returns the number of the process group's last collective, which is equal on all ranks."""
        try:
            return int(self._backend._get_sequence_number_for_group())
        except Exception:  # A backend that does not count: ranks go by the calls that they have made here.
            return self._calls

    def _set(self, key: str, value: str) -> None:
        self._store.set(key, value)
        # Not before the store answers has it what was written.
        self._store.check([key])

    def _write(self, key: str) -> None:
        self._set(key, "")
        self._written.append(key)
        # All have ended the call before the last, and looked: they have begun the last.
        if len(self._written) > 2:
            self._store.delete_key(self._written.popleft())
