"""Tests of run.py and its modules that need no GPU. Environment: COMMSIR_BIN, COMMSIR_LIBRARIES."""

import json
import os
import pathlib
import subprocess
import sys
import zlib
from typing import Any

import ml_dtypes
import numpy as np
import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "python")]

import batches  # noqa: E402
import cases  # noqa: E402
import floats  # noqa: E402
import judges  # noqa: E402
import reference  # noqa: E402
import shipped  # noqa: E402
import switches  # noqa: E402

Array = np.ndarray[Any, Any]
DTYPES = {
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
}


def test_switches(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("1", "on", "True", "yes", "2", " "):
        monkeypatch.setenv("COMMSIR_SHARE_GPU", value)
        assert switches.is_on("COMMSIR_SHARE_GPU"), value
    for value in ("", "0", "n", "no", "Off", "false"):
        monkeypatch.setenv("COMMSIR_SHARE_GPU", value)
        assert not switches.is_on("COMMSIR_SHARE_GPU"), value


# ---------------------------------------------------------------------------------------------------
# Words and judges
# ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("element", [element for element in DTYPES if floats.BYTES[element] < 4])
def test_every_word_is_the_number_of_ml_dtypes(element: str) -> None:
    kind = floats.word(element)
    words = np.arange(1 << 8 * kind.itemsize).astype(kind)
    with np.errstate(invalid="ignore"):
        want = words.view(DTYPES[element]).astype(np.float32)
    got = floats.widen(words, element)
    assert np.array_equal(got, want, equal_nan=True)
    numbers = ~np.isnan(want)
    assert np.array_equal(np.signbit(got[numbers]), np.signbit(want[numbers]))


@pytest.mark.parametrize("element", DTYPES)
def test_numbers_are_rounded_as_the_reference_rounds_them(element: str) -> None:
    random = np.random.default_rng(1)
    parts = [random.integers(0, 2**32, 200_000).astype("<u4"), np.arange(1 << 18).astype("<u4") << 14]
    numbers = np.concatenate(parts).view("<f4")
    if floats.BYTES[element] < 4:
        # What lies between two of them, and outside that.
        every = floats.widen(np.arange(1 << 8 * floats.BYTES[element]).astype(floats.word(element)), element)
        every = np.unique(every[np.isfinite(every)]).astype(np.float64)
        between = ((every[1:] + every[:-1]) / 2).astype(np.float32)
        sides = [np.nextafter(between, np.float32(side)) for side in (np.inf, -np.inf)]
        numbers = np.concatenate([numbers, between, *sides, np.array([449, 464, 480, 61439, 61440, -61440], "<f4")])
    want = reference.convert(numbers, DTYPES[element]).view(floats.word(element))
    assert np.array_equal(floats.narrow(numbers, element), want)


def inputs(element: str, ranks: int) -> list[Array]:
    """Special values and numbers."""
    return [
        np.concatenate([cases.special(element, rank, 300), cases.random_numbers(element, rank, 300)])
        for rank in range(ranks)
    ]


@pytest.mark.parametrize("element", cases.EVERY_ELEMENT)
@pytest.mark.parametrize("algorithm", ["one_shot", "two_shot", "permutation"])
def test_sums_are_those_of_the_reference(element: str, algorithm: str) -> None:
    xs = inputs(element, 3)
    dtype = np.float64 if element == "f64" else DTYPES.get(element, floats.word(element))
    arrays = [x.view(dtype) for x in xs]
    with np.errstate(invalid="ignore"):
        # The reference's two-shot goes by way of f32; f64 travels as it is.
        combine = reference.one_shot if algorithm == "one_shot" or element == "f64" else reference.two_shot
        want = combine("sum", arrays).view(floats.word(element))
    judge = judges.Judge("all_reduce", element, 3, algorithm)
    assert np.array_equal(judge.outcomes(xs, 1)[0], want)
    assert judge.far(want, xs, 1) == ""


def test_rows_are_those_of_the_reference() -> None:
    xs = [cases.special_rows("bf16", rank, 20, 192) for rank in range(2)]
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        total = reference.rank_reduce("sum", [x.view(ml_dtypes.bfloat16) for x in xs])
        squares = reference.row_reduce_all("sum", total * total)
        want = reference.convert(total / np.sqrt(squares + np.float32(2.0**-20)), ml_dtypes.bfloat16).view("<u2")
    judge = judges.Judge("norm", "bf16", 2)
    assert np.array_equal(judge.outcomes(xs, 0)[0], want)
    assert judge.far(want, xs, 0) == ""


def test_a_ring_begins_somewhere_and_rounds_at_each_hop() -> None:
    xs = inputs("bf16", 3)
    wide = [x.view(ml_dtypes.bfloat16).astype(np.float32) for x in xs]
    got = judges.Judge("all_reduce", "bf16", 3, "ring").outcomes(xs, 0)
    for first in range(3):
        with np.errstate(invalid="ignore", over="ignore"):
            total = (wide[first] + wide[(first + 1) % 3]).astype(ml_dtypes.bfloat16).astype(np.float32)
            want = reference.convert(total + wide[(first + 2) % 3], ml_dtypes.bfloat16).view("<u2")
        assert np.array_equal(got[first], want)


def write(folder: pathlib.Path, name: str, element: str, arrays: list[Array]) -> None:
    for rank, array in enumerate(arrays):
        floats.save(f"{folder}/{name}-{rank}.npy", array, element)


def test_a_judge_sees_one_bit(tmp_path: pathlib.Path) -> None:
    xs = [cases.random_numbers("f8E4M3FN", rank, 100) for rank in range(4)]
    judge = judges.Judge("all_reduce", "f8E4M3FN", 4)
    ys = [judge.outcomes(xs, rank)[0] for rank in range(4)]
    write(tmp_path, "x", "f8E4M3FN", xs)
    write(tmp_path, "y", "f8E4M3FN", ys)
    assert judge.wrong(tmp_path) == ""
    ys[2][17] ^= 1
    write(tmp_path, "y", "f8E4M3FN", ys)
    assert "different bits" in judge.wrong(tmp_path)
    write(tmp_path, "y", "f8E4M3FN", [ys[2]] * 4)
    assert "rank 0 is not what the Spec says (Bits): element 17: got 0x" in judge.wrong(tmp_path)


def test_a_judge_finds_results_far_from_float64() -> None:
    xs = [cases.random_numbers("f32", rank, 100) for rank in range(2)]
    judge = judges.Judge("reduce_scatter", "f32", 2)
    got = judge.outcomes(xs, 1)[0]
    assert judge.far(got, xs, 1) == ""
    got[3] += 64
    assert "element 3" in judge.far(got, xs, 1)
    got[3] = 0x7FC00000
    assert "got nan" in judge.far(got, xs, 1)


def test_other_ranks_keep_their_arrays() -> None:
    xs = [np.full(4, rank + 1, "<i4") for rank in range(3)]
    for op, root in (("reduce", 1), ("gather", 1), ("send_recv", 2)):
        judge = judges.Judge(op, "i32", 3, root=root)
        holds = [bool(judge.moved(xs, rank).any()) for rank in range(3)]
        assert holds == [rank == (0 if op == "send_recv" else 1) for rank in range(3)]
    rows = ((0, 2, 1), (3, 0, 0), (1, 1, 1))
    judge = judges.Judge("all_to_all_v", "i32", 3, rows=rows)
    got = judge.moved([np.arange(9).reshape(9, 1) + 10 * rank for rank in range(3)], 0)
    assert got.ravel().tolist() == [10, 11, 12, 20, 0, 0, 0, 0, 0]


# ---------------------------------------------------------------------------------------------------
# Cases
# ---------------------------------------------------------------------------------------------------


def shipped_cases(folder: pathlib.Path, level: str, ranks: int = 8) -> cases.Cases:
    made = cases.Cases(folder, level, [ranks])
    shipped.add_shipped(made)
    return made


def test_every_file_has_cases_of_its_run_lines(tmp_path: pathlib.Path) -> None:
    made = shipped_cases(tmp_path, "full")
    names = [case.name for case in made.all]
    assert len(names) == len(set(names))
    for path in [*HERE.parent.glob("exec/*.mlir"), *HERE.parent.glob("examples/*.mlir")]:
        assert any(name.startswith(f"{path.parent.name}/{path.name} ") for name in names), path
    assert sum(name.startswith("exec/all-reduce.mlir ") for name in names) == 4 * 5 * 2
    assert sum(name.startswith("exec/packets.mlir ") for name in names) == 9
    chosen = next(case for case in made.all if case.name == "exec/channels.mlir lamport b9 r4")
    assert chosen.source.name == "lamport.mlir"
    assert chosen.inputs == [f"x={chosen.script.folder}/x-%r.npy"]
    assert {"all", "pairs", "one", "x"} == set(chosen.outputs)
    assert chosen.tolerance == ["--bitwise"]
    assert chosen.common == ["--launches", "7", "--blocks", "9"]


def test_arrays_made_behind_a_run_are_others(tmp_path: pathlib.Path) -> None:
    made = shipped_cases(tmp_path, "quick")
    lines = [case for case in made.all if case.name.startswith("exec/lines.mlir")]
    assert [case.source.stem for case in lines] == ["lines", "i8", "f64"]
    assert len({case.inputs[0] for case in lines}) == 3
    assert lines[1].script.run() == ""
    folder = lines[1].script.folder
    assert np.load(folder / "x-0.npy").dtype == np.int8
    assert "384xi8" in (folder / "i8.mlir").read_text()


def test_all_reduces_run_on_the_ranks_that_there_are(tmp_path: pathlib.Path) -> None:
    made = shipped_cases(tmp_path, "quick", 2)
    chosen = [case for case in made.all if case.name.startswith("examples/layernorm.mlir")]
    assert [case.ranks for case in chosen] == [2, 2]
    assert chosen[0].script.run() == ""
    assert len(list(chosen[0].script.folder.glob("y-*.npy"))) == 2
    assert any(name.startswith("exec/all-to-all.mlir") for name in made.left_out)


def test_an_option_that_is_not_known_is_said(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "new.mlir"
    path.write_text("// RUN: comms-run %s --ranks 2 --backwards\ncomms.kernel @k(%x: memref<4xf32>) {\n")
    made = cases.Cases(tmp_path, "quick", [2])
    with pytest.raises(ValueError, match="--backwards"):
        shipped.Test(path, made, 0).read()
    path.write_text("// RUN: ls %t\ncomms.kernel @k(%x: memref<4xf32>) {\n")
    with pytest.raises(ValueError, match="ls %t"):
        shipped.Test(path, made, 0).read()


def test_without_ml_dtypes_inputs_are_random(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipped, "lacks_types", lambda: True)
    made = shipped_cases(tmp_path, "quick")
    by_name = {case.name.split()[0]: case for case in made.all}
    assert by_name["exec/bits-mixed.mlir"].inputs == ["x=random:1", "scale=random:2"]
    assert not by_name["exec/bits-mixed.mlir"].expects
    assert by_name["exec/all-to-all-v.mlir"].expects
    # What sed makes is made.
    assert by_name["exec/packets.mlir"].script.run() == ""
    assert by_name["exec/packets.mlir"].source.exists()
    # A ring's order is the GPUs' own: what it gives is compared with what NumPy expects.
    rings = [case for case in made.all if case.own_order]
    assert rings and all(case.expects and not case.at_random for case in rings)
    assert by_name["exec/bits-mixed.mlir"].at_random and not by_name["exec/all-to-all-v.mlir"].at_random


def test_examples_are_made_without_ml_dtypes(tmp_path: pathlib.Path) -> None:
    """To the bit what ml_dtypes rounds, by a Python that cannot import it."""
    (tmp_path / "ml_dtypes.py").write_text("raise ImportError('not here')\n")
    command = [sys.executable, str(HERE.parent / "examples/make.py"), "fp8-quantize-row", str(tmp_path), "--ranks", "2"]
    subprocess.run(command, env={**os.environ, "PYTHONPATH": str(tmp_path)}, check=True)
    x = [np.load(tmp_path / f"x-{rank}.npy").view(ml_dtypes.bfloat16) for rank in range(2)]
    random = np.random.default_rng(zlib.crc32(b"fp8-quantize-row"))
    for part in x:
        assert (part == random.standard_normal((7, 64)).astype(ml_dtypes.bfloat16)).all()
    rows = sum(part.astype(np.float64) for part in x)
    scale = np.load(tmp_path / "scale-0.npy")
    q = np.load(tmp_path / "q-0.npy").view(ml_dtypes.float8_e4m3fn)
    assert (q == (rows / scale).astype(ml_dtypes.float8_e4m3fn)).all()


def test_every_operation_way_and_type_has_a_case(tmp_path: pathlib.Path) -> None:
    made = cases.Cases(tmp_path, "quick", [4])
    made.collectives()
    made.permutations()
    made.specials()
    judged = [(judge, case) for case in made.all for judge in case.judges]
    for op in cases.OPS:
        for algorithm in cases.ALGORITHMS.get(op, ["one_shot"]):
            assert any(judge.op == op and judge.algorithm == algorithm for judge, _ in judged), (op, algorithm)
    for way in cases.WAYS:
        for op in way.ops:
            assert any(case.name.startswith(f"{op} permutation ") and way.name in case.name for case in made.all)
    special = [judge for judge, case in judged if case.group == "special values"]
    for element in cases.ELEMENTS:
        assert any(judge.element == element and judge.op == "all_reduce" for judge in special), element
        for op in ("all_gather", "all_to_all", "broadcast"):
            assert any(judge.element == element and judge.op == op for judge in special), (op, element)
    assert all(
        case.own_order == (case.judges[0].algorithm == "ring") for case in made.all if "norm" in case.judges[0].op
    )


@pytest.mark.parametrize("way", cases.WAYS, ids=lambda way: way.name)
def test_each_way_is_another_program(tmp_path: pathlib.Path, way: cases.Way) -> None:
    """The attributes of a way change the code for a GPU: its arrays are large enough for that."""
    texts = []
    none: dict[str, int] = {}
    for numbers in (way.numbers, none):
        source = tmp_path / "kernel.mlir"
        source.write_text(cases.kernel([way.operand(way.ops[-1], "f32", 4)], 4, numbers))
        threads = cases.WHOLE_THREADS if way.whole else 512
        command = [f"{os.environ['COMMSIR_BIN']}/comms-translate", "--comms-to-ptx", str(source)]
        command += [f"--gpu=ranks=4 blocks=4 threads={threads} chip=sm_90 algorithm=permutation protocol=push"]
        texts.append(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert texts[0] != texts[1]


# ---------------------------------------------------------------------------------------------------
# Runs
# ---------------------------------------------------------------------------------------------------

#: Answers each line with what the text of its kernel says.
STAND_IN = f"""#!{sys.executable}
import os, pathlib, shlex, signal, sys
for line in sys.stdin:
    said = pathlib.Path(shlex.split(line)[0]).read_text()
    if said == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    print(said, flush=True)
"""


def answer(folder: pathlib.Path, said: str, **fields: Any) -> cases.Case:
    """The state of a case whose run says this."""
    program = folder / "stand-in"
    program.write_text(STAND_IN)
    program.chmod(0o755)
    (folder / "case").mkdir(exist_ok=True)
    (folder / "kernel.mlir").write_text(said)
    case = cases.Case(name="a", group="a", source=folder / "kernel.mlir", ranks=2, folder=folder / "case", **fields)
    batches.Runner(str(program), 2, 60).cpu([case])
    return case


REFUSED = json.dumps({"exit_code": 3, "error": "lowering failed", "diagnostics": ["it makes every NaN canonical"]})


@pytest.mark.parametrize("status", [1, 2, 3, 4, 5, 6, 7])
def test_whatever_the_cpu_world_cannot_do_fails(tmp_path: pathlib.Path, status: int) -> None:
    case = answer(tmp_path, json.dumps({"exit_code": status, "error": "so it is"}))
    assert case.state == "failed"
    assert f"ends with {status}: so it is" in case.text


def test_a_crash_of_the_cpu_world_fails(tmp_path: pathlib.Path) -> None:
    case = answer(tmp_path, "die")
    assert case.state == "failed"
    assert "ended with status -9" in case.text


def test_a_refusal_is_one_for_its_reason_alone(tmp_path: pathlib.Path) -> None:
    assert answer(tmp_path, REFUSED).state == "failed"
    assert answer(tmp_path, REFUSED, refusal="it makes every NaN canonical").state == "refused"
    assert answer(tmp_path, REFUSED, refusal="it marks empty memory").state == "failed"
    case = answer(tmp_path, json.dumps({"exit_code": 0}), refusal="it makes every NaN canonical")
    assert case.state == "failed"
    assert "had to refuse this" in case.text


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(HERE / "run.py"), "--bin", os.environ["COMMSIR_BIN"], *arguments]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})


def test_references_of_shipped_kernels(tmp_path: pathlib.Path) -> None:
    """Of the kernels of test/exec, every 4th: lit runs the lines of all."""
    chosen = ("--ranks", "4", "--only", "exec/", "--sample", "4")
    done = run("--cpu-only", *chosen, "--json", str(tmp_path / "said.json"))
    assert done.returncode == 0, done.stdout + done.stderr
    said = json.loads((tmp_path / "said.json").read_text())
    assert len(said["cases"]) > 15
    assert {case["state"] for case in said["cases"]} == {"reference"}
    assert "left out, for they need more GPUs than --ranks says" in done.stdout


def test_references_of_what_is_made() -> None:
    """Of all that is made, every 41st."""
    done = run("--cpu-only", "--ranks", "3", "--sample", "41")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("count", [129, 64])
def test_gpus_that_pretend(tmp_path: pathlib.Path, count: int) -> None:
    """Over a driver that adds up `count` elements: a ring is run twice, and elements that are missing are seen."""
    fake = pathlib.Path(os.environ["COMMSIR_LIBRARIES"]) / "fake-cuda"
    if not fake.is_dir():
        pytest.skip("built without CUDA")
    listing = tmp_path / "nvidia-smi"
    listing.write_text("#!/bin/sh\necho 'GPU 0: pretended'\necho 'GPU 1: pretended'\n")
    listing.chmod(0o755)
    only = ("--ranks", "2", "--only", "all_reduce ring push 129 f32 r2", "--json", str(tmp_path / "said.json"))
    done = run(
        *only,
        PATH=f"{tmp_path}:{os.environ['PATH']}",
        LD_LIBRARY_PATH=f"{fake}:{os.environ.get('LD_LIBRARY_PATH', '')}",
        COMMSIR_FAKE_GPUS="2",
        COMMSIR_FAKE_KERNEL=f"sum {count}",
        COMMSIR_CACHE_DIR=str(tmp_path / "cache"),
    )
    states = {case["name"]: case["state"] for case in json.loads((tmp_path / "said.json").read_text())["cases"]}
    assert states["all_reduce ring push 129 f32 r2"] == ("ok" if count == 129 else "failed"), done.stdout + done.stderr
    assert done.returncode == (0 if count == 129 else 1)
