"""Measures torch's collectives in the same way as comms-bench, and writes the same JSON.

Contenders: NCCL through torch.distributed, symm_mem.one_shot_all_reduce_out and
symm_mem.two_shot_all_reduce_. What torch can only do in place is timed in place, so that its time
includes no copy; the name of the contender says so.
Run on one host with one process per GPU, then show both reports as one:

    torchrun --nproc-per-node 8 test/gpu/bench_torch.py --sizes '1K..64M*4' --json torch.json
    comms-bench --sizes '1K..64M*4' --json ours.json
    comms-bench --show ours.json --show torch.json --svg both.svg

Inputs are random; times are those of the slowest rank. Outputs are poisoned before the timed replays
and checked after them. For calls in place, one more call on fresh inputs is checked.
"""

import argparse
import datetime
import json
import os
import pathlib
import statistics
import sys
from collections.abc import Callable
from typing import Any

# Baselines must not use multicast; NCCL and torch read these when they start.
os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
os.environ.setdefault("TORCH_SYMM_MEM_DISABLE_MULTICAST", "1")

TYPES = ("bf16", "f16", "f32")
OPERATIONS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast")
# Relative error of one rounding to the type.
ROUNDOFF = {"bf16": 2.0**-8, "f16": 2.0**-11, "f32": 2.0**-24}
# Beyond all inputs and their sums, in every type.
POISON = 30000.0


def parse_size(text: str) -> int:
    """'64K' → 65536; ValueError when it is not a size."""
    shift = {"K": 10, "M": 20, "G": 30}.get(text[-1:].upper(), 0)
    value = int(text[:-1] if shift else text)
    if value <= 0:
        raise ValueError(text)
    return value << shift


def parse_sizes(text: str) -> list[int]:
    """The sizes of comms-bench --sizes: '4K', '1K..64M', '1K..64M*4', and lists of these."""
    sizes: list[int] = []
    for part in text.split(","):
        first, dots, rest = part.strip().partition("..")
        last, _, step = rest.partition("*")
        try:
            low = parse_size(first)
            high = parse_size(last) if dots else low
            factor = int(step) if step else 2
            if factor < 2 or high < low:
                raise ValueError(part)
        except ValueError:
            raise argparse.ArgumentTypeError(
                f"'{part}' is not a size or a range; write 4K, 1K..64M or 1K..64M*4"
            ) from None
        while low <= high:
            sizes.append(low)
            low *= factor
    return sizes


def parse_names(known: tuple[str, ...]) -> Callable[[str], list[str]]:
    """A reader of lists of names out of `known`, or 'all'."""

    def read(text: str) -> list[str]:
        names = list(known) if text == "all" else [name.strip() for name in text.split(",")]
        for name in names:
            if name not in known:
                raise argparse.ArgumentTypeError(f"'{name}' is not one of {', '.join(known)}")
        return names

    return read


def at_least_one(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return value


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--op", type=parse_names(OPERATIONS), default=["all_reduce"])
    parser.add_argument("--sizes", type=parse_sizes, default=parse_sizes("1K..64M*4"))
    parser.add_argument("--types", type=parse_names(TYPES), default=["bf16"])
    parser.add_argument("--calls", type=at_least_one, default=60)
    parser.add_argument("--replays", type=at_least_one, default=9)
    parser.add_argument("--repetitions", type=at_least_one, default=5)
    parser.add_argument("--eager", action="store_true", help="no CUDA graph")
    parser.add_argument("--json", type=pathlib.Path, help="report to write, by rank 0")
    return parser.parse_args()


class Contender:
    """One way to do an operation on tensors of its own."""

    def __init__(self, name: str, registered: bool, call: Callable[[], Any], output: Any, in_place: bool) -> None:
        self.name = name + (" (in place)" if in_place else "")
        self.registered = registered
        self.call = call
        # Where the result appears; in place, where the input is put before.
        self.output = output
        self.in_place = in_place
        self.replay: Callable[[], object] = call
        self.samples: list[list[float]] = []
        self.status, self.message = "ok", ""
        self.exact = True

    def fail(self, status: str, message: str) -> None:
        self.status, self.message, self.samples = status, message, []


class Bench:
    """The measuring loop of one process."""

    def __init__(self, options: argparse.Namespace) -> None:
        import torch
        import torch.distributed

        self.torch: Any = torch
        self.dist: Any = torch.distributed
        self.options = options
        self.rank, self.ranks = self.dist.get_rank(), self.dist.get_world_size()
        self.device = torch.device("cuda", torch.cuda.current_device())
        self.stream = self.torch.cuda.Stream()
        self.types = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}

    def make_inputs(self, count: int, kind: str) -> list[Any]:
        """Every rank's input, the same on all ranks: floats in [-1, 1)."""
        inputs = []
        for rank in range(self.ranks):
            generator = self.torch.Generator(self.device).manual_seed(1000 + rank)
            values = self.torch.rand(count, generator=generator, device=self.device) * 2 - 1
            inputs.append(values.to(self.types[kind]))
        return inputs

    def expected(self, op: str, inputs: list[Any], kind: str) -> tuple[Any, Any]:
        """What this rank has to get, and how far sums may lie from it (0 for copies)."""
        count = inputs[0].numel()
        part = slice(self.rank * count // self.ranks, (self.rank + 1) * count // self.ranks)
        if op in ("all_reduce", "reduce_scatter"):
            where = part if op == "reduce_scatter" else slice(None)
            total = inputs[0][where].float()
            size = total.abs()
            for other in inputs[1:]:
                total = total + other[where].float()
                size = size + other[where].float().abs()
            return total.to(self.types[kind]), size * (ROUNDOFF[kind] * (self.ranks + 1))
        if op == "all_gather":
            return self.torch.cat(inputs), 0
        if op == "all_to_all":
            return self.torch.cat([other[part] for other in inputs]), 0
        return inputs[0], 0

    def nccl(self, op: str, mine: Any) -> Contender:
        dist, torch = self.dist, self.torch
        count = mine.numel()
        length = {"all_gather": count * self.ranks, "reduce_scatter": count // self.ranks}
        out = torch.empty(length.get(op, count), dtype=mine.dtype, device=self.device)

        calls: dict[str, Callable[[], Any]] = {
            "all_reduce": lambda: dist.all_reduce(out),
            "broadcast": lambda: dist.broadcast(out, 0),
            "all_gather": lambda: dist.all_gather_into_tensor(out, mine),
            "reduce_scatter": lambda: dist.reduce_scatter_tensor(out, mine),
            "all_to_all": lambda: dist.all_to_all_single(out, mine),
        }
        in_place = op in ("all_reduce", "broadcast")
        return Contender("torch nccl", False, calls[op], out, in_place)

    def symmetric(self, mine: Any) -> list[Contender]:
        """torch's own kernels over symmetric memory."""
        import torch.distributed._symmetric_memory as symm_mem

        torch, group = self.torch, self.dist.group.WORLD.group_name
        ops = torch.ops.symm_mem

        def allocate() -> Any:
            tensor = symm_mem.empty(mine.numel(), dtype=mine.dtype, device=self.device)
            symm_mem.rendezvous(tensor, group)
            return tensor

        source, inout = allocate(), allocate()
        source.copy_(mine)
        result = torch.empty_like(mine)

        def one_shot() -> Any:
            return ops.one_shot_all_reduce_out(source, "sum", group, result)

        def two_shot() -> Any:
            return ops.two_shot_all_reduce_(inout, "sum", group)

        return [
            Contender("torch symm_mem one_shot", True, one_shot, result, False),
            Contender("torch symm_mem two_shot", True, two_shot, inout, True),
        ]

    def agree(self, failure: str) -> str:
        """The first failure of any rank, so that all ranks go on or stop together."""
        failures: list[str] = [""] * self.ranks
        self.dist.all_gather_object(failures, failure)
        return next((f"rank {i}: {text}" for i, text in enumerate(failures) if text), "")

    def attempt(self, contender: Contender, work: Callable[[], object]) -> bool:
        """Does `work` on all ranks; a contender that fails on one keeps the reason."""
        failure = ""
        try:
            work()
            self.stream.synchronize()
        except (RuntimeError, AttributeError) as error:
            failure = str(error).splitlines()[0] or type(error).__name__
        if failure := self.agree(failure):
            contender.fail("failed", failure)
        return not failure

    def prepare(self, contender: Contender) -> None:
        """Warms up and captures."""
        torch = self.torch

        def call_often(times: int) -> None:
            for _ in range(times):
                contender.call()

        def warm_up() -> None:
            with torch.cuda.stream(self.stream):
                call_often(3)

        if not self.attempt(contender, warm_up):
            return
        if self.options.eager:
            contender.replay = lambda: call_often(self.options.calls)
            return
        graph = torch.cuda.CUDAGraph()

        def capture() -> None:
            with torch.cuda.graph(graph, stream=self.stream):
                call_often(self.options.calls)

        if self.attempt(contender, capture):
            contender.replay = graph.replay

    def take_turn(self, contender: Contender, mine: Any, want: Any, allowed: Any) -> None:
        """Poison, a replay that warms up, timed replays, check."""
        torch = self.torch
        if not contender.in_place:
            contender.output.fill_(POISON)
        times = []
        for replay in range(-1, self.options.replays):
            if contender.in_place:
                contender.output.copy_(mine)
            start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            self.dist.barrier()
            torch.cuda.synchronize()
            with torch.cuda.stream(self.stream):
                start.record()
                contender.replay()
                stop.record()
            self.stream.synchronize()
            if replay >= 0:
                times.append(start.elapsed_time(stop) * 1000 / self.options.calls)
        slowest = torch.tensor(times, dtype=torch.float64, device=self.device)
        self.dist.all_reduce(slowest, op=self.dist.ReduceOp.MAX)
        contender.samples.append(slowest.tolist())
        if contender.in_place:
            contender.output.copy_(mine)
            torch.cuda.synchronize()
            self.dist.barrier()
            with torch.cuda.stream(self.stream):
                contender.call()
            self.stream.synchronize()
        self.check(contender, want, allowed)

    def check(self, contender: Contender, want: Any, allowed: Any) -> None:
        got = contender.output
        right = got == want
        close = right | ((got.float() - want.float()).abs() <= allowed)
        failure = ""
        if not bool(close.all()):
            i = int((~close).nonzero()[0])
            failure = f"element {i}: got {got[i].item()}, expected {want[i].item()}"
        exact = [True] * self.ranks
        self.dist.all_gather_object(exact, bool(right.all()))
        contender.exact &= all(exact)
        if failure := self.agree(failure):
            contender.fail("wrong", failure)

    def measure(self, op: str, kind: str, size: int) -> list[dict[str, Any]]:
        """Entries of one operation, type and size."""
        count = size // self.torch.empty(0, dtype=self.types[kind]).element_size()
        if count == 0 or count % self.ranks:
            raise ValueError(f"{op}: {size} bytes of {kind} cannot be cut into {self.ranks} parts")
        inputs = self.make_inputs(count, kind)
        want, allowed = self.expected(op, inputs, kind)
        mine = inputs[self.rank].clone()
        del inputs
        contenders = [self.nccl(op, mine)]
        if op == "all_reduce":
            try:
                contenders += self.symmetric(mine)
            except (RuntimeError, ImportError, AttributeError) as error:
                print(f"no symmetric memory: {error}", file=sys.stderr)
        for contender in contenders:
            self.prepare(contender)
        for turn in range(self.options.repetitions):
            for i in range(len(contenders)):
                contender = contenders[(i + turn) % len(contenders)]
                if contender.status == "ok":
                    self.take_turn(contender, mine, want, allowed)
        return [
            {
                "op": op,
                "type": kind,
                "bytes": size,
                "contender": contender.name,
                "baseline": True,
                "registered": contender.registered,
                "status": contender.status,
                "message": contender.message,
                "exact": contender.exact and contender.status == "ok",
                "samples_us": contender.samples,
            }
            for contender in contenders
        ]

    def header(self) -> dict[str, Any]:
        torch, options = self.torch, self.options
        names = [torch.cuda.get_device_name(i) for i in range(self.ranks)]
        kinds = [f"{names.count(name)} x {name}" for name in sorted(set(names))]
        return {
            "target": "cuda",
            "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
            "commsir": "",
            "device": ", ".join(kinds),
            "driver": "",
            "nccl": ".".join(map(str, torch.cuda.nccl.version())) + " (torch's)",
            "torch": torch.__version__,
            "ranks": self.ranks,
            "mode": "eager" if options.eager else "graph",
            "in_place": False,
            "calls": options.calls,
            "replays": options.replays,
            "repetitions": options.repetitions,
            "command": " ".join(["bench_torch.py", *sys.argv[1:]]),
        }

    def run(self) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = []
        options = self.options
        for op in options.op:
            for kind in options.types:
                for size in options.sizes:
                    added = self.measure(op, kind, size)
                    entries += added
                    if self.rank == 0:
                        for entry in added:
                            print(describe(entry), file=sys.stderr, flush=True)
        return entries


def describe(entry: dict[str, Any]) -> str:
    head = f"{entry['op']} {entry['bytes']} B {entry['type']} {entry['contender']}:"
    if entry["status"] != "ok":
        return f"{head} {entry['status'].upper()}: {entry['message']}"
    median = statistics.median(time for turn in entry["samples_us"] for time in turn)
    return f"{head} {median:.2f} us"


def main() -> int:
    options = parse_arguments()
    try:
        import torch
        import torch.distributed as dist
    except ImportError:
        print("bench_torch.py: error: torch is missing; pip install torch", file=sys.stderr)
        return 2
    if "RANK" not in os.environ:
        print("bench_torch.py: error: run it under torchrun --nproc-per-node GPUS", file=sys.stderr)
        return 2
    local = int(os.environ.get("LOCAL_RANK", "0"))
    if local >= torch.cuda.device_count():
        print(f"bench_torch.py: error: there is no GPU {local}", file=sys.stderr)
        return 2
    torch.cuda.set_device(local)
    dist.init_process_group("nccl", device_id=torch.device("cuda", local))
    try:
        bench = Bench(options)
        entries = bench.run()
        report = {
            "format": "commsir-bench",
            "version": 1,
            "header": bench.header(),
            "results": entries,
        }
        if bench.rank == 0 and options.json:
            options.json.write_text(json.dumps(report, indent=1) + "\n")
    finally:
        dist.destroy_process_group()
    return 1 if any(entry["status"] == "wrong" for entry in entries) else 0


if __name__ == "__main__":
    sys.exit(main())
