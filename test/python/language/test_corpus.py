"""The verdicts of the checker on kernels with one fault each, and on their repaired twins (test/corpus)."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import commsir
import pytest

CORPUS = Path(__file__).resolve().parents[2] / "corpus"
TWINS = sorted({path.name.split(".")[0] for path in CORPUS.glob("*.bad.*")})

PROVEN, OPEN, REFUTED = "proven", "not decided", "refuted"

#: Of the faulty kernel and its twin: all others are refuted and proven.
DECIDED: dict[str, tuple[str, str]] = {
    # Data decide whether and with whom ranks synchronize: right if they are the same on all ranks, or a permutation.
    "p57_signal-to-rank-from-data": (REFUTED, OPEN),
    "p89_early-return": (OPEN, PROVEN),
    "p431_word-of-rank-0-lets-all-meet": (OPEN, PROVEN),
    "p432_rounds-of-the-largest-count": (OPEN, PROVEN),
    "m80_packets-over-a-known-integer": (OPEN, PROVEN),
    "m78_array-kept-from-last-launch": (OPEN, PROVEN),
    "p140_signals-as-many-as-data-say": (OPEN, OPEN),
    # What a cell holds depends on the schedule.
    "p176_read-after-relaxed-signal": (OPEN, PROVEN),
    # A loop as long as the host says keeps its place in memory.
    "p331_counter-in-memory-moves-on-in-a-loop": (OPEN, OPEN),
    # A float that the host gives decides, or an element.
    "p436_float-of-the-host-decides": (OPEN, OPEN),
    # A number in a packet has no name.
    "p366_stop-word-by-packet-valid-by-channel": (REFUTED, OPEN),
    "p369_two-clips-of-one-length": (REFUTED, OPEN),
    # Data decide how much is filled with poison, how many puts are waited for, and how many bulk copies there are.
    "p367_poison-refilled-shorter-than-taken": (OPEN, OPEN),
    "p368_counted-puts-of-a-data-loop": (OPEN, OPEN),
    "p445_row-of-data-copied-by-tma": (REFUTED, OPEN),
    # A product of the number of the launch with itself.
    "p380_square-of-the-launch-picks-the-buffer": (REFUTED, OPEN),
    # What a cell holds depends on the schedule.
    "p386_spin-until-the-cell-has-grown": (OPEN, PROVEN),
    # Data decide where ranks write.
    "p95_rows-by-offset-from-data": (OPEN, PROVEN),
    "p347_packed-with-unclamped-counts": (OPEN, PROVEN),
    "p349_count-changed-between-offset-and-send": (OPEN, PROVEN),
}

#: Faults that an assumption of the proof excludes.
ASSUMED = {
    "m39_all-to-all-v-counts-disagree": "counts_agree",
    "m40_arguments-share-memory": "arguments_apart",
    "p48_no-end-barrier-input-window": "host_waits",
    "p53_infinite-loop-on-data": "loops_end",
    "p177_ring-of-poison-assumed": "packets_cumulative",
    "p58_skip-when-nothing-changed": "same_on_ranks(go)",
}

#: Faults of values, of which the checker says nothing unless the kernel says what it computes: this line.
VALUES: dict[str, Any] = {
    "m29_consume-adds-own-again": "all_reduce(sum, x)",
    "p17_subteam-rank-as-world-rank": commsir.all_reduce("sum", team=("outer", 2)),
    "p21_one-peer-left-out": commsir.all_reduce("sum"),
    "p29_multimem-reduce-by-every-block": commsir.all_reduce("sum"),
    "p35_count-signalled-by-data": {
        "y": "where(i / 64 < min(max(count((rank + size - 1) % size)[0], 0), 8), x((rank + size - 1) % size)[i], y[i])"
    },
    "p37_averaged-twice": commsir.all_reduce("avg"),
    "p40_sum-order-differs-by-rank": commsir.all_reduce("x", op="sum", outs="y"),
    "p50_reads-slot-nobody-wrote": {"y": "sum(r, x(r)[i])"},
    "p101_gather-shifted-by-one": commsir.all_gather("x", outs="y"),
    "p102_scattered-part-of-another": commsir.reduce_scatter("x", op="sum", outs="y"),
    "p103_transpose-forgotten": commsir.all_to_all("x", outs="y"),
    "p104_largest-begins-at-zero": commsir.all_reduce("x", op="max", outs="y"),
    "p105_data-of-the-last-launch": {"y": "x((rank + size - 1) % size)[i]"},
    "p106_tail-left-out": commsir.all_reduce("sum"),
    "p107_root-of-another-team": {"y": "x(rank / 2 * 2 + 1)[i]"},
    "p108_sum-of-wrong-peer": commsir.all_reduce("sum"),
    "p109_own-rank-twice": {"y": "sum(r, x((rank + r) % size)[i])"},
    "p110_sum-from-the-last-rank-down": commsir.all_reduce("sum"),
    "p111_tile-offset-of-neighbor": commsir.all_reduce("sum"),
    "p112_all-to-all-from-the-next": commsir.all_to_all("x", outs="y"),
    "p113_average-by-constant": commsir.all_reduce("avg"),
    "p114_missing-last-rank": commsir.all_reduce("sum"),
    "p115_reduce-scatter-shifted": commsir.reduce_scatter("x", op="sum", outs="y"),
    "p129_gather-by-index-of-another-row": {
        "y": "x((rank + 1) % size)[min(max(idx(rank)[i / 64], 0), 3) * 64 + i % 64]"
    },
    "p135_own-row-instead-of-rank-0": commsir.all_reduce("sum"),
    "p136_pairs-added-by-parity": commsir.all_reduce("sum"),
    "p137_scatter-keeps-old-tail": {"y": "x((rank + i / 64) % size)[i]"},
    "p142_ring-of-five-one-short": commsir.all_gather("x", outs="y"),
    "p130_max-of-sums": commsir.all_reduce("x", op="max", outs="y"),
    "p200_run-time-length-one-short": {"y": "where(i < count, sum(r, x(r)[i]), y[i])"},
    "p201_run-time-rows-two-launches": {"y": "where(i / 64 < rows, x((rank + size - 1) % size)[i], y[i])"},
    "p202_length-by-data-of-another-rank": {
        "y": "where(i < min(max(count((rank + 1) % size)[0], 0), 64), x((rank + 1) % size)[i], 0)"
    },
    "p203_scratch-not-cleared": {"y": "sum(r, x(r)[i])"},
    "p204_scratch-tile-of-the-last-peer": {"y": "sum(r, x(r)[i])"},
    "p205_added-atomically-twice": {"y": "sum(r, x(r)[i])"},
    "p206_atomic-sum-and-own-store": {"y": "sum(r, x(r)[i])"},
    "p207_flag-of-the-host-turned": {"y": "where(go > 0, sum(r, x(r)[i]), y[i])"},
    "p208_histogram-misses-a-rank": {"y": "sum(r, x(r)[i])"},
    "p209_softmax-of-the-first-row": {"y": "exp(x[i]) / sum(j, 64, exp(x[i / 64 * 64 + j]))"},
    "p210_product-with-the-transpose": {
        "y": "sum(k, 16, x((rank + size - 1) % size)[i / 16 * 16 + k] * w[i % 16 * 16 + k])"
    },
    "p211_partial-product-added-twice": {"y": "sum(r, sum(k, 16, x(r)[i / 8 * 16 + k] * w(r)[i % 8 * 16 + k]))"},
    "p212_mask-by-the-wrong-comparison": {"y": "where(x((rank + 1) % size)[i] > 0.5, x((rank + 1) % size)[i], 0)"},
    "p213_gather-by-index-of-a-peer": {"y": "x((rank + 1) % size)[min(max(idx[i / 64], 0), 7) * 64 + i % 64]"},
    "p214_norm-by-the-sum-of-squares": {
        "y": "sum(r, x(r)[i]) * rsqrt(sum(j, 64, sum(r, x(r)[j]) * sum(r, x(r)[j])) / 64 + 0.00001)"
    },
    "p215_packets-of-a-shorter-tile": {"y": "where(i < count, x((rank + size - 1) % size)[i], 0)"},
    "p216_choice-by-data-turned": {"y": "where(which[0] > 0, x(0)[i], x(1)[i])"},
    "p234_tile-of-the-rank-after-the-root": {"y": "x(root)[i]"},
    "p235_many-rows-one-too-few": {"y": "where(i / 64 < rows, 2.0 * x[i], y[i])"},
    "p236_branch-on-each-element": {
        "y": "where(x((rank + 1) % size)[i] > 0, x((rank + 1) % size)[i] * 2, x((rank + 1) % size)[i] / 2)"
    },
    "p237_variance-around-zero": {
        "y": "(x[i] - sum(j, 64, x[j]) / 64) * rsqrt(sum(j, 64, "
        "(x[j] - sum(k, 64, x[k]) / 64) * (x[j] - sum(k, 64, x[k]) / 64)) / 64 + 0.001)"
    },
    "p251_scales-of-the-other-operand": {
        "y": "sum(k, 256, x[i / 4 * 256 + k] * w[i % 4 * 256 + k] * sx[i / 4 * 2 + k / 128] * sw[i % 4 * 2 + k / 128])"
    },
    "p252_scaled-and-added-to": {"y": "sum(k, 32, x[i / 4 * 32 + k] * w[i % 4 * 32 + k]) * sx[i / 4] * sw[0]"},
    "p253_weight-of-another-element": {"y": "sum(r, x(r)[i] * w[i])"},
    "p262_bruck-final-rotation-forgotten": commsir.all_gather("x", outs="y"),
    "p263_bruck-all-to-all-wrong-bit": commsir.all_to_all("x", outs="y"),
    "p264_recursive-doubling-same-partner": commsir.all_reduce("x", op="sum", outs="y"),
    "p266_halving-doubling-wrong-half": commsir.all_reduce("x", op="sum", outs="y"),
    "p269_tree-of-values-one-child-twice": commsir.all_reduce("x", op="sum", outs="y"),
    "p275_hierarchy-adds-own-node-twice": commsir.all_reduce("x", op="sum", outs="y"),
    "p276_scan-includes-itself": {"y": "sum(r, rank, x(r)[i])"},
    "p277_scan-by-distance": {"y": "sum(r, rank + 1, x(r)[i])"},
    "p278_weighted-average": {"y": "sum(r, x(r)[i] * w(r)[0]) / sum(r, w(r)[0])"},
    "p279_ulysses-heads-and-tokens": {"y": "x((i / 64) / 3)[((i / 64) % 3 * 2 + rank) * 64 + i % 64]"},
    "p326_moe-combine-weights-of-the-peer": {"y": "w[0] * x(0)[i] + w[1] * x(1)[i]"},
    "p327_all-gather-of-columns": {"y": "x(i / 64 % 2)[i / 128 * 64 + i % 64]"},
    "p328_cross-entropy-max-of-own": {"y": "sum(r, sum(j, 64, exp(x(r)[j] - max(q, max(k, 64, x(q)[k])))))"},
    "p329_clip-by-global-norm": {"y": "x[i] * rsqrt(sum(r, sum(j, 64, x(r)[j] * x(r)[j])))"},
    "p358_quantized-sum-scales-swapped": {"y": "x((rank + 1) % size)[i] * scale((rank + 1) % size)[0]"},
    "p359_reduce-scatter-with-remainder": {
        "y": "where(i / 64 < 3 - rank, sum(r, x(r)[(rank * 3 + i / 64) * 64 + i % 64]), y[i])"
    },
    "p360_xor-of-keys": {"y": "xor(r, x(r)[i])"},
    "p361_min-and-max-confused": {"y": "max(r, x(r)[i]) - min(r, x(r)[i])"},
    "p362_residual-added-on-every-rank": {"y": "sum(r, x(r)[i]) + res[i]"},
    "p363_scatter-by-index-of-the-row-before": {
        "y": "where(min(max(idx[1], 0), 1) == i / 64, x((rank + 1) % size)[64 + i % 64], "
        "where(min(max(idx[0], 0), 1) == i / 64, x((rank + 1) % size)[i % 64], y[i]))"
    },
    "p364_scatter-of-elements": {"y": "where(x[0] > 0, where(min(max(idx[0], 0), 3) == i, x[0], y[i]), y[i])"},
    "p365_scatter-into-a-peer": {
        "y": "where(min(max(slot((rank + 1) % size)[0], 0), 2) == i / 64, x((rank + 1) % size)[i % 64], 0)"
    },
    "p377_fold-of-five-unfolded-early": commsir.all_reduce("x", op="sum", outs="y"),
    "p396_bits-of-the-rank-reversed": {"y": "x(rank % 2 * 4 + rank / 2 % 2 * 2 + rank / 4)[i]"},
    "p397_matrix-transposed-in-place-of-rows": {"y": "x(i % 4)[i / 4 * 4 + rank]"},
    "p398_reduce-to-a-root-of-half": commsir.reduce("x", op="sum", root=2, outs="y"),
    "p399_gather-without-the-roots-own-part": commsir.gather("x", root=1, outs="y"),
    "p400_scatter-from-the-end": commsir.scatter("x", root=0, outs="y"),
    "p401_broadcast-of-the-last-launch": commsir.broadcast("x", root=1, outs="y"),
    "p402_product-of-ranks-and-one-twice": commsir.all_reduce("x", op="prod", outs="y"),
    "p403_softmax-over-ranks": {"y": "exp(x[i]) / sum(r, exp(x(r)[i]))"},
    "p404_mean-subtracted-with-another-length": {"y": "x[i] - sum(r, sum(j, 64, x(r)[j])) / 128"},
    "p405_integers-by-or-and-by-and": {"y": "or(r, x(r)[i])"},
    "p406_fused-bias-on-the-wrong-rank": {"y": "sum(r, x(r)[i]) + b[i]"},
    "p407_average-of-a-subgroup": commsir.all_reduce("x", op="avg", outs="y", team=("inner", 2)),
    "p408_gather-by-data-across-ranks": {"y": "x((rank + 1) % size)[min(max(idx[0], 0), 3) * 64 + i]"},
    "p409_accumulates-from-launch-to-launch": commsir.all_reduce("x", op="sum", outs="y"),
    "p410_every-rank-but-one-writes-the-tail": {"y": "where(i < 96, x((rank + 1) % size)[i], y[i])"},
    "p411_multimem-sum-and-own-share": commsir.all_reduce("x", op="sum", outs="y"),
}

#: What is still wrong, and ought to be what. This table has to shrink.
WRONG: dict[str, tuple[str, str]] = {}


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(re.sub(r"\W", "_", path.name), path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check(path: Path, computes: Any = None) -> commsir.CheckReport:
    """What the checker says of the kernel in a file; `computes` is what that says that it computes."""
    if path.suffix == ".mlir":
        text = path.read_text()
        if computes:
            text = text.replace("attributes {", f'attributes {{comms.computes = {{y = "{computes}"}}, ', 1)
        found = re.search(r"^// META (\{.*\})$", text, re.MULTILINE)
        meta: dict[str, Any] = json.loads(found[1]) if found else {}
        return commsir.check(text, ranks=meta.get("ranks", 4), **meta.get("kw", {}))
    module = load(path)
    if hasattr(module, "ORDER"):
        report = commsir.check(
            module.ORDER, ranks=getattr(module, "RANKS", 4), any_order=getattr(module, "ANY_ORDER", False)
        )
        assert isinstance(report, commsir.CheckReport)
        return report
    kernel = module.K
    if computes:
        said = commsir.kernel(computes=computes)(kernel.__commsir_function__)
        kernel = said.specialize(**kernel.dims, **kernel.attributes)
    report = kernel.check(ranks=getattr(module, "RANKS", 4), **getattr(module, "KW", {}))
    assert isinstance(report, commsir.CheckReport)
    return report


def judge(path: Path, computes: Any = None) -> str:
    """The verdict on it."""
    try:
        report = check(path, computes)
    except commsir.CheckError:
        return REFUTED
    # An open verdict says why, in every form of a report.
    assert (report.verdict == OPEN) == bool(report.proof.reasons)
    assert report.verdict in str(report)
    return report.verdict


@pytest.mark.parametrize("name", TWINS)
def test_verdicts(name: str) -> None:
    bad, good = sorted(CORPUS.glob(f"{name}.*"))
    if name in VALUES:
        expected = (PROVEN, PROVEN)
    elif name in ASSUMED:
        expected = (PROVEN, PROVEN)
        assert ASSUMED[name] in check(bad).proof.assumptions
    else:
        expected = DECIDED.get(name) or WRONG.get(name) or (REFUTED, PROVEN)
    assert (judge(bad), judge(good)) == expected


@pytest.mark.parametrize("name", VALUES)
def test_what_is_computed(name: str) -> None:
    bad, good = sorted(CORPUS.glob(f"{name}.*"))
    with pytest.raises(commsir.CheckError, match="expected is|other bits"):
        check(bad, VALUES[name])
    report = check(good, VALUES[name])
    assert report.verdict == PROVEN and report.proof.computes == ("y",)


def test_what_is_told() -> None:
    """Without the line `explain` says what arrays hold."""
    told = load(next(CORPUS.glob("p21_*.bad.py"))).K.explain(ranks=4)
    assert told["proof"]["computed"] == ["y[0, 64) of ranks 0 to 3: x(1) + x(2) + x(3)"]
    assert "computes: y[0, 64) of ranks 0 to 3: x(1) + x(2) + x(3)" in str(told)


def test_launches_that_are_followed() -> None:
    """A kernel that fails in launch 18 is refused, however few launches a run makes; `check(launches=5)` follows 5."""
    kernel = load(next(CORPUS.glob("p12_*.bad.py"))).K
    with pytest.raises(commsir.CheckError, match="in launch 18"):
        kernel.check(ranks=4)
    with pytest.raises(commsir.CheckError, match="in launch 18"):
        kernel.simulate(4, {}, launches=5)
    report = kernel.check(ranks=4, launches=5)
    assert report.verdict == OPEN and report.proof.launches == 5


def test_what_cannot_be_said() -> None:
    with pytest.raises(commsir.UsageError, match="computes is 7"):
        commsir.kernel(computes=7)
    with pytest.raises(commsir.UsageError, match="takes x, op, root, outs and team, not algorithm"):
        commsir.all_reduce("sum", algorithm="ring")
    with pytest.raises(commsir.UsageError, match="op of commsir.reduce_scatter is 'add'; it is one of sum, prod"):
        commsir.reduce_scatter("x", op="add")

    def k(x: object) -> None:
        pass

    with pytest.raises(commsir.UsageError, match="'summ' is neither a parameter of k nor one of sum, prod, min"):
        commsir.kernel(computes=commsir.all_reduce("summ"))(k)
    with pytest.raises(commsir.UsageError, match="'z' is neither a parameter of k"):
        commsir.kernel(computes={"x": commsir.all_gather("z")})(k)
    commsir.kernel(computes=commsir.all_reduce("x"))(k)


def test_tables_name_existing_pairs() -> None:
    named = [*DECIDED, *ASSUMED, *VALUES, *WRONG]
    assert len(TWINS) >= 450 and set(named) <= set(TWINS)
    assert len(named) == len(set(named)), "one table names a pair"
