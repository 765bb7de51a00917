"""Matmuls with collectives: the ops, and their use by torch.compile. GPUs: test/gpu/matmul.py."""

from __future__ import annotations

from dataclasses import replace

import matmul_checks
import pytest
import torch
from commsir.torch.matmul import model, overlapped
from commsir.torch.matmul import ops as matmul_ops
from commsir.torch.matmul.factor import Factor, by_rows
from commsir.torch.matmul.sums import Sums
from harness import World
from reporting_checks import without_numbers

_MM, _ADDMM, _BMM = "aten.mm", "aten.addmm", "aten.bmm"
_SCALED, _SCALED_V2, _GROUPED = "aten._scaled_mm", "aten._scaled_mm_v2", "aten._grouped_mm"
#: What goes into an op with each collective of a function, in order.
_INTO: dict[str, list[tuple[str, tuple[str, ...]]]] = {
    "column_parallel": [("all_gather", (_MM,))],
    "three_readers": [("all_gather", (_MM, _ADDMM, _MM))],
    "rows_are_kept": [("all_gather", (_MM,))],
    "of_three_dimensions": [("all_gather", (_MM,))],
    "row_parallel": [("reduce_scatter", (_MM,))],
    "all_rows": [("all_reduce", (_MM,))],
    "batches": [("all_reduce", (_BMM,))],
    "gathered_batches": [("all_gather", (_BMM,))],
    "scattered_batches": [("reduce_scatter", (_BMM,))],
    "gathered_sequence": [("all_gather", (_MM, _MM))],
    "scattered_sequence": [("reduce_scatter", (_MM,))],
    "sequence_layer": [("all_gather", (_MM,)), ("reduce_scatter", (_MM,))],
    "experts": [("all_reduce", (_BMM,))],
    "gathered_experts": [("all_gather", (_BMM,))],
    "scaled": [("all_gather", (_SCALED,))],
    "summed_scaled": [("all_reduce", (_SCALED,))],
    "scattered_scaled": [("reduce_scatter", (_SCALED,))],
    "exchanged_scaled": [("all_to_all", (_SCALED,)), ("all_to_all", ("aten.add.Tensor",))],
    "gathered_with_scales": [("all_gather", (_SCALED,)), ("all_gather", (_SCALED,))],
    "summed_with_scales": [("all_reduce", (_SCALED,))],
    "gathered_in_blocks": [("all_gather", (_SCALED,)), ("all_gather", (_SCALED,))],
    "scattered_in_blocks": [("reduce_scatter", (_SCALED_V2,))],
    "summed_in_blocks": [("all_reduce", (_SCALED_V2,))],
    "grouped": [("all_gather", (_GROUPED,))],
    "summed_groups": [("all_reduce", (_GROUPED,))],
    "scattered_groups": [("reduce_scatter", (_GROUPED,))],
    "grouped_batches": [("all_reduce", (_GROUPED,))],
    "without_terms": [("all_reduce", (_BMM,))],
    "dispatched": [("all_to_all", (_BMM,))],
    "combined": [("all_to_all", (_BMM,))],
    "experts_of_ranks": [("all_to_all", (_BMM,)), ("all_to_all", (_BMM,))],
    "a_layer": [("all_gather", (_MM,)), ("reduce_scatter", (_MM,))],
}


@pytest.mark.parametrize("shape", [(8, 32), (4, 3, 16), (5, 24), (4, 0), (0, 16)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_products(world: World, dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    world.run(matmul_checks.products, "gloo", dtype=dtype, shape=shape, columns=24)


def test_scales_of_rows_have_no_gaps() -> None:
    """As torch's matmul on GPUs wants them."""
    one, of_rows, of_columns = (
        torch.ones(()),
        torch.arange(1.0, 9).view(1, 8).t(),
        torch.arange(1.0, 17).view(2, 8)[:, :6],
    )
    for given, wanted in (
        ((one.view(1, 1).expand(8, 1), of_columns[:1]), (torch.ones(8, 1), of_columns[:1])),
        ((of_rows, one), (of_rows, torch.ones(1, 6))),
        ((one, of_columns[:1]), (torch.ones(8, 1), of_columns[:1])),
    ):
        made = by_rows(*given, 8, 6)
        assert all(one.is_contiguous() and torch.equal(one, want) for one, want in zip(made, wanted, strict=True))
    blocks = torch.ones(8, 2), torch.ones(2, 6)
    assert by_rows(*blocks, 8, 6) == blocks and by_rows(one, one, 8, 6) == (one, one)


def test_memory_of_products_without_terms() -> None:
    bytes_of = matmul_ops._space_of_products
    assert bytes_of("all_reduce", 2, torch.empty(8, 0), Factor(torch.empty(0, 24))) == 8 * 24 * 4
    assert bytes_of("reduce_scatter", 2, torch.empty(8, 0), Factor(torch.empty(0, 24))) == 4 * 24 * 4


def _factors() -> dict[str, tuple[torch.Tensor, Factor, torch.Tensor]]:
    """48 rows, what they are multiplied by, and the product by torch's own operations."""
    rows, w = torch.randn(48, 16), torch.randn(4, 16, 24)
    small, wide = rows.bfloat16(), w.bfloat16()
    ends = torch.tensor([5, 5, 31, 48], dtype=torch.int32)
    by_columns = w[0].t().contiguous().to(torch.float8_e4m3fn).t()
    given, row_scale, scale = rows.to(torch.float8_e4m3fn), torch.rand(48, 1), torch.rand(1, 24)
    exact = given.float() @ by_columns.float()
    order = rows.view(3, 4, 4, 16).transpose(0, 1).reshape(4, 12, 16)
    of_experts = torch.bmm(order, w).view(4, 3, 4, 24).transpose(0, 1).reshape(48, 24)
    one = torch.tensor(0.5)
    f32 = torch.float32
    many, tall = (torch.randn(*shape).to(torch.float8_e4m3fn) for shape in ((48, 300), (300, 24)))
    of_rows, of_blocks = torch.rand(48, 3), torch.rand(4, 1)
    by_terms = of_rows.repeat_interleave(128, 1)[:, :300]
    in_blocks = (many.float() * by_terms) @ (tall.float() * of_blocks.repeat_interleave(128, 0)[:300])
    of_columns = torch.rand(3, 24)
    in_columns = (many.float() * by_terms) @ (tall.float() * of_columns.repeat_interleave(128, 0)[:300])
    return {
        "matrix": (rows, Factor(w[0], w[1, 0]), torch.addmm(w[1, 0], rows, w[0])),
        "batches": (rows, Factor(w, group_rows=12), torch.bmm(rows.view(4, 12, 16), w).view(48, 24)),
        "experts of ranks": (rows, Factor(w, group_rows=4), of_experts),
        "groups": (small, Factor(wide, ends=ends), torch._grouped_mm(small, wide, offs=ends)),
        "one scale": (given, Factor(by_columns, row_scale=one, scale=one, dtype=f32), exact * 0.25),
        "scales of rows": (
            given,
            Factor(by_columns, w[2, 0], row_scale=row_scale, scale=scale, dtype=f32),
            exact * row_scale * scale + w[2, 0],
        ),
        "scales of blocks": (many, Factor(tall, row_scale=of_rows, scale=of_blocks, dtype=f32), in_blocks),
        "scales of columns of blocks": (many, Factor(tall, row_scale=of_rows, scale=of_columns, dtype=f32), in_columns),
    }


@pytest.mark.parametrize("name", list(_factors()))
@pytest.mark.parametrize("block", [48, 24, 16, 7, 1])
def test_blocks_of_rows(name: str, block: int) -> None:
    """A product by blocks of rows, wherever they begin, is that of all rows; added to something, too."""
    rows, factor, want = _factors_with_seed(name)
    near = 2e-2 if want.dtype is torch.bfloat16 else 1e-4
    for start in range(0, 48, block):
        some = rows[start : start + block]
        torch.testing.assert_close(factor.multiply(some, start), want[start : start + block], rtol=near, atol=near)
        if factor.bias is None:
            total = torch.ones(len(some), 24, dtype=want.dtype)
            factor.add(total, some, start, total)
            torch.testing.assert_close(total, want[start : start + block] + 1, rtol=near, atol=near)


def _factors_with_seed(name: str) -> tuple[torch.Tensor, Factor, torch.Tensor]:
    torch.manual_seed(1)
    return _factors()[name]


@pytest.mark.parametrize(
    "name", ["matrix", "batches", "experts of ranks", "one scale", "scales of rows", "scales of blocks"]
)
@pytest.mark.parametrize("ranks", [2, 3])
def test_overlapped_ways(monkeypatch: pytest.MonkeyPatch, name: str, ranks: int) -> None:
    """The blocks that ranks compute, send and add up, with threads for ranks and their memory for symmetric memory."""
    rows, factor, want = _factors_with_seed(name)
    near = 1e-3
    with matmul_checks.threads_for_ranks(monkeypatch, ranks) as run:
        some = 48 // ranks
        for got in run(
            lambda space: overlapped.all_gather_matmul(space, rows[space.rank * some :][:some], [factor], None)
        ):
            torch.testing.assert_close(got[0], want, rtol=near, atol=near)
        # Every rank sends all its rows, of which each gets its own part: the same from all.
        for rank, got in enumerate(
            run(lambda space: overlapped.matmul_all_to_all(space, rows, replace(factor, bias=None)))
        ):
            added = 0 if factor.bias is None else factor.bias
            part = want.view(ranks, some, -1)[rank] - added
            torch.testing.assert_close(got, part.repeat(ranks, 1), rtol=near, atol=near)
        plain = replace(factor, bias=None)
        total = plain.multiply(rows, 0) * ranks
        for blocks in (1, 2, 4):
            for rank, got in enumerate(
                run(lambda space, count=blocks: overlapped.matmul_reduce_scatter(space, rows, plain, count))
            ):
                torch.testing.assert_close(got, total.chunk(ranks)[rank], rtol=near, atol=near)
            for got in run(lambda space, count=blocks: overlapped.matmul_all_reduce(space, rows, plain, count)):
                torch.testing.assert_close(got, total, rtol=near, atol=near)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("is_turned", [False, True])
@pytest.mark.parametrize("others", [1, 3])
def test_product_adds_what_others_sent(
    monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype, is_turned: bool, others: int
) -> None:
    """The kernel of ours, of several tiles, where GPUs have it: it rounds once."""
    monkeypatch.setattr(model, "adds_in_product", lambda *sizes: True)
    torch.manual_seed(3)
    rows, parts = torch.randn(256, 64).to(dtype), torch.randn(others, 256, 512).to(dtype)
    weight = torch.randn(512, 64).to(dtype).t() if is_turned else torch.randn(64, 512).to(dtype)
    given = Sums("alone", torch.device("cpu"))
    out = torch.empty(256, 512, dtype=dtype)
    given.total(Factor(weight), parts, rows, 0, out)
    want = rows.double() @ weight.double() + parts.double().sum(0)
    # Half a unit in the last place, and what the sums in float32 are off.
    assert bool(((out.double() - want).abs() <= torch.finfo(dtype).eps / 2 * want.abs() + 1e-4).all())
    assert [key[0] for key in given._kernels] == ["multiply"]


def test_rows_that_are_exchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    """An all_to_all before a matmul, whose rows stay readable."""
    rows, factor, want = _factors_with_seed("batches")
    with matmul_checks.threads_for_ranks(monkeypatch, 2) as run:
        whole = [torch.empty(48, 16) for _ in range(2)]
        sent = [rows.view(2, 2, 12, 16)[:, rank] for rank in range(2)]  # To rank 0, then to rank 1.
        made = run(
            lambda space: overlapped.all_to_all_matmul(
                space, sent[space.rank].reshape(24, 16), [factor], whole[space.rank][:24]
            )
        )
    for rank in range(2):
        given = torch.cat([one[rank] for one in sent])
        torch.testing.assert_close(whole[rank][:24], given)
        torch.testing.assert_close(made[rank][0], factor.multiply(given, 0))


def test_mistakes(pair: World) -> None:
    for said in pair.run(matmul_checks.mistakes, "gloo"):
        transposed, flat, types, rows, gradient, scales, bias, biases, of_blocks, of_weight = said
        assert "(6, 8) by (4, 8)" in transposed and "the first of the second" in transposed
        assert "(8,) by (8, 4)" in flat and "two dimensions or more" in flat
        assert "torch.float32" in types and "torch.float64" in types
        assert "3 rows cannot be shared out to 2 ranks" in rows
        assert "matmul_all_reduce has no derivative" in gradient
        assert "float8_e4m3fn has scales" in scales and "row_scale and scale" in scales
        assert "a bias of (8,) for a weight of (8, 4)" in bias
        assert "1 weights have 2 biases" in biases
        assert "scales of (6, 2) and (1, 4)" in of_blocks and "(6, 1) and (1, 4)" in of_blocks
        assert "scales of (6, 1) and (2, 4)" in of_weight and "blocks of 128" in of_weight


@pytest.mark.parametrize("name", list(matmul_checks.TAKEN))
def test_takes(pair: World, name: str) -> None:
    said: list[tuple[str, tuple[str, ...]]]
    # Gloo has no fp8.
    backend = (
        "commsir" if name in ("scaled", "exchanged_scaled", "gathered_with_scales", "gathered_in_blocks") else "gloo"
    )
    for said in pair.run(matmul_checks.compiles, backend, name=name):
        # On GPUs Inductor makes zeros of a product without terms.
        gone = {"aten.bmm"} if name == "without_terms" and pair.tensors == "cuda" else set()
        wanted = [(op, sorted(one for one in into if one not in gone)) for op, into in _INTO[name]]
        assert [(op, sorted(into)) for op, into in said] == wanted


@pytest.mark.parametrize("name", list(matmul_checks.LEFT))
def test_leaves(pair: World, name: str) -> None:
    backend = "commsir" if name == "gathered_scales_are_kept" else "gloo"
    for said in pair.run(matmul_checks.compiles, backend, name=name):
        assert len(said) == 1 + (name in ("ends_come_later", "gathered_scales_are_kept")) and not {
            _MM,
            _ADDMM,
            _BMM,
            _GROUPED,
            _SCALED,
        } & {*said[0][1]}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("batches_elsewhere", "aten.bmm at matmul_checks.py next to it is not overlapped: the rows of its batches"),
        (
            "inner_groups",
            "aten._grouped_mm at matmul_checks.py next to it is not overlapped: its groups are not groups of rows",
        ),
        ("added_batches", "aten.baddbmm at matmul_checks.py next to it is not overlapped: it adds"),
        ("with_bias", "aten.addmm at matmul_checks.py next to it is not overlapped: it has a bias"),
        ("ends_come_later", "which is there once a later collective has begun"),
        ("uneven_exchange", "not of one size"),
        pytest.param(
            "blocks_of_many_rows",
            "aten._scaled_mm_v2 at matmul_checks.py next to it is not overlapped: its scales are of the recipes (5,)",
            marks=pytest.mark.cpu_alone("torch refuses scales of these shapes on GPUs before the pass sees them"),
        ),
    ],
)
def test_reports_remaining_matmuls(pair: World, name: str, said: str) -> None:
    assert all(said in without_numbers(given) for given in pair.run(matmul_checks.says, "gloo", name=name))


@pytest.mark.parametrize(
    ("dtype", "n", "said"),
    [(torch.float32, 16, "torch.float32 are not"), (torch.bfloat16, 12, "[16, 12]"), (torch.bfloat16, 16, "9.0")],
)
def test_model_gives_the_reason_for_no_gain(
    monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype, n: int, said: str
) -> None:
    monkeypatch.setattr(model, "_processors", lambda device: 0)
    choice = model.choose("all_reduce", 2, 64, n, 16, dtype, torch.device("cuda", 0))
    assert not choice.blocks and said in str(choice)


def test_sums_stay_where_they_overlap(pair: World) -> None:
    for said in pair.run(matmul_checks.sums_overlap, "gloo"):
        assert [(joined, fused) for joined, fused, _ in said] == [(1, (_MM,))] * 2
        assert all("overlap with their matmuls" in why for _, _, why in said)


def test_trains(pair: World) -> None:
    for said in pair.run(matmul_checks.trains, "gloo"):
        # Backward, the gradient of what was scattered is gathered for two matmuls, one of which has it as its weight.
        assert [name for name, _ in said] == ["all_gather", "reduce_scatter", "all_gather", "reduce_scatter"]
        assert all(fused for _, fused in (said[0], said[1], said[3]))


def test_ranks_differ(pair: World) -> None:
    there, left = pair.run(matmul_checks.ranks_differ, "gloo")
    assert there == _INTO["a_layer"]
    assert all(_MM not in fused for _, fused in left)


@pytest.mark.cpu_alone("GPUs have a choice")
def test_no_choice_on_the_cpu(pair: World) -> None:
    for said in pair.run(matmul_checks.chooses, "gloo"):
        assert said == [0, 0, 0, 0]


def test_model_never_takes_what_it_says_is_slower() -> None:
    """Of a chip with 132 processors, over sizes that a model has and some that it has not."""
    for op in ("all_gather", "reduce_scatter", "all_reduce"):
        taken = 0
        for ranks in (2, 4, 8):
            for rows in (ranks, 8 * ranks, 1000, 1024, 4096, 8192):
                for n, k in ((1024, 8192), (8192, 1024), (8192, 4096), (28672, 8192)):
                    choice = model._best(op, model._Sizes(ranks, rows, n, k, 2, 132))
                    assert not choice.blocks or choice.overlapped < choice.plain
                    assert op == "all_gather" or not choice.blocks or rows % (ranks * choice.blocks) == 0
                    taken += choice.blocks > 0
        assert taken > 10
