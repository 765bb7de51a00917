"""Errors about a store that no longer answers, or that holds data that no rank wrote."""

from __future__ import annotations

import shutil
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed
from expected import error_of

dist: Any = torch.distributed


def silent(rank: int, size: int, store: Any, folder: str) -> list[str]:
    """It has gone with its folder, in whose place there is a file: that is no matter of waiting."""
    place, timeout = Path(folder) / "gone", timedelta(seconds=20)
    place.mkdir(exist_ok=True)
    used = dist.FileStore(str(place / "store"), size)
    dist.init_process_group("commsir", store=used, rank=rank, world_size=size, timeout=timeout)
    dist.all_reduce(torch.ones(2))
    later = dist.new_group()
    store.set(f"made {rank}", "yes")
    store.wait([f"made {r}" for r in range(size)])
    if rank:
        return []
    shutil.rmtree(place)
    place.touch()
    # The one has its connection already.
    return [
        error_of(lambda: dist.monitored_barrier(timeout=timeout)),
        error_of(lambda: dist.all_reduce(torch.ones(2), group=later)),
    ]


class Lying(dist.Store):  # type: ignore[misc]
    """Replaces each value of a key that contains `part`, when it is read or when it is written."""

    def __init__(self, store: Any, part: str, value: bytes, reads: bool) -> None:
        super().__init__()
        self.store, self.part, self.value, self.reads = store, part, value, reads

    def set(self, key: str, value: bytes) -> None:
        self.store.set(key, self.value if self.part in key and not self.reads else value)

    def get(self, key: str) -> bytes:
        return self.value if self.part in key and self.reads else bytes(self.store.get(key))

    def check(self, keys: list[str]) -> bool:
        return bool(self.store.check(keys))

    def add(self, key: str, amount: int) -> int:
        return int(self.store.add(key, amount))

    def wait(self, keys: list[str], *timeout: timedelta) -> None:
        self.store.wait(keys, *timeout)

    def delete_key(self, key: str) -> bool:
        return bool(self.store.delete_key(key))

    def clone(self) -> Lying:
        return self


def lied_to(rank: int, size: int, store: Any, part: str, value: str, reads: bool, seconds: float) -> tuple[str, float]:
    """Rank 1 has a store that lies. Returns the error of a sum, or of a message if `part` is of messages, and how long
    it took.
    """
    mine = Lying(store, part, value.encode(), reads) if rank == 1 else store
    timeout = timedelta(seconds=seconds)
    dist.init_process_group("commsir", store=mine, rank=rank, world_size=size, timeout=timeout)
    begun = time.monotonic()

    def call() -> None:
        if "sends/" not in part:
            dist.all_reduce(torch.ones(2))
        elif rank == 1:
            for other in (0, *range(2, size)):
                dist.recv(torch.ones(2), other)
        else:
            dist.send(torch.ones(2), 1)

    return error_of(call), time.monotonic() - begun
