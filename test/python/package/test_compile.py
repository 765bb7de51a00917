"""Compiling, checking, explaining: texts and reports."""

from typing import Any

import commsir
import pytest
from conftest import SUM
from hypothesis import given, settings
from hypothesis import strategies as st

SHAPES = {"x": [64], "y": [64]}


@pytest.mark.parametrize(
    ("produce", "text"),
    [
        ("ir", "comms.all_reduce"),
        ("lowered", "llvm.func"),
        ("llvm", "define"),
        ("ptx", ".visible .entry sum"),
    ],
)
def test_every_form(produce: str, text: str) -> None:
    assert text in commsir.compile_ir(SUM, produce=produce, ranks=4, blocks=1, shapes=SHAPES)


def test_ptx_for_a_chip() -> None:
    assert ".target sm_80" in commsir.compile_ir(SUM, produce="ptx", ranks=4, chip="sm_80", shapes=SHAPES)
    with pytest.raises(commsir.CompileError):
        commsir.compile_ir(SUM, produce="ptx", ranks=4, chip="sm_1", shapes=SHAPES)


def test_locations_are_printed() -> None:
    text = commsir.compile_ir(SUM, produce="ir", file="mine.mlir", locations=True)
    assert 'loc("mine.mlir":4' in text


def test_check_reports_the_choice() -> None:
    report = commsir.check(SUM, ranks=8, shapes=SHAPES, algorithm="two_shot")
    assert report.kernel == "sum" and report.ranks == 8 and report.channel_bytes > 0
    assert [choice["algorithm"] for choice in report.choices] == ["two_shot"]
    assert [argument["name"] for argument in report.arguments] == ["x", "y"]
    assert "neither hangs nor races" in str(report)


def test_shapes_are_of_arguments() -> None:
    for ask in (commsir.check, commsir.explain, lambda *a, **k: commsir.compile_ir(*a, produce="ir", **k)):
        with pytest.raises(commsir.UsageError, match="no argument 'zz'"):
            ask(SUM, ranks=2, shapes={**SHAPES, "zz": [3]})


def test_explain_gives_reasons() -> None:
    report = commsir.explain(SUM, ranks=8, shapes=SHAPES)
    assert any("one_shot" in remark["message"] or "chos" in remark["message"] for remark in report["remarks"])


def test_refused_kernel_has_its_line(deadlock: str) -> None:
    line = next(n for n, text in enumerate(deadlock.splitlines(), 1) if "wait_signal %arrived" in text)
    with pytest.raises(commsir.CheckError) as caught:
        commsir.check(deadlock, ranks=4, file="mine.mlir")
    error = caught.value
    assert (error.file, error.line) == ("mine.mlir", line)
    assert error.diagnostics[0].notes and f"mine.mlir:{line}" in str(error)
    assert isinstance(error, commsir.CompileError)


@pytest.mark.parametrize(
    ("source", "options"),
    [
        ("", {}),
        ("module {}", {}),
        ("comms.kernel @a(", {}),
        ("\0", {}),
        ("(" * 100000, {}),
        ("{" * 3000 + "}" * 3000, {}),
        ("comms.kernel @a() { comms.return }", {"kernel": "b"}),
        ("comms.kernel @a() { comms.return } comms.kernel @b() { comms.return }", {}),
        (SUM, {"ranks": 0}),
        (SUM, {"algorithm": "nonsense", "shapes": SHAPES}),
        (SUM, {"protocol": "nonsense", "shapes": SHAPES}),
        ("func.func @f() { return }", {}),
        ("é" * 10, {}),
        ("\ud800", {}),
    ],
)
def test_bad_sources_are_refused(source: str, options: dict[str, Any]) -> None:
    for produce in ("lowered", "llvm", "ptx"):
        with pytest.raises(commsir.CommsError) as caught:
            commsir.compile_ir(source, produce=produce, **{"ranks": 2, **options})
        assert caught.value.message


def test_a_source_that_is_no_text() -> None:
    with pytest.raises(commsir.UsageError, match="bytes, not a text"):
        commsir.check(b"module {}", ranks=2)


WORDS = """comms.kernel @sum ( %x : !comms.window<?xf32> memref<?xf32> ) { } %team = comms.team world
    comms.all_reduce sum ins outs consume comms.return comms.barrier 0 -1 18446744073709551615 xf32 bf16 tensor<4xf32>
    loc( "a" # ? < >"""


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 12), st.sampled_from(WORDS.split())), max_size=6),
    st.integers(0, 9),
)
def test_damaged_sources_never_end_the_process(edits: list[tuple[int, int, str]], ranks: int) -> None:
    text = SUM
    for place, cut, word in edits:
        at = place % (len(text) + 1)
        text = text[:at] + word + text[at + cut :]
    for produce in ("ir", "ptx", "check"):
        try:
            commsir._native._report(text, {"produce": produce, "ranks": ranks, "shapes": SHAPES})
        except commsir.CommsError as error:
            assert str(error)
    try:
        commsir.simulate(text, ranks=ranks, time_limit=5, max_steps=100000, shapes=SHAPES)
    except commsir.CommsError as error:
        assert str(error)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda one: st.lists(one, max_size=3) | st.dictionaries(st.text(max_size=4), one, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from(
    [
        "source",
        "file",
        "kernel",
        "blocks",
        "produce",
        "chip",
        "shapes",
        "threads",
        "cluster",
        "scalars",
        "types",
        "devices",
    ]
)


@settings(deadline=None, max_examples=150)
@given(st.dictionaries(KEYS, JSON, min_size=1, max_size=3))
def test_any_request_is_answered(options: dict[str, Any]) -> None:
    try:
        commsir._native._report(SUM, {"produce": "check", "ranks": 2, "blocks": 1, **options})
    except commsir.CommsError as error:
        assert str(error)


@pytest.mark.parametrize(
    "body, blocks", [("", 1), ("%b = comms.block_id", 16), ("%b = comms.num_blocks", 16)], ids=["one", "id", "number"]
)
def test_kernels_without_block_numbers(body: str, blocks: int) -> None:
    """Blocks that all did the same would write over one another: on GPUs there is one then."""
    source = f"""
    comms.kernel @first(%x: memref<8xf32>) {{
      %zero = arith.constant 0 : index
      %one = arith.constant dense<1.0> : tensor<1xf32>
      {body}
      comms.tile_store %one, %x[%zero] : tensor<1xf32>, memref<8xf32>
      comms.return
    }}"""
    assert commsir.explain(source, ranks=2, target="cuda")["blocks"] == blocks
    assert commsir.explain(source, ranks=2, target="cuda", blocks=4)["blocks"] == 4
    assert commsir.explain(source, ranks=2)["blocks"] == 0  # The CPU runs any number.
