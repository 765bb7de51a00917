"""A worker dies in the middle of training; the others are told who, make a group of those left, and go on.

    python -m commsir.examples.torch.survivors

Ranks meet in a store that the parent keeps (under torchrun, which ends all ranks when one dies, start it with
`--max-restarts`, and restart instead). The error of a collective names the dead rank, but it need not come on all ranks
in the same step. So those left first agree, through the store, on who they are and on the step to go on from.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing as mp
import os
import signal
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed
from sklearn.datasets import load_digits

dist: Any = torch.distributed

#: Seconds that the others wait for one that has not said that it lives.
GRACE = 6


def agree(store: Any, generation: int, ranks: list[int], own: int) -> list[int]:
    """Agrees on the survivors of `ranks`, by their original numbers: the lowest survivor decides, the others read
    it."""
    mine = dist.PrefixStore(f"generation {generation}", store)
    mine.set(f"lives {own}", "")
    deadline = time.monotonic() + GRACE
    while not mine.check([f"lives {rank}" for rank in ranks]) and time.monotonic() < deadline:
        time.sleep(0.05)
    left = [rank for rank in ranks if mine.check([f"lives {rank}"])]
    if left[0] == own:
        mine.set("left", " ".join(map(str, left)))
    return [int(rank) for rank in mine.get("left").decode().split()]


def gather(backend: str, store: Any, generation: int, ranks: list[int], own: int) -> None:
    """The default process group of `ranks`, which meet in a part of the store that nobody has used."""
    dist.init_process_group(
        backend,
        store=dist.PrefixStore(f"group {generation}", store),
        rank=ranks.index(own),
        world_size=len(ranks),
        timeout=timedelta(seconds=30),
    )


def average_gradients(model: torch.nn.Module) -> None:
    """Averages gradients like DistributedDataParallel, in a step that can be repeated."""
    gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    dist.all_reduce(flat)
    for gradient, part in zip(gradients, torch.split(flat, [one.numel() for one in gradients]), strict=True):
        gradient.copy_(part.view_as(gradient) / dist.get_world_size())


def train(own: int, world: int, port: int, options: argparse.Namespace) -> dict[str, Any]:
    store = dist.TCPStore("127.0.0.1", port, is_master=False)
    ranks, generation = list(range(world)), 0
    gather(options.backend, store, generation, ranks, own)
    torch.manual_seed(0)
    digits = load_digits()
    pixels, labels = torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    losses, said, step = [], "", 0
    while step < options.steps:
        batch = torch.arange(step * 128, step * 128 + 128) % len(labels)
        try:
            if own == options.victim and step == options.steps // 2:
                os.kill(os.getpid(), signal.SIGKILL)
            mine = batch.chunk(len(ranks))[ranks.index(own)]
            loss: Any = torch.nn.functional.cross_entropy(model(pixels[mine]), labels[mine])
            optimizer.zero_grad()
            loss.backward()
            average_gradients(model)
            optimizer.step()
            losses.append(loss.item())
            step += 1
        except RuntimeError as error:
            said = str(error)
            print(f"rank {own}, step {step}: {said}", flush=True)
            generation += 1
            dist.destroy_process_group()
            ranks = agree(store, generation, ranks, own)
            gather(options.backend, store, generation, ranks, own)
            # Some may have ended the step that failed for others: all go on from the state of one that is furthest.
            steps = [0] * len(ranks)
            dist.all_gather_object(steps, step)
            for value in [*model.state_dict().values()]:
                dist.broadcast(value, steps.index(max(steps)))
            step = max(steps)
    dist.destroy_process_group()
    return {"losses": losses, "ranks": ranks, "said": said, "weights": sum(p.sum().item() for p in model.parameters())}


def _worker(own: int, world: int, port: int, options: argparse.Namespace, results: Any) -> None:
    torch.set_num_threads(1)
    results.put((own, train(own, world, port, options)))


def main(arguments: Sequence[str] | None = None) -> dict[int, dict[str, Any]]:
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="commsir")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--victim", type=int, default=2, help="the rank that is killed half-way")
    parser.add_argument("--report", help="file for what each survivor has seen, as JSON")
    options = parser.parse_args(arguments)

    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    context = mp.get_context("forkserver")
    context.set_forkserver_preload(["torch", "torch.distributed", "sklearn.datasets"])
    results = context.Queue()
    workers = [
        context.Process(target=_worker, args=(rank, options.ranks, store.port, options, results))
        for rank in range(options.ranks)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    codes = [worker.exitcode for worker in workers]
    assert codes == [-signal.SIGKILL if rank == options.victim else 0 for rank in range(options.ranks)], codes
    ended = dict(results.get() for _ in range(options.ranks - 1))
    for own, result in sorted(ended.items()):
        losses = result["losses"]
        print(f"rank {own}, one of {result['ranks']}: loss {losses[0]:.3f} to {losses[-1]:.3f}")
    if options.report:
        with open(options.report, "w") as file:
            json.dump(ended, file)
    return ended


if __name__ == "__main__":
    main()
