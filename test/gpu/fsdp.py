"""A training step of FSDP2 over CommsIR and over another backend: the steady state, and the first step of a process.

    torchrun --nproc-per-node 4 test/gpu/fsdp.py [--layers 12] [--width 4096] [--rows 2] [--tokens 2048] [--steps 20]

Steady state: one process has two equal models, each sharded over its own group. Their steps take turns, so that
clocks and neighbors are the same for both. First step: each measurement takes a fresh process. A process that is not
measured runs before it, so that torch's libraries are in the page cache. The backends take turns, with an empty cache
of kernels ("cold") and with the cache of the previous process ("warm"); NCCL has no such cache. Prints milliseconds
(seconds for first steps) of the slowest rank: the median, minimum and maximum. The losses of both backends are
compared.
"""

from __future__ import annotations

import argparse
import datetime
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

dist: Any = torch.distributed
cuda: Any = torch.cuda

#: Heads have so many elements.
HEAD = 128
#: Relative difference of losses, which are means over bf16 results.
TOLERANCE = 2e-2


class Layer(nn.Module):
    """A decoder layer: attention, and a feed-forward network of three matrices."""

    def __init__(self, width: int) -> None:
        super().__init__()
        hidden = width * 8 // 3 // 256 * 256
        self.norms = nn.ModuleList(nn.RMSNorm(width) for _ in range(2))
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.up = nn.Linear(width, 2 * hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, tokens, width = x.shape
        parts = self.qkv(self.norms[0](x)).view(rows, tokens, 3, width // HEAD, HEAD).permute(2, 0, 3, 1, 4)
        heads = F.scaled_dot_product_attention(parts[0], parts[1], parts[2], is_causal=True)
        x = x + self.out(heads.transpose(1, 2).reshape(rows, tokens, width))
        gate, up = self.up(self.norms[1](x)).chunk(2, dim=-1)
        result: torch.Tensor = x + self.down(F.silu(gate) * up)
        return result


class Trainer:
    """A sharded model, its optimizer and its data."""

    def __init__(self, group: Any, options: argparse.Namespace) -> None:
        torch.manual_seed(1)
        mesh = DeviceMesh.from_group(group, "cuda")
        with torch.device("cuda"):
            layers = [Layer(options.width) for _ in range(options.layers)]
            torch.manual_seed(2 + dist.get_rank())
            self.x = torch.randn(options.rows, options.tokens, options.width)
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16)
        self.model = nn.Sequential(*layers)
        for layer in layers:
            fully_shard(layer, mesh=mesh, mp_policy=policy)
        fully_shard(self.model, mesh=mesh, mp_policy=policy)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, foreach=True)

    def step(self) -> torch.Tensor:
        loss: Any = self.model(self.x).float().square().mean()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        detached: torch.Tensor = loss.detach()
        return detached

    def timed(self) -> tuple[float, float]:
        """Seconds of a step from when this rank is here, and the loss."""
        cuda.synchronize()
        start = time.perf_counter()
        loss = self.step()
        cuda.synchronize()
        return time.perf_counter() - start, float(loss)


def _begin(backend: str) -> None:
    import commsir.torch

    cuda.set_device(int(os.environ["LOCAL_RANK"]))
    commsir.torch.register()
    dist.init_process_group(backend, timeout=datetime.timedelta(minutes=5))


def _meet(name: str) -> None:
    """Waits for the other ranks without a collective: the first one is a part of what is measured."""
    store, size = dist.distributed_c10d._get_default_store(), dist.get_world_size()
    store.add(name, 1)
    while store.add(name, 0) < size:
        time.sleep(1e-3)


def first_step(backend: str, options: argparse.Namespace) -> None:
    """Prints the seconds of the first step of this process."""
    _begin(backend)
    trainer = Trainer(dist.group.WORLD, options)
    _meet("first step")
    taken, loss = trainer.timed()
    assert loss == loss, "the loss is not a number"
    print(taken, flush=True)
    os._exit(0)  # The end of the groups is not measured.


class _Ports:
    """Free ports that rank 0 finds, alike on all ranks, by torchrun's store."""

    def __init__(self) -> None:
        host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        self.store, self.taken = dist.TCPStore(host, port, is_master=False), 0

    def next(self) -> int:
        key = f"commsir/first/{self.taken}"
        self.taken += 1
        if int(os.environ["RANK"]) == 0:
            with socket.socket() as free:
                free.bind(("", 0))
                self.store.set(key, str(free.getsockname()[1]))
        return int(self.store.get(key))


def measure_first(backend: str, port: int, cache: Path) -> float:
    """In a process of its own, next to those of the other ranks."""
    environment = {**os.environ, "MASTER_PORT": str(port), "COMMSIR_CACHE_DIR": str(cache)}
    environment.pop("TORCHELASTIC_USE_AGENT_STORE", None)
    command = [sys.executable, *sys.argv, "--first", backend]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        raise SystemExit(f"{backend}: {done.stderr}")
    return float(done.stdout.splitlines()[-1])


def first_steps(options: argparse.Namespace) -> dict[str, list[float]]:
    """Seconds by backend and cache."""
    port, ports = int(os.environ.get("MASTER_PORT", "29500")), _Ports()
    names = ("commsir", options.baseline, "commsir")
    heads = ("commsir, first step, cold", f"{options.baseline}, first step", "commsir, first step, warm")
    found: dict[str, list[float]] = {head: [] for head in heads}
    # All ranks of a host share a cache.
    folder = Path(tempfile.gettempdir()) / f"commsir-fsdp-{port}-{os.environ.get('TORCHELASTIC_RUN_ID', 'none')}"
    if options.firsts:
        # Brings torch's libraries into the memory of the host.
        measure_first(options.baseline, ports.next(), folder)
    for turn in range(options.firsts):
        for name, head in zip(names, heads, strict=True):
            found[head].append(measure_first(name, ports.next(), folder / str(turn)))
            if int(os.environ["RANK"]) == 0:
                print(f"{head}, of rank 0: {found[head][-1]:.2f} s", file=sys.stderr, flush=True)
    if int(os.environ["LOCAL_RANK"]) == 0:
        shutil.rmtree(folder, ignore_errors=True)
    return {head: times for head, times in found.items() if times}


def slowest(times: list[float]) -> list[float]:
    """Of each measurement the time of the slowest rank."""
    every = torch.tensor(times, device="cuda", dtype=torch.float64)
    dist.all_reduce(every, op=dist.ReduceOp.MAX)
    return [float(one) for one in every]


def steady(options: argparse.Namespace) -> dict[str, list[float]]:
    """Milliseconds by backend; their steps take turns."""
    names = ("commsir", options.baseline)
    trainers = {name: Trainer(dist.new_group(backend=name), options) for name in names}
    found: dict[str, list[float]] = {name: [] for name in trainers}
    for turn in range(options.steps + 3):
        losses = []
        order = list(trainers.items())
        for name, trainer in order if turn % 2 else reversed(order):
            dist.barrier()
            taken, loss = trainer.timed()
            losses.append(loss)
            if turn >= 3:
                found[name].append(taken * 1e3)
        worst = abs(losses[0] - losses[1]) / max(abs(losses[0]), 1e-9)
        if not worst <= TOLERANCE:
            raise SystemExit(f"step {turn}: the losses are {losses}")
    return found


def show(found: dict[str, list[float]], unit: str) -> None:
    for name, each in found.items():
        times = slowest(each)
        if dist.get_rank() == 0:
            print(
                f"{name:28} {statistics.median(times):8.2f} {unit} ({min(times):.2f} to {max(times):.2f})", flush=True
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--baseline", default="nccl", help="the other backend [nccl]")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=4096)
    parser.add_argument("--rows", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=2048)
    parser.add_argument("--steps", type=int, default=20, help="measured steps of the steady state [20]")
    parser.add_argument("--firsts", type=int, default=2, help="first steps for each backend and cache; 0: none [2]")
    parser.add_argument("--first", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.first:
        first_step(options.first, options)
    firsts = first_steps(options)
    _begin("nccl")  # Only measures.
    show(firsts, "s")
    show(steady(options), "ms")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
