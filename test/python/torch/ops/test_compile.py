"""torch.compile: which operations become one kernel, which do not, and why."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import compile_checks
import pytest
import torch
import torch._inductor.config
import torch._inductor.custom_graph_pass
import torch.distributed._functional_collectives
from commsir import UsageError
from commsir.torch import compile, fusion
from harness import World

#: The rest is done in float32.
_IN_BFLOAT16 = {"residual_rms_norm", "torch_rms_norm", "silu_only", "gathered", "quantized"}


@pytest.mark.parametrize("name", list(compile_checks.FUSED))
def test_fuses(pair: World, name: str) -> None:
    dtype = torch.bfloat16 if name in _IN_BFLOAT16 else torch.float32
    said = pair.run(compile_checks.fuses, "gloo", name=name, dtype=dtype)
    assert len(set(map(str, said))) == 1, "ranks have fused different things"
    assert len(said[0]) == 1 and ": fused with " in said[0][0], said[0]
    if name == "followed_by_matmul":
        assert re.search(r"aten\.mm at compile_checks\.py:\d+ is not among the operations", said[0][0]), said[0]
        assert "aten.rsqrt" in said[0][0]


def test_dynamic_rows(pair: World) -> None:
    said = pair.run(compile_checks.fuses, "gloo", name="residual_rms_norm", dtype=torch.bfloat16, dynamic=True)
    assert ": fused with " in said[0][0]


def test_generated_code_passes_handles(pair: World) -> None:
    for prepared, called, texts in pair.run(compile_checks.passes_handles, "gloo"):
        # A site is a part of the handle: one for each place.
        assert prepared == called == texts == 2, (prepared, called, texts)


_COLLECTIVES = ["all_reduce", "all_gather", "reduce_scatter"]


@pytest.mark.parametrize("collective", _COLLECTIVES)
@pytest.mark.parametrize("name", list(compile_checks.ALONG_COLUMNS))
def test_statistics_along_columns(pair: World, collective: str, name: str) -> None:
    for fused, because in pair.run(compile_checks.aligns, "gloo", collective=collective, name=name, along_rows=False)[
        0
    ]:
        assert any("other" in why and "rows" in why for why in because), (fused, because)


@pytest.mark.parametrize("collective", _COLLECTIVES)
@pytest.mark.parametrize("name", list(compile_checks.EACH_WITH_ITS_OWN))
def test_statistics_beside_one_for_each_row(pair: World, collective: str, name: str) -> None:
    said = pair.run(compile_checks.aligns, "gloo", collective=collective, name=name, along_rows=False)[0]
    assert all(fused and not because for fused, because in said), said


@pytest.mark.parametrize("collective", _COLLECTIVES)
@pytest.mark.parametrize("name", list(compile_checks.ALONG_ROWS))
def test_statistics_along_rows(pair: World, collective: str, name: str) -> None:
    for fused, because in pair.run(compile_checks.aligns, "gloo", collective=collective, name=name, along_rows=True)[0]:
        assert fused and not because, (fused, because)


#: Views that stay behind the kernel: nothing else does.
_STAY = ("aten.permute at ",)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", list(compile_checks.WHOLE))
def test_holds_all(pair: World, name: str, dtype: torch.dtype) -> None:
    for said in pair.run(compile_checks.holds_all, "gloo", name=name, dtype=dtype):
        assert said and all(fused for fused, _ in said), said
        assert all(why.startswith(_STAY) for _, because in said for why in because), said


@pytest.mark.parametrize("name", list(compile_checks.ARRIVES))
def test_arrives(pair: World, name: str) -> None:
    # Gloo takes no fp8.
    for said in pair.run(compile_checks.arrives, "commsir", name=name):
        assert said and all(fused for fused, _ in said), said


def test_arithmetic_that_is_folded_away(pair: World) -> None:
    ((fused, _),) = pair.run(compile_checks.folded_away, "gloo")[0]
    # Newer ones than 2.11 need not fold it, as 0 times infinity is not 0.
    newer = not torch.__version__.startswith("2.11.")
    assert not fused or (newer and fused == ("aten.add.Tensor", "aten.mul.Tensor"))


@pytest.mark.parametrize("shape", [(0, 16), (2, 0, 16), (4, 0), (4, 1)])
def test_without_elements(pair: World, shape: tuple[int, ...]) -> None:
    ((fused, because),) = pair.run(compile_checks.without_elements, "gloo", shape=shape)[0]
    assert bool(fused) == (shape[-1] > 1), because


@pytest.mark.parametrize("rows", [0, 3])
def test_rows_that_may_lack(pair: World, rows: int) -> None:
    ((fused, because),) = pair.run(compile_checks.rows_that_may_lack, "gloo", rows=rows)[0]
    assert fused, because


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_casts_overflow(pair: World, dtype: torch.dtype) -> None:
    ((fused, because),) = pair.run(compile_checks.overflows, "gloo", dtype=dtype)[0]
    assert fused and not because


@pytest.mark.parametrize("name", ["log", "exp", "tanh", "erf", "rsqrt"])
def test_ends_of_functions(pair: World, name: str) -> None:
    ((fused, because),) = pair.run(compile_checks.ends_of_functions, "gloo", name=name)[0]
    assert fused and not because


def test_results_used_in_another_order_on_each_rank(pair: World) -> None:
    for said in pair.run(compile_checks.used_in_another_order, "gloo"):
        assert len(said) == 2 and all(fused for fused, _ in said), said


def test_collectives_begin_in_their_order(pair: World) -> None:
    assert [len(said) for said in pair.run(compile_checks.begin_in_order, "gloo")] == [2, 1]


def test_regions_that_need_each_other(pair: World) -> None:
    said = pair.run(compile_checks.each_needs_the_other, "gloo")[0]
    assert any(fused for fused, _ in said)


def test_calls_keep_their_order(pair: World) -> None:
    pair.run(compile_checks.ops_keep_their_order, "gloo")


def test_traced(pair: World) -> None:
    pair.run(compile_checks.traced, "gloo")


def test_one_kernel(pair: World) -> None:
    counts = pair.run(compile_checks.kernels, "gloo")[0]
    assert counts.get("commsir::fused_collective") == 1
    assert not [name for name in counts if "_c10d_functional" in name or "graph_0_cpp_fused" in name], counts


def test_waits_for_what_was_waited_for(pair: World) -> None:
    ((fused, because),) = pair.run(compile_checks.waited_for_twice, "gloo")[0]
    assert fused.count("aten.rsqrt") == 2 and not because, (fused, because)


def test_nothing_but_a_view_follows(pair: World) -> None:
    ((fused, because),) = pair.run(compile_checks.followed_by_bmm, "gloo")[0]
    assert not fused and "aten.bmm" in because[0], (fused, because)


def test_waits_behind_views(pair: World) -> None:
    assert pair.run(compile_checks.waits_behind_views, "gloo") == [1, 1]


def test_a_region_ends_where_there_are_too_many_results(pair: World) -> None:
    ((fused, because),) = pair.run(compile_checks.too_many_results, "gloo")[0]
    assert fused[:3] == ("aten.add.Tensor", "aten.mul.Tensor", "aten.sub.Tensor")
    assert "17 of its values are needed elsewhere" in because[0]


def test_values_saved_for_gradients(pair: World) -> None:
    ((fused, because),) = pair.run(compile_checks.saved_for_gradients, "gloo")[0]
    assert fused.count("aten.rsqrt") == 2, (fused, because)


def test_every_collective_is_named(pair: World) -> None:
    said = pair.run(compile_checks.every_collective, "gloo")[0]
    reasons = {
        "all_reduce_coalesced": "several tensors at once",
        "all_gather_into_tensor_coalesced": "several tensors at once",
        "reduce_scatter_tensor_coalesced": "several tensors at once",
        "all_to_all": "not of one size",
        "broadcast": "not with broadcast",
        "all_reduce": "without dimensions",
        "all_gather": "of torch.int64",
        "tp_all_reduce": "knows only the name",
        "tp_all_reduce_": "writes into a tensor",
    }
    assert said.keys() == reasons.keys()
    for name, reason in reasons.items():
        assert reason in said[name], said


@pytest.mark.parametrize("as_function", [False, True])
def test_behind_another_pass(pair: World, as_function: bool) -> None:
    ((fused, _),) = pair.run(compile_checks.behind_another_pass, "gloo", as_function=as_function)[0]
    assert fused.count("aten.rsqrt") == 2


def test_passes_without_a_name_are_not_cached(pair: World) -> None:
    assert pair.run(compile_checks.another_pass_each_time, "gloo") == [[5.0, 7.0]] * 2


def test_the_module_is_there_at_once() -> None:
    program = "import commsir.torch; commsir.torch.compile.enable(); commsir.torch.compile.disable()"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_group_without_a_name_is_left() -> None:
    """A newer torch puts groups themselves into graphs that it compiles for several ranks."""
    graph = torch.fx.Graph()
    x, group = graph.placeholder("x"), graph.placeholder("group")
    functional = torch.ops._c10d_functional
    reduced = graph.call_function(functional.all_reduce.default, (x, "sum", group))
    wait = graph.call_function(functional.wait_tensor.default, (reduced,))
    x.meta["val"] = wait.meta["val"] = torch.empty(4, 8)
    graph.output(graph.call_function(torch.ops.aten.relu.default, (wait,)))
    compile.clear_fusions()
    assert fusion.fuse_collectives(graph) == 0
    (said,) = compile.fusions()
    assert "has no name" in said.because[0] and not said.fused


class Other(torch._inductor.custom_graph_pass.CustomGraphPass):
    """Somebody else's pass."""

    def __call__(self, graph: torch.fx.Graph) -> None:
        pass

    def uuid(self) -> str:
        return "other"


def test_passes_that_are_there_stay() -> None:
    """One, and several, as a newer torch takes them."""
    config: Any = torch._inductor.config
    one = Other()
    for before in (None, one, [one], (one, one)):
        config.post_grad_custom_post_pass = before
        try:
            for _ in range(2):
                compile.enable()
            made = config.post_grad_custom_post_pass
            assert isinstance(made[-1] if isinstance(before, (list, tuple)) else made, compile.CollectivePass)
            if isinstance(before, (list, tuple)):
                assert made[:-1] == [*before]
            else:
                assert made.before is before
            compile.disable()
            left = config.post_grad_custom_post_pass
            assert left == ([*before] if isinstance(before, (list, tuple)) else before)
        finally:
            config.post_grad_custom_post_pass = None
    options = compile.compile_options(post_grad_custom_post_pass=[one], max_autotune=False)
    assert options["post_grad_custom_post_pass"][0] is one and options["max_autotune"] is False
    with pytest.raises(UsageError, match="join_sums='no': give True or False"):
        compile.compile_options(join_sums="no")  # type: ignore[arg-type]


def test_a_pass_that_asks_for_more_is_torchs_to_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile, "_AWARE", Other)
    one = Other()
    behind = compile.compile_options(post_grad_custom_post_pass=one)["post_grad_custom_post_pass"]
    assert behind[0] is one and behind[1].before is None


class Named(Other):
    """Somebody else's pass, whose name changes with its state."""

    def __init__(self, name: Any) -> None:
        self.name = name

    def uuid(self) -> Any:
        return self.name


class Changed(compile.CollectivePass):
    """Our pass, changed by somebody who says nothing about it."""

    def __call__(self, graph: torch.fx.Graph) -> None:
        pass


def test_names_for_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inductor caches nothing for a pass without one, and nothing of another one's."""
    ours = compile.CollectivePass
    names = [ours().uuid(), *(ours(Named(name)).uuid() for name in ("a", "b", ("a", 1), b"a"))]
    monkeypatch.setattr("commsir.torch.lowerings.groups_with_symmetric_memory", lambda: ("0",))
    names.append(ours().uuid())
    assert len({repr(name) for name in names}) == len(names) and all(names)
    for before in (lambda graph: None, Named(None), Named(""), Changed(), torch.fx.Graph.lint):
        assert ours(before).uuid() is None
    assert Changed().uuid() is None


def test_in_every_mode(pair: World) -> None:
    for said in pair.run(compile_checks.in_every_mode, "gloo"):
        assert [bool(one) and all(fused for fused, _ in one) for one in said] == [True] * 3


def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    said = []
    for _ in range(2):
        world = World(2, ("torch._dynamo", "torch._inductor.compile_fx"))
        try:
            said.append(world.run(compile_checks.warm, "gloo", folder=str(tmp_path)))
        finally:
            world.stop()
    first, second = said
    assert all(graphs and entries for graphs, _, entries in first) and any(kernels for _, kernels, _ in first), first
    assert second == [(0, 0, 0)] * 2


def test_a_defect_leaves_the_graph_as_it_was(pair: World) -> None:
    for said, texts, path in pair.run(compile_checks.with_a_defect, "commsir"):
        assert len(said) == 2
        assert all(not fused and "the pass has a defect: IndexError" in because[0] for fused, because in said)
        # It is told once.
        assert len(texts) == 1 and "IndexError: none of these" in texts[0]
        program = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=600)
        assert program.returncode == 0, program.stderr
        # Without the defect both are fused there.
        assert "2 collectives, 2 fused" in program.stdout
        shutil.rmtree(Path(path).parent)


def test_a_defect_fails_our_tests(pair: World) -> None:
    assert all("none of these" in said for said in pair.run(compile_checks.fails_where_it_is_strict, "gloo"))


@pytest.mark.parametrize("by_name", [False, True])
def test_registered_operation(pair: World, by_name: bool) -> None:
    for said, left, uuid in pair.run(compile_checks.registered, "gloo", by_name=by_name):
        ((fused, _),) = said
        assert "aten.rsqrt" in fused
        # Where nothing is fused, the operation stays as it was.
        assert "checks.tp_all_reduce.default" in left and not any("_c10d_functional" in one for one in left)
        assert "checks.tp_all_reduce" in str(uuid)


def test_unsupported_registrations(pair: World) -> None:
    missing, collective, function, mutable = pair.run(compile_checks.register_mistakes, "gloo")[0]
    assert 'no operation "checks::nothing"' in missing and "import" in missing
    assert 'no collective "broadcast"' in collective and "all_gather" in collective
    assert "is not an operation" in function
    assert "aten.add_.Tensor writes into its arguments" in mutable
