"""Contents of regions, by kind: each function's operations join their collective's kernel (test_regions.py)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import commsir.torch.compile as fusing
import torch
import torch.distributed
import torch.distributed._functional_collectives as funcol
from compile_checks import DEVICE, LITE, _compare, _compiled, _tensor

dist: Any = torch.distributed
BATCH, LENGTH, HEADS, SIZE = 2, 4, 4, 8
WIDTH = HEADS * SIZE
_f: Any = torch.nn.functional
#: The first float32 that is no other float32 plus 1.
_LARGE = 1 << 24


def masked(h: Any, t: Any) -> Any:
    """A mask of each element, of each row, and one that is made here."""
    h = torch.where(t["mask"], h, -1.0) * t["row_mask"]
    return torch.where((h > 0.5) & ~(h >= 2.0), h, h * 0.1)


def overwritten(h: Any, t: Any) -> Any:
    """A number where a mask is set: of rows, of elements, and with one element in a dimension."""
    rows, one = h * 1.5, torch.ones(1, dtype=h.dtype, device=h.device)
    rows[t["row_mask"][..., 0]] = 0.5
    rows[t["mask"]] = -1.0
    return rows.index_put((rows > 2,), one) * 2, rows


def dropout(h: Any, t: Any) -> Any:
    """What is drawn before; the mask is a result, as the gradient needs it."""
    kept = t["random"] > 0.25
    return kept * h * (1 / 0.75), kept


def mask_as_result(h: Any, t: Any) -> Any:
    return h > 0, (h * 2).clamp(-1, 1)


def infinite(h: Any, t: Any) -> Any:
    """A softmax with a causal mask."""
    return torch.softmax(h.masked_fill(t["mask"], -math.inf), -1)


def powers(h: Any, t: Any) -> Any:
    positive = h.abs() + 0.5
    return h**4 + h**3, positive**-2 + positive**1.5, positive**-0.5 * positive**0.3, h**5


def functions(h: Any, t: Any) -> Any:
    return torch.sin(h) + torch.cos(h), torch.log1p(h.abs()), torch.expm1(h), torch.atan2(h, t["whole"]), h.sign()


def variance(h: Any, t: Any) -> Any:
    return (h - h.mean(-1, keepdim=True)) / (h.var(-1, keepdim=True) + 1e-5).sqrt(), h.std(-1, keepdim=True)


def online_softmax(h: Any, t: Any) -> Any:
    """As Inductor writes a softmax on GPUs."""
    largest, total = torch.ops.prims.prepare_softmax_online(h, -1)
    return (h - largest).exp() / total


def softmax_backward(h: Any, t: Any) -> Any:
    """As Inductor writes it."""
    return torch.ops.prims.fma(-h, (h * t["whole"]).sum(-1, keepdim=True), t["whole"])


def scale_of_all(h: Any, t: Any) -> Any:
    """Static quantization: one number without dimensions."""
    return (h / t["scale"]).clamp(-448, 448).to(torch.float8_e4m3fn)


def as_int8(h: Any, t: Any) -> Any:
    """Dynamic quantization of rows, with a scale each."""
    scale = h.abs().amax(-1, keepdim=True) / 127
    return torch.round(h / scale).clamp(-128, 127).to(torch.int8), scale


def back_from_int8(h: Any, t: Any) -> Any:
    whole = torch.round(h * 10).clamp(-128, 127).to(torch.int8)
    return whole, h - whole.float() / 10


def largest_of_all(h: Any, t: Any) -> Any:
    """Delayed scaling: the largest element of the tensor, and last time's scale."""
    return (h / t["scale"]).to(torch.float8_e5m2), h.abs().amax()


def integers(h: Any, t: Any) -> Any:
    """Integers that float32 does not tell apart, and ones that wrap around."""
    large = (h.sign() * 2 + _LARGE).to(torch.int32)
    near = large == t["near"]
    wrapped = (h.round() * 4).clamp(-128, 127).to(torch.int8)
    return near, torch.where(large > _LARGE, h, -h), wrapped == 260, large.to(torch.int64) >= t["near"]


def norm_over_heads(h: Any, t: Any) -> Any:
    """As of queries and keys."""
    heads = h.view(-1, LENGTH, HEADS, SIZE)
    return _f.rms_norm(heads, (SIZE,), t["of_head"])


def group_quantized(h: Any, t: Any) -> Any:
    """A scale for each 8 elements."""
    groups = torch.relu(h).reshape(-1, SIZE)
    scale = groups.abs().amax(-1, keepdim=True).clamp(min=1e-6) / 448
    return (groups / scale).to(torch.float8_e4m3fn).view(h.shape), scale.view(-1, HEADS)


def over_the_batch(h: Any, t: Any) -> Any:
    """Positions, the same for each sequence: rows, a number for each, and a row with dimensions."""
    return h * t["cos"] + t["sin"] * (t["of_position"] + h.shape[0]) + t["row"]


def of_heads_and_rows(h: Any, t: Any) -> Any:
    """Statistics of rows that are seen as heads."""
    heads = h.view(-1, LENGTH, HEADS, SIZE)
    return heads / heads.abs().amax((-2, -1), keepdim=True)


def added_to_a_matmul(h: Any, t: Any) -> Any:
    """Inductor makes one operation of the matmul and the sum."""
    return torch.relu(h.view(-1, WIDTH) + t["whole"].view(-1, WIDTH) @ t["square"])


def many_results(h: Any, t: Any) -> Any:
    """As a training step saves them."""
    return h, h + 1, h * 2, h.relu(), torch.tanh(h), torch.sigmoid(h), h.sum(-1, keepdim=True)


def _rotated(x: Any) -> Any:
    return torch.cat((-x[..., x.shape[-1] // 2 :], x[..., : x.shape[-1] // 2]), -1)


def rotary(h: Any, t: Any) -> Any:
    """Halves of rows that change places."""
    return h * t["cos"] + _rotated(h) * t["sin"]


def rotary_of_heads(h: Any, t: Any) -> Any:
    """Of the first half of each head, as GPT-NeoX and Phi do; of heads whose dimensions are permuted."""
    heads = h.view(-1, LENGTH, HEADS, SIZE).transpose(1, 2)
    turned, kept = heads[..., : SIZE // 2], heads[..., SIZE // 2 :]
    turned = turned * t["of_half"] + _rotated(turned) * t["of_half"]
    return torch.cat((turned, kept), -1).transpose(1, 2).reshape(-1, LENGTH, WIDTH)


def split_of_three(h: Any, t: Any) -> Any:
    """Queries, keys and values, of which two are normalized."""
    q, k, v = h.split([WIDTH // 2, WIDTH // 4, WIDTH // 4], -1)
    return _f.rms_norm(q, (WIDTH // 2,)), k * t["row"][..., : WIDTH // 4], v


def gate_and_up(h: Any, t: Any) -> Any:
    gate, up = h.chunk(2, -1)
    return _f.silu(gate) * up


def parts_of_masks(h: Any, t: Any) -> Any:
    positive = h > 0
    both = torch.cat((positive[..., 5:], positive[..., :5]), -1)
    return both, both & positive, h[..., 3] * 2


def joined_with_another(h: Any, t: Any) -> Any:
    """A row that is joined of what arrives, another tensor and a constant."""
    return torch.cat((h.relu(), t["whole"], torch.zeros_like(h[..., :2])), -1) * 2


def parts_alone(h: Any, t: Any) -> Any:
    """Views of the result cost nothing: the kernel writes one."""
    q, k = (h * 2).split(WIDTH // 2, -1)
    return q, k


def scattered(h: Any, t: Any) -> Any:
    """As the gradients of the experts' weights: to places that data say, into rows of other lengths."""
    chosen = (h * 2)[..., :2]
    rows = torch.zeros(BATCH, LENGTH, 6, dtype=h.dtype, device=h.device).scatter(-1, t["places"], chosen)
    return rows - rows.sum(-1, keepdim=True), rows.scatter(-1, t["places"][..., :1], 0.5)


def scattered_sums(h: Any, t: Any) -> Any:
    """Several elements go to one place, as gradients do, and ones to others."""
    rows = torch.zeros(BATCH, LENGTH, 4, dtype=h.dtype, device=h.device)
    added = rows.scatter_add(-1, t["places"] // 3, (h + 1)[..., -2:])
    return added * 3 + torch.full_like(rows, -1.0).scatter(-1, t["places"] % 4, 1.0)


def gathered_signs(h: Any, t: Any) -> Any:
    """Elements that a sum, or a product, with others would change: -0.0, NaN and infinities of both signs."""
    odd = torch.where(t["mask"], h * 0.0, torch.where(h > 1, math.inf, torch.where(h < -1, -math.inf, math.nan)))
    chosen = odd.gather(-1, t["places"])
    return torch.copysign(torch.ones_like(chosen), chosen), chosen.nan_to_num(7, 8, 9)


def places(h: Any, t: Any) -> Any:
    """The first of equal elements; NaN is the largest and the smallest; infinite rows."""
    near, odd = (h * 2).round(), torch.where(t["mask"], h, torch.where(h > 1, math.nan, -math.inf))
    most, at_most = near.max(-1)
    least, at_least = odd.min(-1, keepdim=True)
    rows = torch.where(t["row_mask"], -math.inf, near)
    return (
        most * 2,
        at_most,
        least.nan_to_num(7, 8, 9),
        at_least,
        odd.argmax(-1),
        near.argmin(-1, keepdim=True),
        rows.argmax(-1),
    )


def _odd(h: Any, t: Any) -> Any:
    """Elements with infinities of both signs and NaN among them, several of each, in some rows."""
    return torch.where(t["mask"], h, torch.where(h > 1, math.nan, torch.where(h < -1, -math.inf, math.inf)))


def largest(h: Any, t: Any) -> Any:
    """As routers choose experts: which of equal elements comes first is not defined."""
    odd, few = _odd(h, t), h[..., :3]
    scores = torch.softmax(h, -1)
    chosen, at = scores.topk(2, sorted=False)
    least, at_least = odd.topk(5, largest=False)
    most, at_most = odd.topk(4)
    return (
        *(chosen / chosen.sum(-1, keepdim=True), scores.gather(-1, at) - chosen),
        *(least.nan_to_num(7, 8, 9), odd.gather(-1, at_least).nan_to_num(7, 8, 9)),
        *(most.nan_to_num(7, 8, 9), odd.gather(-1, at_most).nan_to_num(7, 8, 9)),
        *(few.topk(3)[0], h.topk(1)[0]),
    )


def sorted_rows(h: Any, t: Any) -> Any:
    """Equal elements keep their order; NaN is larger than infinity."""
    odd, near = _odd(h, t)[..., :SIZE], h[..., :SIZE].round()
    rising, places_of = torch.sort(odd, stable=True)
    falling, others = torch.sort(odd, dim=-1, descending=True, stable=True)
    return (
        *(rising.nan_to_num(7, 8, 9), places_of, falling.nan_to_num(7, 8, 9), others),
        *(near.sort(stable=True)[1], near.argsort(stable=True, descending=True)),
    )


def running_sums(h: Any, t: Any) -> Any:
    """As of the probabilities of tokens that are sampled from."""
    whole = h.cumsum(-1)
    return whole * 2, torch.softmax(h[..., :5], -1).cumsum(-1) < 0.9, (h > 0).to(h.dtype).cumsum(-1)


#: What is said of operations that stay outside, if any.
FUSED: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    one.__name__: (one, ())
    for one in (
        masked,
        overwritten,
        dropout,
        mask_as_result,
        infinite,
        powers,
        functions,
        variance,
        online_softmax,
        softmax_backward,
        scale_of_all,
        as_int8,
        back_from_int8,
        largest_of_all,
        integers,
        norm_over_heads,
        group_quantized,
        over_the_batch,
        of_heads_and_rows,
        added_to_a_matmul,
        many_results,
        rotary,
        rotary_of_heads,
        split_of_three,
        gate_and_up,
        parts_of_masks,
        joined_with_another,
        parts_alone,
        scattered_sums,
        gathered_signs,
        places,
        largest,
        sorted_rows,
        running_sums,
    )
}
FUSED["scattered"] = (scattered, ("which is not one known number",))
FUSED["largest_of_all"] = (largest_of_all, ("has other rows",))


def _given(dtype: torch.dtype) -> dict[str, Any]:
    shape = (BATCH, LENGTH, WIDTH)
    floats = {
        "whole": shape,
        "of_head": (SIZE,),
        "cos": (LENGTH, WIDTH),
        "sin": (1, LENGTH, WIDTH),
        "of_position": (LENGTH, 1),
        "row": (1, 1, WIDTH),
        "square": (WIDTH, WIDTH),
        "of_half": (SIZE // 2,),
    }
    given: dict[str, Any] = {name: _tensor(0, *sizes, dtype=dtype, seed=7) for name, sizes in floats.items()}
    given["random"] = torch.rand(shape, generator=torch.Generator().manual_seed(3), device="cpu").to(DEVICE, dtype)
    given["mask"] = torch.ones(WIDTH // 4, dtype=torch.bool, device=DEVICE).logical_not().repeat(4)
    given["mask"] = (given["mask"] | (torch.arange(WIDTH, device=DEVICE) % 3 == 0)).expand(shape).contiguous()
    given["row_mask"] = torch.arange(BATCH * LENGTH, device=DEVICE).view(BATCH, LENGTH, 1) % 2 == 0
    first = torch.arange(BATCH * LENGTH, device=DEVICE).view(BATCH, LENGTH, 1) % 3
    given["places"] = torch.cat([first, 5 - first], -1)
    given["scale"] = torch.tensor(0.75, device=DEVICE)
    given["near"] = torch.arange(WIDTH, device=DEVICE) % 4 + _LARGE - 1
    return given


def fuses(
    rank: int, size: int, name: str, dtype: torch.dtype, dynamic: bool = False
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Compiled, a function gives what it gives otherwise; what went into the kernel, and why not more."""
    function, given = FUSED[name][0], _given(dtype)

    def after(x: Any, t: Any) -> Any:
        return function(funcol.all_reduce(x, "sum", dist.group.WORLD), t)

    compiled = _compiled(after, leaves=True)
    for turn in range(4):
        # Sums of halves are exact: a cast is not to round another sum.
        x = (_tensor(rank, BATCH, LENGTH, WIDTH, dtype=torch.float32, seed=turn) * 8).round().div(8).to(dtype)
        if dynamic:
            for one in (x, given["whole"], given["mask"], given["row_mask"], given["random"]):
                torch._dynamo.mark_dynamic(one, 0)
        got, want = compiled(x, given), after(x, given)
        for a, b in zip(*(one if isinstance(one, tuple) else (one,) for one in (want, got)), strict=True):
            if a.dtype in (torch.bool, torch.int8):
                # torch divides by a number on GPUs by its reciprocal, whose rounding may decide a tie.
                most = int(DEVICE != "cpu" and a.dtype is torch.int8)
                assert a.dtype == b.dtype and (a.int() - b.int()).abs().max() <= most
            else:
                _compare(a, b, {torch.float32: 2e-5}.get(dtype, 4e-2))
    (said,) = fusing.fusions()
    return said.fused, said.because


def _summed(x: Any, r: Any) -> Any:
    """What a backward pass reads: the sum, its largest element, and the sum of its powers."""
    h = funcol.all_reduce(x, "sum", dist.group.WORLD)
    most = h.float().amax(-1, keepdim=True)
    return h.view(-1, WIDTH), most, torch.exp(h.float() - most).sum(-1, keepdim=True)


def _summed_on(x: Any, r: Any) -> Any:
    """The same of a value that is made of the sum, and read as another view."""
    h = (funcol.all_reduce(x, "sum", dist.group.WORLD) + r).view(-1, WIDTH)
    most = h.float().amax(-1, keepdim=True)
    return h.clone(), most, torch.exp(h.float() - most).sum(-1, keepdim=True)


def _gathered_on(x: Any, r: Any) -> Any:
    h = funcol.all_gather_tensor(x, 0, dist.group.WORLD) * 0.7
    most = h.float().amax(-1, keepdim=True)
    return h, most, torch.exp(h.float() - most).sum(-1, keepdim=True)


STORED: dict[str, Callable[[Any, Any], Any]] = {one.__name__: one for one in (_summed, _summed_on, _gathered_on)}


def stores(rank: int, size: int, name: str, dtype: torch.dtype) -> float:
    """How far statistics of rows are off those of the rows that the kernel stores, at most, as a ratio."""
    compiled = _compiled(STORED[name], leaves=True)
    most = 0.0
    for turn in range(4):
        x = _tensor(rank, LENGTH, WIDTH, dtype=dtype, seed=turn) * 8
        h, largest, total = compiled(x, _tensor(0, LENGTH, WIDTH, dtype=dtype, seed=9))
        want = torch.exp(h.float() - h.float().amax(-1, keepdim=True)).sum(-1, keepdim=True)
        assert torch.equal(largest, h.float().amax(-1, keepdim=True))
        most = max(most, float((total / want - 1).abs().max()))
    return most


# ---------------------------------------------------------------------------------------------------------------------
# all_gather along another dimension
# ---------------------------------------------------------------------------------------------------------------------


def _gathered(x: Any, dim: int) -> Any:
    return funcol.all_gather_tensor(x, dim, dist.group.WORLD)


def logits(x: Any, w: Any) -> Any:
    """Columns of the vocabulary are gathered; what caps and casts them is the same before."""
    h = _gathered(x, 2)
    return (torch.tanh(h / 30) * 30).float()


def sequence(x: Any, w: Any) -> Any:
    """Positions are gathered: a norm keeps rows whole."""
    h = _gathered(x, 1)
    return _f.rms_norm(h, (WIDTH,), w) @ torch.eye(WIDTH, device=h.device, dtype=h.dtype)


def one_sequence(x: Any, w: Any) -> Any:
    """Of a batch of one the pieces lie one after the other."""
    h = _gathered(x[:1], 1)
    return _f.rms_norm(h, (WIDTH,), w), h


def softmax_of_all(x: Any, w: Any) -> Any:
    """A softmax needs whole rows: the cast goes along, and the maximum of each part of a row."""
    return torch.softmax(_gathered(x, 2).float() * 2, -1)


def loss_of_all(x: Any, w: Any) -> Any:
    """As logits of a training step, which are kept, cast, seen as rows, and reduced."""
    h = _gathered(x, 2)
    rows = (torch.tanh(h / 30) * 30).float().view(-1, h.shape[-1])
    return h, torch.log_softmax(rows, -1)[:, 3], rows.amin(-1)


def sum_of_all(x: Any, w: Any) -> Any:
    """Sums of float32 rows, with and without the dimension."""
    h = _gathered(x, 2).float()
    return h.sum(-1), h.abs().sum(-1, keepdim=True), h


def norm_of_all(x: Any, w: Any) -> Any:
    """A norm of queries whose heads are gathered: each rank's part has a mean of squares."""
    h = _gathered(x, 2)
    return _f.rms_norm(h.float(), (h.shape[-1],)).to(h.dtype) * 2


def of_flat_rows(x: Any, w: Any) -> Any:
    """Logits of rows that are seen in the shape of the batch."""
    h = _gathered(x.view(-1, x.shape[-1]), 1)
    return torch.tanh(h.view(*x.shape[:-1], -1) / 30) * 30


def returned_too(x: Any, w: Any) -> Any:
    """Logits that the program returns, and casts for a softmax over the batch."""
    h = _gathered(x, 2)
    return h, torch.softmax(h.float(), 0)


def waited_for(x: Any, w: Any) -> Any:
    """What is concatenated is waited for once more."""
    wait: Callable[[Any], Any] = funcol.wait_tensor
    return torch.relu(wait(_gathered(x, 2)) * 2)


def whole_beside(x: Any, w: Any) -> Any:
    """A tensor of the whole shape is added."""
    h = _gathered(x, 2)
    return torch.relu(h + w[0].expand(h.shape).cos())


def another_shape(x: Any, w: Any) -> Any:
    """Columns become rows, which have a scale."""
    return _gathered(x, 2).view(-1, WIDTH) * w


def moved_by_inductor(x: Any, w: Any) -> Any:
    """Inductor does with each piece what follows a concatenation by itself."""
    return torch.relu(_gathered(x, 2)).view(-1, WIDTH)


def of_positions(x: Any, w: Any) -> Any:
    """A sum over positions, of which each rank has some."""
    return _gathered(x, 1).sum(1)


#: What is said of a concatenation that nothing moves before.
KEPT: dict[str, tuple[Callable[..., Any], str]] = {
    "returned_too": (
        returned_too,
        "prims.convert_element_type at regions_checks.py could be done with the pieces, but what is gathered is read "
        "elsewhere, too",
    ),
    "whole_beside": (
        whole_beside,
        "aten.add.Tensor at regions_checks.py needs aten.cos at regions_checks.py, which is not in pieces",
    ),
    "another_shape": (
        another_shape,
        "aten.mul.Tensor at regions_checks.py has what is gathered in another shape, [16, 32]",
    ),
    "of_positions": (
        of_positions,
        "aten.sum.dim_IntList at regions_checks.py needs what all ranks have sent, along dimension 1",
    ),
}


def says_why(rank: int, size: int, name: str) -> tuple[str, ...]:
    function = KEPT[name][0]
    compiled = _compiled(function, leaves=True)
    x, w = _tensor(rank, BATCH, LENGTH, WIDTH, dtype=torch.bfloat16), _tensor(0, WIDTH, dtype=torch.bfloat16, seed=6)
    _compare(function(x, w), compiled(x, w), 4e-2)
    (said,) = fusing.fusions()
    return said.because


GATHERED: dict[str, tuple[Callable[..., Any], str]] = {
    "logits": (logits, "aten.tanh"),
    "of_flat_rows": (of_flat_rows, "aten.tanh"),
    "sequence": (sequence, "aten.rsqrt"),
    "one_sequence": (one_sequence, "aten.rsqrt"),
    "softmax_of_all": (softmax_of_all, "aten.amax"),
    "loss_of_all": (loss_of_all, "aten.amin"),
    "moved_by_inductor": (moved_by_inductor, "aten.relu"),
    "waited_for": (waited_for, "aten.relu"),
    "sum_of_all": (sum_of_all, "aten.sum.dim_IntList"),
    "norm_of_all": (norm_of_all, "aten.pow.Tensor_Scalar"),
}


def gathers(rank: int, size: int, name: str, dynamic: bool = False) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Compiled, a function gives what it gives otherwise; `dynamic`: for batches of any size."""
    function = GATHERED[name][0]
    compiled = _compiled(function, leaves=True)
    w = _tensor(0, WIDTH, dtype=torch.bfloat16, seed=6)
    for turn in range(4):
        x = _tensor(rank, BATCH + (turn if dynamic else 0), LENGTH, WIDTH, dtype=torch.bfloat16, seed=turn)
        if dynamic:
            torch._dynamo.mark_dynamic(x, 0)
        _compare(function(x, w), compiled(x, w), 4e-2)
    (said,) = fusing.fusions()
    return said.fused, said.because


# ---------------------------------------------------------------------------------------------------------------------
# Weights of the next matmuls
# ---------------------------------------------------------------------------------------------------------------------


class _Noting(fusing.CollectivePass):
    """The pass, and the regions of the kernels that it makes."""

    texts: ClassVar[list[str]] = []

    def __call__(self, graph: Any) -> None:
        super().__call__(graph)
        _Noting.texts.extend(node.args[4] for node in graph.nodes if "fused_collective" in str(node.target))


def prefetches(rank: int, size: int, most: int, option: bool) -> list[str]:
    """The arrays that the kernel of a layer takes and does not read; the results are as without the pass."""
    import commsir.torch.prefetched_weights as prefetched

    before, prefetched._MOST_BYTES = prefetched._MOST_BYTES, most
    try:
        return _prefetched(rank, option)
    finally:
        prefetched._MOST_BYTES = before


def _prefetched(rank: int, option: bool) -> list[str]:
    given, dtype = _given(torch.float32), torch.float32
    weights = [_tensor(0, 3 * WIDTH, WIDTH, dtype=dtype, seed=8), _tensor(0, WIDTH, 2 * WIDTH, dtype=dtype, seed=9)]

    def layer(x: Any, w: Any) -> Any:
        h = funcol.all_reduce(x, "sum", dist.group.WORLD) + given["whole"]
        n = _f.rms_norm(h, (WIDTH,), given["row"].view(-1))
        return h, n.view(-1, WIDTH) @ w[0].t(), n.view(-1, WIDTH) @ w[1], n.view(-1, WIDTH) @ (w[1] * 2)

    _compiled(layer, leaves=True)
    _Noting.texts = []
    one = _Noting(None, prefetch_weights=option)
    compiled: Any = torch.compile(layer, fullgraph=True, options={**LITE, "post_grad_custom_post_pass": one})
    for turn in range(4):
        x = _tensor(rank, BATCH, LENGTH, WIDTH, dtype=dtype, seed=turn)
        for a, b in zip(layer(x, weights), compiled(x, weights), strict=True):
            _compare(a, b, 2e-4)
    (text,) = _Noting.texts
    return [part for part in text.partition(")")[0].split(", ") if part.startswith("%n")]
