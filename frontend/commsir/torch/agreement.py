"""Whether all ranks of a process group run the same kernel at a site of a compiled graph.

Each rank compiles for itself, and may come to other arithmetic behind a collective than the others: it multiplies by
its number, adds a bias that only it has, or fuses nothing. What all ranks have in common is the collective itself. So
a place ("site") begins with the process group's own collective, and before that a rank writes into the store what it
would rather run. No rank has the collective's result before all have begun it, and all have written by then: all see
the same, and where each has written the same, all go over to the kernel.

The collective's number in the process group tells which calls belong together, also where some rank calls it from a
function that is not compiled. Such a rank writes nothing, so the others leave the collective as it is. Nobody waits
for what may never be written.
"""

from __future__ import annotations

import hashlib
import logging
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

    def attempt(self, site: str, wanted: str, collective: Callable[[], _Made]) -> tuple[_Made, bool]:
        """Runs `collective`, which ends on the host. Returns its result, and whether all ranks want `wanted` in its
        place.
        """
        number = self._number()
        self._calls += 1
        self._tries[site] += 1
        self._periods[site] = number // _PERIOD
        self._write(f"{number}/{wanted}/{self._rank}")
        made = collective()
        all_want = bool(self._store.check([f"{number}/{wanted}/{rank}" for rank in range(self._ranks)]))
        if all_want:
            self._tries[site] = _TRIES
        elif self._tries[site] == _TRIES:
            _log.info(
                "rank %d: ranks do not want the same kernel at %s: the collective stays, followed by the arithmetic",
                self._rank,
                site,
            )
        return made, all_want

    def _number(self) -> int:
        """Returns the number of the process group's last collective, which is equal on all ranks."""
        try:
            return int(self._backend._get_sequence_number_for_group())
        except Exception:  # A backend that does not count: ranks go by the calls that they have made here.
            return self._calls

    def _write(self, key: str) -> None:
        self._store.set(key, "")
        # Not before the store answers has it what was written.
        self._store.check([key])
        self._written.append(key)
        # All have ended the call before the last, and looked: they have begun the last.
        if len(self._written) > 2:
            self._store.delete_key(self._written.popleft())
