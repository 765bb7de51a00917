"""A program that ends many interpreters soon after their last collective, for test_ending.py.

    python ending.py FOLDER TURNS CASE…

It forks after it has imported torch, so that each end takes little time. A child runs one rank of a case and then
returns from the program, through Python's normal exit. The output of children whose status is not 0 is printed as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import commsir.torch
import torch
import torch.distributed
from commsir.torch import backend

dist: Any = torch.distributed
RANKS = 2


def waited(rank: int) -> None:
    """Tensors that only the call's Work and the group's thread hold when the call ends."""
    for _ in range(3):
        dist.all_reduce(torch.ones(1000), async_op=True).wait()


def in_place(rank: int) -> None:
    dist.all_reduce(torch.ones(64))


def unwaited(rank: int) -> None:
    """The program ends before its call does."""
    for _ in range(3):
        dist.all_reduce(torch.ones(100000), async_op=True)


def callback(rank: int) -> None:
    """The group's thread is in Python when the program ends."""

    def last(future: Any) -> torch.Tensor:
        time.sleep(0.1)
        return torch.ones(3) + 1

    work = dist.all_reduce(torch.ones(8), async_op=True)
    work.get_future().then(last)
    work.wait()


def delegated(rank: int) -> None:
    """Sparse tensors are Gloo's, whose threads hold them a little longer than the call lasts."""
    for _ in range(2):
        dist.all_reduce(torch.eye(40).to_sparse(), async_op=True).wait()


def sends(rank: int) -> None:
    got = torch.empty(50)
    work = dist.isend(torch.ones(50), 1 - rank)
    dist.recv(got, 1 - rank)
    work.wait()


def received_later(rank: int) -> None:
    """A receive that nobody waits for."""
    dist.irecv(torch.empty(50), 1 - rank)
    dist.all_reduce(torch.ones(2))


def sent_last(rank: int) -> None:
    """Two ranks meet by a message whose sender ends meanwhile; the later receive, too, finds what was sent."""
    if rank == 0:
        dist.isend(torch.arange(50.0), 1)
        dist.isend(torch.arange(100000.0), 1)
        return
    time.sleep(0.3)
    for count in (50, 100000):
        got = torch.empty(count)
        dist.recv(got, 0)
        assert got.equal(torch.arange(float(count)))


def never_met(rank: int) -> None:
    """Who is gone before the first message is not waited for."""
    if rank == 0:
        return
    begun = time.monotonic()
    for source in (0, None):
        try:
            dist.recv(torch.empty(50), source)
        except RuntimeError as error:
            assert "rank 0 has left the group" in str(error) or "has died" in str(error), error
        else:
            raise AssertionError("there was nothing to receive")
    assert time.monotonic() - begun < 10


def alone(rank: int) -> None:
    """A call to which the other rank never comes."""
    if rank == 0:
        dist.all_reduce(torch.ones(8), async_op=True)


def late(rank: int) -> None:
    """Calls of a program's own exit handler."""
    import atexit

    atexit.register(lambda: dist.all_reduce(torch.ones(8)))


CASES = (waited, in_place, unwaited, callback, delegated, sends, received_later, sent_last, never_met, alone, late)


def run(case: str, rank: int, store: str, destroys: bool) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("commsir", store=dist.FileStore(store, RANKS), rank=rank, world_size=RANKS)
    dist.all_reduce(torch.ones(2))
    next(found for found in CASES if found.__name__ == case)(rank)
    if destroys:
        dist.destroy_process_group()


def main(folder: Path, turns: int, cases: list[str]) -> None:
    commsir.torch.register()
    backend.load_module()
    failures = []
    for turn in range(turns):
        for case in cases:
            # A group is destroyed in every second turn; not where that would wait for the other rank in vain.
            destroys = turn % 2 == 1 and case not in ("alone", "late")
            name = f"{case}.{turn}"
            children = {}
            for rank in range(RANKS):
                child = os.fork()
                if not child:
                    said = os.open(folder / f"{name}.{rank}", os.O_WRONLY | os.O_CREAT)
                    os.dup2(said, 2)
                    return run(case, rank, str(folder / f"{name}.store"), destroys)
                children[child] = rank
            for child, rank in children.items():
                _, status = os.waitpid(child, 0)
                if status:
                    code = os.waitstatus_to_exitcode(status)
                    failures.append([name, rank, code, (folder / f"{name}.{rank}").read_text()[-2000:]])
    print(json.dumps(failures))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
