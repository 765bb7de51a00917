"""What is said of a store that no longer answers."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed
from checks import error_of

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


class Lying(dist.Store):
    """A store that says `lie` of each key with `part`."""

    def __init__(self, store: Any, part: str, lie: bytes) -> None:
        super().__init__()
        self.store, self.part, self.lie = store, part, lie

    def set(self, key: str, value: Any) -> None:
        self.store.set(key, value)

    def get(self, key: str) -> bytes:
        value = bytes(self.store.get(key))
        return self.lie if self.part in key else value

    def check(self, keys: list[str]) -> bool:
        return bool(self.store.check(keys))

    def wait(self, keys: list[str], *timeout: timedelta) -> None:
        self.store.wait(keys, *timeout)

    def add(self, key: str, number: int) -> int:
        return int(self.store.add(key, number))

    def delete_key(self, key: str) -> bool:
        return bool(self.store.delete_key(key))

    def clone(self) -> Any:
        return self


LIES = (b"", b"x", b"no", b"no " + b"\xff" * (1 << 20), b"9223372036854775807", b"\0" * 300, b"yes 1 1 1")


def lied_to(rank: int, size: int, store: Any, part: str) -> list[tuple[str, str]]:
    """What rank 1 is told, whose store lies, and the type of the error."""
    told = []
    for number, lie in enumerate(LIES):
        place = dist.PrefixStore(f"{part} {number}", store)
        used = Lying(place, part, lie) if rank == 1 else place
        error: BaseException | None = None
        dist.init_process_group("commsir", store=used, rank=rank, world_size=size, timeout=timedelta(seconds=20))
        try:
            dist.all_reduce(torch.ones(2))
        except Exception as raised:
            error = raised
        dist.destroy_process_group()
        told.append((type(error).__name__, str(error)))
    return told
