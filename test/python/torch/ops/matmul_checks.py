"""The ranks' part of test_matmul.py on the CPU, or, by CHECK_DEVICE, of test/gpu/matmul.py on GPUs."""

from __future__ import annotations

import contextlib
import itertools
import math
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import commsir.torch.compile as fusing
import commsir.torch.matmul.graph as matmul_graph
import torch
import torch.distributed
import torch.distributed._functional_collectives as funcol
from commsir.torch.matmul import model, overlapped
from commsir.torch.matmul import ops as matmuls
from commsir.torch.matmul.sums import Sums
from compile_checks import DEVICE, _compare, _compiled, _tensor

dist: Any = torch.distributed
#: Of the compiled functions: rows of each rank, columns of the model and of what a rank has of them.
ROWS, WIDTH, OWN = 12, 32, 16


def _near(got: torch.Tensor, want: torch.Tensor, k: int) -> None:
    """`want` in float64; a partial sum is rounded on each rank."""
    assert got.shape == want.shape
    eps = torch.finfo(got.dtype).eps
    most = float(want.abs().max()) if want.numel() else 0.0
    bound = 4 * eps * dist.get_world_size() * max(most, k**0.5)
    worst = float((got.double() - want).abs().max()) if want.numel() else 0.0
    assert worst <= bound, f"{worst} off, {bound} allowed"


def _all(x: torch.Tensor) -> list[torch.Tensor]:
    """Every rank's, in float64."""
    given = x.double().contiguous()
    parts = [torch.empty_like(given) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, given)
    return parts


def products(rank: int, size: int, dtype: torch.dtype, shape: tuple[int, ...], columns: int) -> None:
    """The three ops against float64, with weights that lie in memory either way; twice, as memory is used again."""
    k = shape[-1]
    for turn in range(2):
        x = _tensor(rank, *shape, dtype=dtype, seed=turn)
        weights = [_tensor(0, k, columns, dtype=dtype, seed=7), _tensor(0, columns, k, dtype=dtype, seed=8).t()]
        bias = _tensor(0, columns, dtype=dtype, seed=9)
        rows = torch.cat(_all(x))
        made = matmuls.all_gather_matmul(x, weights, [None, bias])
        for got, weight, added in zip(made, weights, (0.0, bias.double()), strict=True):
            _near(got, rows @ weight.double() + added, k)
        for own in weights:
            part = _tensor(rank, k, columns, dtype=dtype, seed=20 + turn) if own is weights[0] else own
            total = sum(_all(x.double() @ part.double()))
            assert isinstance(total, torch.Tensor)
            everywhere = matmuls.matmul_all_reduce(x, part)
            _near(everywhere, total, k)
            assert len({one.cpu().numpy().tobytes() for one in _all(everywhere)}) == 1, "ranks have other bits"
            if shape[0] % size == 0:
                _near(matmuls.matmul_reduce_scatter(x, part), total.chunk(size)[rank], k)


def _scaled_sum(x: torch.Tensor, w: torch.Tensor, row_scale: torch.Tensor, scale: torch.Tensor) -> Any:
    """A matmul of fp8 with scales, whose results are summed up."""
    narrow = [one.to(torch.float8_e4m3fn) for one in (x, w)]
    given = {"row_scale": row_scale, "scale": scale, "dtype": torch.float32}
    name = dist.group.WORLD.group_name
    return torch.ops.commsir.matmul_all_reduce(*narrow, name, **given)


def mistakes(rank: int, size: int) -> list[str]:
    """What is said of calls that are wrong."""
    x, w = (_tensor(0, *shape, dtype=torch.float32) for shape in ((6, 8), (8, 4)))
    calls: list[Callable[[], Any]] = [
        lambda: matmuls.all_gather_matmul(x, [w.t()]),
        lambda: matmuls.matmul_all_reduce(x[0], w),
        lambda: matmuls.matmul_all_reduce(x, w.double()),
        lambda: matmuls.matmul_reduce_scatter(x[: size + 1], w),
        lambda: matmuls.matmul_all_reduce(x, w.clone().requires_grad_()),
        lambda: matmuls.matmul_all_reduce(x.to(torch.float8_e4m3fn), w.to(torch.float8_e4m3fn)),
        lambda: matmuls.all_gather_matmul(x, [w], [x[0]]),
        lambda: matmuls.all_gather_matmul(x, [w], [None, None]),
        lambda: _scaled_sum(x, w, torch.ones(6, 2), torch.ones(1, 4)),
        lambda: _scaled_sum(x, w, torch.ones(6, 1), torch.ones(2, 4)),
    ]
    said = []
    for call in calls:
        try:
            call()
            said.append("nothing")
        except RuntimeError as error:
            said.append(str(error))
    return said


# ---------------------------------------------------------------------------------------------------------------------
# Ranks as threads
# ---------------------------------------------------------------------------------------------------------------------


class _Space:
    """A workspace whose symmetric memory is that of this process."""

    def __init__(self, rank: int, ranks: int, shared: dict[Any, Any]) -> None:
        self.rank, self.ranks, self.shared = rank, ranks, shared
        self.sums: Sums = shared["sums", rank]

    def own(self, shape: Any, dtype: torch.dtype) -> torch.Tensor:
        made: torch.Tensor = self.shared[self.rank][: math.prod(shape) * dtype.itemsize].view(dtype).view(*shape)
        return made

    def steps(self) -> list[tuple[int, int]]:
        return overlapped.Workspace.steps(self)  # type: ignore[arg-type]

    def place(self, rank: int, place: torch.Tensor) -> torch.Tensor:
        """The same place in a rank's memory."""
        begin = place.data_ptr() - self.shared[self.rank].data_ptr()
        there = self.shared[rank][begin : begin + place.nbytes]
        return torch.Tensor(there.view(place.dtype).view(place.shape))


class _Copies:
    """The copies and signals of a call among threads."""

    def __init__(self, space: _Space) -> None:
        self.space = space
        space.shared["met"].wait(20)

    def put(self, rank: int, place: torch.Tensor, value: torch.Tensor, block: int) -> None:
        self.space.place(rank, place).copy_(value)
        self.space.shared[rank, self.space.rank, block, 0].release()

    def tell(self, block: int) -> None:
        for rank, _ in self.space.steps():
            self.space.shared[rank, self.space.rank, block, 1].release()

    def wait(self, rank: int, block: int, half: int = 0) -> None:
        assert self.space.shared[self.space.rank, rank, block, half].acquire(timeout=20), "no signal"

    def wait_for_all(self, block: int, half: int = 0) -> None:
        for _, rank in self.space.steps():
            self.wait(rank, block, half)

    def fetch(self, rank: int, place: torch.Tensor, out: torch.Tensor) -> None:
        out.copy_(self.space.place(rank, place))

    def end(self, fetches: bool = False) -> None:
        self.space.shared["met"].wait(20)


@contextlib.contextmanager
def threads_for_ranks(monkeypatch: Any, ranks: int) -> Iterator[Callable[[Callable[[Any], Any]], list[Any]]]:
    """Has the overlapped ways run among threads; gives what runs a function on each."""
    monkeypatch.setattr(overlapped, "_Call", _Copies)
    shared: dict[Any, Any] = {"met": threading.Barrier(ranks)}
    for rank in range(ranks):
        shared[rank] = torch.empty(1 << 18, dtype=torch.uint8)
        shared["sums", rank] = Sums(f"rank {rank}", torch.device("cpu"))
    for key in itertools.product(range(ranks), range(ranks), range(overlapped.MOST_BLOCKS), range(2)):
        shared[key] = threading.Semaphore(0)
    with ThreadPoolExecutor(ranks) as pool:
        yield lambda call: list(pool.map(lambda rank: call(_Space(rank, ranks, shared)), range(ranks)))


# ---------------------------------------------------------------------------------------------------------------------
# Compiled
# ---------------------------------------------------------------------------------------------------------------------


def column_parallel(x: Any, w: Any, v: Any) -> Any:
    """Sequence parallel: rows are gathered for one matmul."""
    return torch.relu(funcol.all_gather_tensor(x, 0, dist.group.WORLD) @ w)


def three_readers(x: Any, w: Any, v: Any) -> Any:
    """As q, k and v, one with a bias."""
    rows = funcol.all_gather_tensor(x, 0, dist.group.WORLD)
    return rows @ w, torch.nn.functional.linear(rows, w.t(), w[0]), rows @ w.abs()


def rows_are_kept(x: Any, w: Any, v: Any) -> Any:
    """Somebody else reads the rows, too."""
    rows = funcol.all_gather_tensor(x, 0, dist.group.WORLD)
    return rows @ w, rows.sum(0)


def of_three_dimensions(x: Any, w: Any, v: Any) -> Any:
    """A batch of sequences."""
    return funcol.all_gather_tensor(x.view(4, -1, WIDTH), 0, dist.group.WORLD) @ w


def row_parallel(x: Any, w: Any, v: Any) -> Any:
    """A matmul whose rows are summed up and shared out, and a norm."""
    return torch.nn.functional.rms_norm(funcol.reduce_scatter_tensor(x @ w, "sum", 0, dist.group.WORLD), (OWN,))


def all_rows(x: Any, w: Any, v: Any) -> Any:
    """A matmul whose rows every rank gets."""
    return funcol.all_reduce(x @ w, "sum", dist.group.WORLD)


def a_layer(x: Any, w: Any, v: Any) -> Any:
    """Both sides of a feed-forward layer."""
    h = torch.relu(funcol.all_gather_tensor(x, 0, dist.group.WORLD) @ w)
    return funcol.reduce_scatter_tensor(h @ v, "sum", 0, dist.group.WORLD) + x


def product_is_read_twice(x: Any, w: Any, v: Any) -> Any:
    """The part of this rank alone is needed, too: the matmul stays."""
    part = x @ w
    return funcol.all_reduce(part, "sum", dist.group.WORLD), part.sum(0)


def rows_by_themselves(x: Any, w: Any, v: Any) -> Any:
    """The gathered rows are the weight, too: the matmul stays."""
    rows = funcol.all_gather_tensor(x, 0, dist.group.WORLD)
    return rows @ rows.t()


def largest(x: Any, w: Any, v: Any) -> Any:
    """No sum: the matmul stays."""
    return funcol.all_reduce(x @ w, "max", dist.group.WORLD)


def batches(x: Any, w: Any, v: Any) -> Any:
    """A matmul for each batch, by one weight."""
    return funcol.all_reduce(torch.bmm(x.view(4, -1, WIDTH), w.expand(4, WIDTH, OWN)), "sum", dist.group.WORLD)


def gathered_batches(x: Any, w: Any, v: Any) -> Any:
    """The same with rows of all ranks."""
    rows = funcol.all_gather_tensor(x.view(4, -1, WIDTH), 0, dist.group.WORLD)
    return torch.bmm(rows, w[None].expand(rows.shape[0], WIDTH, OWN))


def scattered_batches(x: Any, w: Any, v: Any) -> Any:
    """Rows of fewer batches than ranks are shared out."""
    made = torch.bmm(x.view(3, -1, WIDTH), w.expand(3, WIDTH, OWN)).view(-1, OWN)
    return funcol.reduce_scatter_tensor(made, "sum", 0, dist.group.WORLD)


def _experts(w: Any, count: int) -> Any:
    return w * torch.arange(1, count + 1, dtype=w.dtype, device=w.device).view(-1, 1, 1)


def gathered_sequence(x: Any, w: Any, v: Any) -> Any:
    """Positions of each sequence are gathered for two matmuls, and something else reads them."""
    rows = funcol.all_gather_tensor(x.view(3, -1, WIDTH), 1, dist.group.WORLD)
    return rows @ w, rows @ (w * 2), rows.sum(1)


def scattered_sequence(x: Any, w: Any, v: Any) -> Any:
    """Sums of positions are shared out."""
    made = (x.view(3, -1, WIDTH) @ w).sin() @ v
    return funcol.reduce_scatter_tensor(made, "sum", 1, dist.group.WORLD)


def sequence_layer(x: Any, w: Any, v: Any) -> Any:
    """Both, as DTensor writes a feed-forward layer with sequence parallelism."""
    rows = funcol.all_gather_tensor(x.view(3, -1, WIDTH), 1, dist.group.WORLD)
    return funcol.reduce_scatter_tensor(torch.relu(rows @ w) @ v, "sum", 1, dist.group.WORLD)


def experts(x: Any, w: Any, v: Any) -> Any:
    """A weight for each expert."""
    return funcol.all_reduce(torch.bmm(x.view(4, -1, WIDTH), _experts(w, 4)), "sum", dist.group.WORLD)


def gathered_experts(x: Any, w: Any, v: Any) -> Any:
    """The same with rows of all ranks."""
    rows = funcol.all_gather_tensor(x.view(4, -1, WIDTH), 0, dist.group.WORLD)
    return torch.bmm(rows, _experts(w, rows.shape[0]))


def batches_elsewhere(x: Any, w: Any, v: Any) -> Any:
    """Rows that lie in other places: the matmul stays."""
    rows = x.view(-1, 4, WIDTH).transpose(0, 1)
    return funcol.all_reduce(torch.bmm(rows, w.expand(4, WIDTH, OWN)), "sum", dist.group.WORLD)


def _fp8(x: Any, scale: float) -> Any:
    return (x / scale).to(torch.float8_e4m3fn)


def _scaled(rows: Any, w: Any, dtype: torch.dtype = torch.float32) -> Any:
    """A matmul of fp8 with one scale for each side. The weight lies by columns, as GPUs want it."""
    one = torch.ones((), device=w.device)
    weight = _fp8(w, 0.5).t().contiguous().t()
    return torch._scaled_mm(rows, weight, one * 0.25, one * 0.5, out_dtype=dtype)


def scaled(x: Any, w: Any, v: Any) -> Any:
    """fp8 travels."""
    return torch.relu(_scaled(funcol.all_gather_tensor(_fp8(x, 0.25), 0, dist.group.WORLD), w))


def summed_scaled(x: Any, w: Any, v: Any) -> Any:
    """A product of fp8 whose rows are summed up."""
    return funcol.all_reduce(_scaled(_fp8(x, 0.25), w), "sum", dist.group.WORLD)


def scattered_scaled(x: Any, w: Any, v: Any) -> Any:
    """The same, shared out."""
    return funcol.reduce_scatter_tensor(_scaled(_fp8(x, 0.25), w), "sum", 0, dist.group.WORLD)


def exchanged_scaled(x: Any, w: Any, v: Any) -> Any:
    """fp8 is exchanged on the way there, and products of it on the way back."""
    rows = funcol.all_to_all_single(_fp8(x, 0.25), None, None, dist.group.WORLD)
    back = funcol.all_to_all_single(_scaled(rows, w).sin(), None, None, dist.group.WORLD)
    return back + 1


def _scaled_rows(rows: Any, row_scale: Any, w: Any) -> Any:
    """A scale for each row and column. torch has no such matmul on CPUs, where it is compiled into the ops alone."""
    weight, scale = _fp8(w, 0.5).t().contiguous().t(), w.abs().amax(0, keepdim=True)
    if torch.compiler.is_compiling() or rows.is_cuda:
        return torch._scaled_mm(rows, weight, row_scale, scale, out_dtype=torch.float32)
    return rows.float() @ weight.float() * row_scale * scale


def gathered_with_scales(x: Any, w: Any, v: Any) -> Any:
    """Rows are quantized one by one, and gathered with their scales."""
    scale = x.abs().amax(1, keepdim=True)
    rows = funcol.all_gather_tensor(_fp8(x, scale), 0, dist.group.WORLD)
    return _scaled_rows(rows, funcol.all_gather_tensor(scale, 0, dist.group.WORLD), w)


def gathered_scales_are_kept(x: Any, w: Any, v: Any) -> Any:
    """Something else reads the scales, too: the matmul stays. On CPUs all ranks have one scale."""
    scale = x.abs().amax().view(1)
    rows = funcol.all_gather_tensor(_fp8(x, scale), 0, dist.group.WORLD)
    scales = funcol.all_gather_tensor(scale, 0, dist.group.WORLD)
    weight = _fp8(w, 0.5).t().contiguous().t()
    return torch._scaled_mm(rows, weight, scales.amax(), scales.amin(), out_dtype=torch.float32), scales


def summed_with_scales(x: Any, w: Any, v: Any) -> Any:
    """The same of a product that is summed up."""
    scale = x.abs().amax(1, keepdim=True)
    return funcol.all_reduce(_scaled_rows(_fp8(x, scale), scale, w), "sum", dist.group.WORLD)


def _wide(scale: Any, rows: int, columns: int) -> Any:
    """A scale for each element of a matrix."""
    return scale.repeat_interleave(rows, 0).repeat_interleave(columns, 1)


def _by_columns(scale: Any) -> Any:
    """The same scales, as torch has those of blocks."""
    return scale.t().contiguous().t()


def _in_blocks(x: Any) -> Any:
    """Rows of 256 columns in fp8, and a scale for every 128 of each."""
    many = torch.cat([x * (part + 1) for part in range(8)], 1)
    scale = many.view(-1, 2, 128).abs().amax(2)
    return _fp8(many, _wide(scale, 1, 128)), scale


def _weight_in_blocks(w: Any, blocks: int = 2) -> Any:
    """A weight of 256 rows and 128 x `blocks` columns, by columns, and scales of 128 by 128."""
    weight = _fp8(w.repeat(8, 8 * blocks), 0.5).t().contiguous().t()
    return weight, (torch.arange(2 * blocks, dtype=torch.float32, device=w.device) + 1).view(2, blocks) / 8


def _multiplied_in_blocks(rows: Any, row_scale: Any, weight: Any, scale: Any) -> Any:
    """The same as torch's matmul with scales of blocks, which CPUs do not have."""
    columns = 1 if scale.shape[1] == weight.shape[1] else 128
    return (rows.float() * _wide(row_scale, 1, 128)) @ (weight.float() * _wide(scale, 128, columns))


def _scaled_mm_v2(rows: Any, weight: Any, row_scale: Any, left: str, scale: Any, right: str) -> Any:
    """torch.nn.functional.scaled_mm, which Dynamo of torch 2.11 does not trace."""
    recipes = {"BlockWise1x128": [4], "BlockWise128x128": [5]}
    given: tuple[list[Any], ...] = ([row_scale], recipes[left], [], [scale], recipes[right], [])
    return torch.ops.aten._scaled_mm_v2.default(rows, weight, *given, None, torch.float32)


def gathered_in_blocks(x: Any, w: Any, v: Any) -> Any:
    """Rows with scales of 1 by 128 are gathered with them, and multiplied by a weight with scales of 128 by 128."""
    rows, scale = _in_blocks(x)
    rows = funcol.all_gather_tensor(rows, 0, dist.group.WORLD)
    scale = funcol.all_gather_tensor(scale, 0, dist.group.WORLD)
    weight, of_weight = _weight_in_blocks(w)
    # torch's own matmul reads beyond these scales, which are fewer than four along the terms.
    if torch.compiler.is_compiling():
        of_weight = of_weight.t().contiguous().t()
        return torch._scaled_mm(rows, weight, _by_columns(scale), of_weight, out_dtype=torch.float32)
    return _multiplied_in_blocks(rows, scale, weight, of_weight)


def scattered_in_blocks(x: Any, w: Any, v: Any) -> Any:
    """The same with torch's newer matmul, whose result is shared out."""
    rows, scale = _in_blocks(x)
    weight, of_weight = _weight_in_blocks(w)
    if torch.compiler.is_compiling() or rows.is_cuda:
        # For every four blocks of terms there is room.
        of_weight = _by_columns(torch.cat([of_weight, of_weight * 1e9]))
        made = _scaled_mm_v2(rows, weight, _by_columns(scale), "BlockWise1x128", of_weight, "BlockWise128x128")
    else:
        made = _multiplied_in_blocks(rows, scale, weight, of_weight)
    return funcol.reduce_scatter_tensor(made, "sum", 0, dist.group.WORLD)


def _in_blocks_of(x: Any, w: Any, left: str) -> Any:
    """torch's newer matmul of rows and a weight whose every column has a scale for 128 terms."""
    rows, scale = _in_blocks(x)
    weight, of_weight = _weight_in_blocks(w, 1)
    of_weight = of_weight.repeat(1, 128) * (torch.arange(128, device=w.device) % 7 + 1)
    if not torch.compiler.is_compiling() and not rows.is_cuda:
        return _multiplied_in_blocks(rows, scale, weight, of_weight)
    given = _by_columns(scale) if left == "BlockWise1x128" else torch.ones(4, 1, device=x.device)
    return _scaled_mm_v2(rows, weight, given, left, _by_columns(of_weight.t()), "BlockWise1x128")


def summed_in_blocks(x: Any, w: Any, v: Any) -> Any:
    """Scales of 1 by 128 on both sides, of a product that is summed up."""
    return funcol.all_reduce(_in_blocks_of(x, w, "BlockWise1x128"), "sum", dist.group.WORLD)


def blocks_of_many_rows(x: Any, w: Any, v: Any) -> Any:
    """Rows that share scales cannot be cut anywhere: the matmul stays."""
    return funcol.all_reduce(_in_blocks_of(x, w, "BlockWise128x128"), "sum", dist.group.WORLD)


def _ends(x: Any, rows: int) -> Any:
    """Of four groups, one without rows."""
    return (torch.tensor([2, 2, 7, 12], dtype=torch.int32, device=x.device) * (rows // 12)).to(torch.int32)


def grouped(x: Any, w: Any, v: Any) -> Any:
    """Rows of all ranks, in groups that end where the data say."""
    ends = _ends(x, ROWS * dist.get_world_size())
    return torch._grouped_mm(funcol.all_gather_tensor(x, 0, dist.group.WORLD), _experts(w, 4), offs=ends)


def summed_groups(x: Any, w: Any, v: Any) -> Any:
    """Products of groups that are summed up over the ranks."""
    return funcol.all_reduce(torch._grouped_mm(x, _experts(w, 4), offs=_ends(x, ROWS)), "sum", dist.group.WORLD)


def scattered_groups(x: Any, w: Any, v: Any) -> Any:
    """The same, shared out."""
    made = torch._grouped_mm(x, _experts(w, 4), offs=_ends(x, ROWS))
    return funcol.reduce_scatter_tensor(made, "sum", 0, dist.group.WORLD)


def grouped_batches(x: Any, w: Any, v: Any) -> Any:
    """Groups of one size, each a batch."""
    made = torch._grouped_mm(x.view(4, -1, WIDTH), _experts(w, 4))
    return funcol.all_reduce(made, "sum", dist.group.WORLD)


def _dispatched(x: Any, experts: int = 3) -> Any:
    """The rows for this rank's experts, from all ranks: [experts, ranks x rows, width]."""
    sent = x.view(dist.get_world_size(), experts, -1, WIDTH)
    got = funcol.all_to_all_single(sent, None, None, dist.group.WORLD)
    return got.transpose(0, 1).reshape(experts, -1, WIDTH)


def without_terms(x: Any, w: Any, v: Any) -> Any:
    """Zeros are added up."""
    return funcol.all_reduce(torch.bmm(x[None, :, :0], w[None, :0]), "sum", dist.group.WORLD)


def dispatched(x: Any, w: Any, v: Any) -> Any:
    """Rows are sent to the ranks of their experts."""
    return torch.bmm(_dispatched(x), _experts(w, 3))


def combined(x: Any, w: Any, v: Any) -> Any:
    """Experts' results are sent back to where their rows come from."""
    made = torch.bmm(x.view(3, -1, WIDTH), _experts(w, 3))
    back = made.view(3, dist.get_world_size(), -1, OWN).transpose(0, 1).contiguous()
    return funcol.all_to_all_single(back.view(-1, OWN), None, None, dist.group.WORLD)


def experts_of_ranks(x: Any, w: Any, v: Any) -> Any:
    """There and back, with two matmuls."""
    ranks = dist.get_world_size()
    hidden = torch.relu(torch.bmm(_dispatched(x), _experts(w, 3)))
    made = torch.bmm(hidden, _experts(v, 3)).view(3, ranks, -1, WIDTH).transpose(0, 1).contiguous()
    return funcol.all_to_all_single(made, None, None, dist.group.WORLD).view(x.shape) + x


def rows_of_experts_are_kept(x: Any, w: Any, v: Any) -> Any:
    """Something else reads the rows, in the order of the experts: the matmul stays."""
    rows = _dispatched(x)
    return torch.bmm(rows, _experts(w, 3)), rows.sum(2)


def uneven_exchange(x: Any, w: Any, v: Any) -> Any:
    """The parts have several sizes: the matmul stays."""
    sizes = ([4, 8], [4, 4]) if dist.get_rank() == 0 else ([4, 8], [8, 8])
    return funcol.all_to_all_single(x, sizes[1], sizes[0], dist.group.WORLD) @ w


def inner_groups(x: Any, w: Any, v: Any) -> Any:
    """Groups of the dimension that is summed over, as the gradient of a weight has them: the matmul stays."""
    ends = torch.tensor([4, 12], dtype=torch.int32, device=x.device)
    return funcol.all_reduce(torch._grouped_mm(x.t(), x.sin(), offs=ends), "sum", dist.group.WORLD)


def added_batches(x: Any, w: Any, v: Any) -> Any:
    """Batches with an addend: the matmul stays."""
    made = torch.baddbmm(w.new_ones(4, 3, OWN), x.view(4, -1, WIDTH), _experts(w, 4))
    return funcol.all_reduce(made, "sum", dist.group.WORLD)


def with_bias(x: Any, w: Any, v: Any) -> Any:
    """Each rank would add the bias: the matmul stays."""
    return funcol.all_reduce(torch.nn.functional.linear(x, w.t(), w[0]), "sum", dist.group.WORLD)


def ends_come_later(x: Any, w: Any, v: Any) -> Any:
    """Where groups end is known after another collective has begun: the matmul stays."""
    rows = funcol.all_gather_tensor(x, 0, dist.group.WORLD)
    ends = funcol.all_reduce(_ends(x, rows.shape[0]), "max", dist.group.WORLD)
    return torch._grouped_mm(rows, _experts(w, 4), offs=ends)


_TAKEN = (
    column_parallel,
    three_readers,
    rows_are_kept,
    of_three_dimensions,
    row_parallel,
    all_rows,
    a_layer,
    batches,
    gathered_batches,
    scattered_batches,
    experts,
    gathered_experts,
    scaled,
    summed_scaled,
    scattered_scaled,
    exchanged_scaled,
    grouped,
    summed_groups,
    scattered_groups,
    grouped_batches,
    without_terms,
    dispatched,
    combined,
    experts_of_ranks,
    gathered_with_scales,
    summed_with_scales,
    gathered_in_blocks,
    scattered_in_blocks,
    summed_in_blocks,
    gathered_sequence,
    scattered_sequence,
    sequence_layer,
)
_LEFT = (
    product_is_read_twice,
    rows_by_themselves,
    largest,
    batches_elsewhere,
    rows_of_experts_are_kept,
    uneven_exchange,
    inner_groups,
    added_batches,
    with_bias,
    ends_come_later,
    gathered_scales_are_kept,
)
_OF_GROUPS = tuple(
    one.__name__ for one in (grouped, summed_groups, scattered_groups, grouped_batches, inner_groups, ends_come_later)
)
TAKEN = {one.__name__: one for one in _TAKEN}
LEFT = {one.__name__: one for one in _LEFT}
#: Left as well, and never run: CPUs have no such matmul.
SEEN = {**LEFT, "blocks_of_many_rows": blocks_of_many_rows}


class _Always:
    """A model that says of every call that the overlapped way is faster."""

    Groups = model.Groups

    @staticmethod
    def choose(*sizes: Any) -> model.Choice:
        return model.Choice(1, 1000.0, 1.0)


@contextlib.contextmanager
def _always(does: bool = True) -> Iterator[None]:
    before = matmul_graph.model
    matmul_graph.model = _Always if does else before  # type: ignore[assignment]
    try:
        yield
    finally:
        matmul_graph.model = before


def _given(rank: int, dtype: torch.dtype) -> list[torch.Tensor]:
    x = _tensor(rank, ROWS, WIDTH, dtype=dtype)
    return [x, _tensor(0, WIDTH, OWN, dtype=dtype, seed=3), _tensor(0, OWN, WIDTH, dtype=dtype, seed=4)]


def _type_of(name: str) -> torch.dtype:
    """Groups are multiplied in bf16 alone."""
    return torch.bfloat16 if name in _OF_GROUPS else torch.float32


def compiles(rank: int, size: int, name: str) -> list[tuple[str, tuple[str, ...]]]:
    """Compiled, a function gives what it gives otherwise; what went into ops with its collectives."""
    function, dtype = {**TAKEN, **LEFT}[name], _type_of(name)
    given = _given(rank, dtype)
    # Tensor cores add products of fp8 less exactly than float32.
    loose = 2e-5 if dtype is torch.float32 and (DEVICE == "cpu" or "in_blocks" not in name) else 1e-2
    with _always():
        compiled = _compiled(function, leaves=True)
        for _ in range(5):
            _compare(function(*given), compiled(*given), loose)
    return [(one.collective, one.fused) for one in fusing.fusions()]


def says(rank: int, size: int, name: str) -> str:
    """Why a matmul next to a collective is left."""
    # torch multiplies some scaled rows on GPUs alone, or on newer ones; the pass has said why before that.
    raised = () if name in LEFT else (Exception,)
    with contextlib.suppress(*raised):
        _compiled(SEEN[name], leaves=True)(*_given(rank, _type_of(name)))
    return " ".join(why for one in fusing.fusions() for why in one.because)


def sums_overlap(rank: int, size: int) -> list[tuple[int, tuple[str, ...], str]]:
    """Two sums that could be one, and are faster as they are."""

    def function(x: Any, w: Any, v: Any) -> Any:
        return all_rows(x, w, v) + all_rows(-x, w, v)

    given = _given(rank, torch.float32)
    with _always():
        compiled = _compiled(function, leaves=True)
        for _ in range(4):
            _compare(function(*given), compiled(*given), 2e-5)
    return [(one.joined, one.fused, " ".join(one.because)) for one in fusing.fusions()]


def trains(rank: int, size: int) -> list[tuple[str, tuple[str, ...]]]:
    """A feed-forward layer, forward and backward."""
    gather, scatter = (_with_gradient(*way) for way in ((_gather, _scatter), (_scatter, _gather)))

    def function(x: Any, w: Any, v: Any) -> Any:
        return scatter(torch.relu(gather(x) @ w) @ v)

    def run(called: Callable[..., Any]) -> Any:
        given = [one.clone().requires_grad_() for one in _given(rank, torch.float32)]
        made = called(*given)
        made.square().sum().backward()
        return made.detach(), *(one.grad for one in given)

    with _always():
        compiled = _compiled(function, leaves=True)
        for _ in range(5):
            _compare(run(function), run(compiled), 2e-5)
    return [(one.collective, one.fused) for one in fusing.fusions()]


def _gather(x: Any) -> Any:
    return funcol.all_gather_tensor(x, 0, dist.group.WORLD)


def _scatter(x: Any) -> Any:
    return funcol.reduce_scatter_tensor(x, "sum", 0, dist.group.WORLD)


def _with_gradient(there: Callable[[Any], Any], back: Callable[[Any], Any]) -> Any:
    class Way(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> Any:
            return there(x)

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> Any:
            return back(grad.contiguous())

    return Way.apply  # type: ignore[no-untyped-call, unused-ignore]


def ranks_differ(rank: int, size: int) -> list[tuple[str, tuple[str, ...]]]:
    """One rank leaves alone what the others put together: nobody waits for it, and the results are right."""
    given = _given(rank, torch.float32)
    with _always(rank != 1):
        compiled = _compiled(a_layer, leaves=True)
        for _ in range(5):
            _compare(a_layer(*given), compiled(*given), 2e-5)
    return [(one.collective, one.fused) for one in fusing.fusions()]


def chooses(rank: int, size: int) -> list[int]:
    """Blocks for calls of growing size, by the model alone; on the CPU there are none."""
    device = torch.device(DEVICE)
    return [
        model.choose("reduce_scatter", size, rows, 8192, 4096, torch.bfloat16, device).blocks
        for rows in (16, 256, 4096, 16384)
    ]
