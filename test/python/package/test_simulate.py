"""Kernels on arrays of this process."""

import json
import pathlib
from typing import Any

import commsir
import ml_dtypes
import numpy as np
import pytest
from conftest import ADD, SUM, sum_of
from hypothesis import given, settings
from hypothesis import strategies as st

TYPES = {
    "f32": np.float32,
    "f64": np.float64,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "i32": np.int32,
    "i64": np.int64,
    "i16": np.uint16,
}


def shards(ranks: int, count: int, dtype: Any, seed: int = 0) -> list[Any]:
    random = np.random.default_rng(seed)
    return [random.integers(-8, 8, count).astype(dtype) for _ in range(ranks)]


@pytest.mark.parametrize("element", TYPES)
def test_sum_of_every_type(element: str) -> None:
    x = shards(3, 40, TYPES[element])
    y = [np.zeros_like(part) for part in x]
    report = commsir.simulate(sum_of(element), ranks=3, arrays={"x": x, "y": y})
    assert report["ranks"] == 3 and report["choices"]
    for part in y:
        np.testing.assert_array_equal(part, sum(one.astype(np.float64) for one in x).astype(part.dtype))


@settings(deadline=None, max_examples=15)
@given(
    ranks=st.integers(1, 9),
    count=st.integers(1, 300),
    algorithm=st.sampled_from(["", "one_shot", "two_shot"]),
    seed=st.integers(0, 2**40),
)
def test_sums_of_any_shape(ranks: int, count: int, algorithm: str, seed: int) -> None:
    count = count // ranks * ranks or ranks  # two_shot divides among the ranks
    x = shards(ranks, count, np.float32, seed % 1000)
    y = [np.zeros(count, np.float32) for _ in range(ranks)]
    commsir.simulate(SUM, ranks=ranks, arrays={"x": x, "y": y}, algorithm=algorithm, seed=seed)
    for part in y:
        np.testing.assert_array_equal(part, np.sum(x, axis=0))


def test_fused_kernel_with_bf16(rmsnorm: str) -> None:
    from commsir.demo import Problem

    problem = Problem(8, "bf16")
    commsir.simulate(rmsnorm, ranks=8, blocks=2, arrays=problem.arrays())
    assert problem.worst() <= 1


def test_scalars_for_all_and_for_each_rank() -> None:
    x = [np.zeros(8, np.float32) for _ in range(3)]
    commsir.simulate(ADD, ranks=3, arrays={"x": x}, scalars={"n": 2.5})
    commsir.simulate(ADD, ranks=3, arrays={"x": x}, scalars={"n": [1, float(np.float32(2)), 0.1]})
    assert [part[0] for part in x] == [np.float32(3.5), np.float32(4.5), np.float32(2.5) + np.float32(0.1)]
    commsir.simulate(ADD, ranks=3, arrays={"x": x}, scalars={"n": [float("inf"), float("-inf"), float("nan")]})
    assert x[0][0] == np.inf and x[1][0] == -np.inf and np.isnan(x[2][0])


def test_torch_tensors() -> None:
    torch = pytest.importorskip("torch")
    for dtype, element in ((torch.float32, "f32"), (torch.bfloat16, "bf16")):
        x = [torch.full((16,), rank + 1.0, dtype=dtype) for rank in range(4)]
        y = [torch.zeros(16, dtype=dtype) for _ in range(4)]
        commsir.simulate(sum_of(element), ranks=4, arrays={"x": x, "y": y})
        assert all(bool((part == 10).all()) for part in y)


def test_inputs_that_cannot_be_written_are_read() -> None:
    x = shards(2, 8, np.float32)
    for part in x:
        part.flags.writeable = False
    y = [np.zeros(8, np.float32) for _ in range(2)]
    commsir.simulate(SUM, ranks=2, arrays={"x": x, "y": y})
    np.testing.assert_array_equal(y[1], x[0] + x[1])
    for part in y:
        part.flags.writeable = False
    y[0].flags.writeable = True
    y[0][:] = -1  # Something for the kernel to change.
    y[1] = y[0].copy()
    y[1].flags.writeable = False
    with pytest.raises(commsir.UsageError, match="'y'.*rank 1 is read-only"):
        commsir.simulate(SUM, ranks=2, arrays={"x": x, "y": y})


def test_seeds_repeat_and_fuzz_agrees() -> None:
    x, y = shards(4, 32, np.float32), [np.zeros(32, np.float32) for _ in range(4)]
    first = commsir.simulate(SUM, ranks=4, arrays={"x": x, "y": y}, seed=7)
    again = commsir.simulate(SUM, ranks=4, arrays={"x": x, "y": y}, seed=7)
    assert first["steps"] == again["steps"]
    report = commsir.simulate(SUM, ranks=4, arrays={"x": x, "y": y}, fuzz=5)
    assert report["fuzz"]["schedules"] == 5 and report["fuzz"]["same_bits"]


def test_trace_is_written(tmp_path: pathlib.Path) -> None:
    x, y = shards(2, 8, np.float32), [np.zeros(8, np.float32) for _ in range(2)]
    commsir.simulate(SUM, ranks=2, arrays={"x": x, "y": y}, trace=tmp_path / "trace.json")
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]


def test_simulations_run_at_once() -> None:
    """The library is called without the lock of the interpreter."""
    from concurrent.futures import ThreadPoolExecutor

    def one(seed: int) -> bool:
        x, y = shards(3, 24, np.float32, seed), [np.zeros(24, np.float32) for _ in range(3)]
        commsir.simulate(SUM, ranks=3, arrays={"x": x, "y": y}, seed=seed)
        return bool((y[2] == np.sum(x, axis=0)).all())

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(one, range(24)))


BAD: list[tuple[dict[str, Any], str]] = [
    ({"arrays": {"z": [np.zeros(8, np.float32)] * 2}}, "no argument 'z'"),
    ({"arrays": {"x": [np.zeros(8, np.float32)]}}, "1 arrays for 2 ranks"),
    ({"arrays": {"x": [np.zeros(8, np.float64)] * 2, "y": [np.zeros(8, np.float32)] * 2}}, "hold f64"),
    ({"arrays": {"x": [np.zeros(8, np.float32), np.zeros(9, np.float32)]}}, r"\(8,\) on rank 0.*\(9,\) on rank 1"),
    ({"arrays": {"x": [np.zeros(16, np.float32)[::2]] * 2}}, "not contiguous"),
    ({"arrays": {"x": [[1, 2]] * 2}}, "is a list"),
    ({"arrays": {"x": [np.zeros(8, np.complex64)] * 2}}, "complex64 are unknown"),
    ({"arrays": {"x": [np.zeros(8, np.float32)] * 2}}, "do not fit"),
    ({"arrays": {"x": [np.zeros((2, 4), np.float32)] * 2, "y": [np.zeros(8, np.float32)] * 2}}, "do not fit"),
    ({"scalars": {"x": 1}}, "a number was given"),
    ({"blocs": 2}, "did you mean 'blocks'"),
    ({"blocks": "two"}, "'blocks': a whole number"),
    ({"blocks": -1}, "'blocks': a whole number"),
    ({"algorithm": 3}, "'algorithm': expected a string"),
    ({"target": "tpu"}, "'target': expected one of"),
    ({"target": "cudaa"}, "did you mean 'cuda'"),
    ({"time_limit": -1}, "'time_limit'"),
    ({"fuzz": 1}, "at least 2 schedules"),
    ({"timeout": 3}, "on the CPU time_limit ends a run"),
    ({"fast": True, "seed": 1}, "exclude each other"),
    ({"kernel": "summ"}, "did you mean 'sum'"),
    ({"options": object()}, "the option 'options' cannot be"),
    ({"trace": "/nowhere/trace.json"}, "/nowhere"),
    ({"shapes": {"x": [-1]}}, "expected a shape"),
    ({"ranks": 10**9, "blocks": 10**9}, "more than"),
]


@pytest.mark.parametrize(("options", "text"), BAD, ids=[text for _, text in BAD])
def test_bad_input_is_said(options: dict[str, Any], text: str) -> None:
    with pytest.raises(commsir.UsageError, match=text):
        commsir.simulate(SUM, **{"ranks": 2, **options})


def test_numbers_of_numpy_are_options() -> None:
    arrays = {name: [np.ones(8, np.float32) for _ in range(2)] for name in "xy"}
    options: dict[str, Any] = {"ranks": np.int64(2), "seed": np.uint8(3), "time_limit": np.float32(50)}
    report = commsir.simulate(SUM, **options, arrays=arrays)
    assert report["ranks"] == 2 and (arrays["y"][0] == 2).all()


@pytest.mark.parametrize("arrays", [[1, 2], [], {"x": None}, {"x": 5}])
def test_arrays_are_a_dict_of_lists(arrays: Any) -> None:
    with pytest.raises(commsir.UsageError, match="array a rank"):
        commsir.simulate(SUM, ranks=2, arrays=arrays)


def test_reports_are_no_text() -> None:
    source = SUM.replace("?", "8")
    assert "llvm.func" in commsir.compile_ir(source, produce="lowered", ranks=2)
    for produce in ("check", "explain"):
        with pytest.raises(commsir.UsageError, match="gives a report and no text"):
            commsir.compile_ir(source, produce=produce, ranks=2)


def test_ranks_are_asked_for() -> None:
    with pytest.raises(commsir.UsageError, match="ranks is missing"):
        commsir.simulate(SUM)
    with pytest.raises(commsir.UsageError, match="'n' has no value"):
        commsir.simulate(ADD, ranks=2, arrays={"x": [np.zeros(8, np.float32)] * 2})
    with pytest.raises(commsir.UsageError, match="2 values were given for 3 ranks"):
        commsir.simulate(ADD, ranks=3, scalars={"n": [1, 2]})


def test_torch_tensors_with_gradients_and_fp8() -> None:
    torch = pytest.importorskip("torch")
    from commsir._arrays import view

    assert view(torch.ones(4, requires_grad=True)).type == "f32"
    assert view(torch.ones(4).to(torch.float8_e4m3fn)).type == "f8E4M3FN"
    x = [torch.tensor([1.5, -0.0, 5e4, float("nan")]).to(torch.float8_e5m2) for _ in range(2)]
    y = [torch.zeros(4).to(torch.float8_e5m2) for _ in range(2)]
    commsir.simulate(sum_of("f8E5M2"), ranks=2, arrays={"x": x, "y": y})
    np.testing.assert_array_equal(y[1].float().numpy(), [3, 0, np.inf, np.nan])
    with pytest.raises(commsir.UsageError, match="not contiguous"):
        view(torch.ones(4, 4).t())
    with pytest.raises(commsir.UsageError, match="on cpu:0; it must be on cuda:1"):
        view(torch.ones(4), "the input", "cuda:1")
    with pytest.raises(commsir.UsageError, match="the array negates .*resolve_neg"):
        view(torch._neg_view(torch.ones(2)))
    shrunk = torch.ones(8)
    part = shrunk[4:]
    shrunk.untyped_storage().resize_(31)
    for short in (shrunk, part):
        with pytest.raises(commsir.UsageError, match="the array needs 32 bytes of its storage, which has 31"):
            view(short)
    view(part[:3])
    view(part[3:3])
