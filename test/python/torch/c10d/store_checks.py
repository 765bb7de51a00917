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
