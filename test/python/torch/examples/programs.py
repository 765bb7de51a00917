"""Runs the programs of commsir.examples.torch as torchrun would, in ranks that already exist."""

from __future__ import annotations

import importlib
import os
from typing import Any

import commsir.torch
import torch._inductor.config as inductor
import torch.distributed

dist: Any = torch.distributed
_stores: list[Any] = []


def program(rank: int, size: int, store: Any, name: str, arguments: list[str], ranks: int) -> Any:
    """What `main` of the program returns, and the calls that CommsIR's backend has counted meanwhile.

    It runs with `ranks` ranks; the others do nothing.
    """
    if rank >= ranks:
        return None, []
    # As torchrun says where its store is: a new one for each run.
    if rank == 0:
        _stores[:] = [dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)]
        store.set("port", str(_stores[0].port))
    os.environ.update(
        RANK=str(rank),
        WORLD_SIZE=str(ranks),
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=store.get("port").decode(),
        TORCHELASTIC_USE_AGENT_STORE="True",
    )
    # What comes out of Inductor's cache has not met the pass in this process. What is left to Inductor runs as it is: a
    # C++ compiler would take longer than all else.
    inductor.force_disable_caches = True
    inductor.fallback_by_default = True
    inductor.compile_threads = 1
    commsir.torch.clear_stats()
    result = importlib.import_module(f"commsir.examples.torch.{name}").main(arguments)
    return result, commsir.torch.stats()["calls"]
