"""Random kernels of matrix products beside communication: Python, the checker, the CPU world and PTX must agree.

For each program of matmul_programs.py:
  - the checker proves it, as a program is right as it is drawn; where data decide how many rows go where, it only
    finds no error, and synchronizations are not removed;
  - every array is what NumPy makes in float64 of the arrays that the step has read, within the error of docs/Spec.md;
  - another schedule, with late memory, has the same bits;
  - without one of its synchronizations it is refused, or it still computes the same bits in ten schedules;
  - with --emulate N, one of N programs is smaller and runs in the PTX emulator, with the same bits as in the CPU world.

Usage: matmuls.py [--programs N] [--seed S] [--seconds T] [--emulate N] [--keep FOLDER]
A failure prints the seed and the program, which FOLDER keeps: `matmuls.py --seed SEED --programs 1` runs it again.
"""

import argparse
import collections
import importlib.util
import pathlib
import random
import sys
import tempfile
import time
from types import ModuleType
from typing import Any

import commsir
import numpy as np
from matmul_programs import SYNC, Program

PTX = pathlib.Path(__file__).resolve().parents[1] / "lowering" / "ptx"
#: Threads that the emulator runs at a time, and lines of PTX times threads, at most.
MOST_THREADS, MOST_WORK = 512, 500_000
SCHEDULES_OF_MUTANTS = 10


class TooLong(Exception):
    """The emulator would take minutes."""


def load(text: str, folder: pathlib.Path, name: str) -> ModuleType:
    path = folder / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(f"{folder.name}_{name}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def simulate(program: Program, kernel: Any, seed: int, memory: str) -> Any:
    return kernel.simulate(
        program.ranks, program.given, blocks=program.blocks, launches=2, seed=seed, memory=memory, time_limit=120
    )


def bits(program: Program, report: Any) -> list[bytes]:
    return [array.tobytes() for matrix, _ in program.steps for array in report[matrix.name]]


def judge_run(program: Program, kernel: Any, seed: int) -> tuple[str, list[bytes]]:
    """What is wrong with the kernel on the CPU, and the bits of all its arrays."""
    verdict = kernel.check(ranks=program.ranks, blocks=program.blocks)
    if not verdict.proven and not program.counts:
        return f"not proven: {verdict}", []
    report = simulate(program, kernel, seed, "plain")
    right = bits(program, report)
    names = [*program.given, *(matrix.name for matrix, _ in program.steps)]
    if wrong := program.differences({name: [np.asarray(array) for array in report[name]] for name in names}):
        return wrong, right
    again = bits(program, simulate(program, kernel, seed + 1, "weak"))
    return "" if again == right else "another schedule, with late memory, has other bits", right


def judge_mutant(
    program: Program, right: list[bytes], seed: int, folder: pathlib.Path, counts: collections.Counter[str]
) -> str:
    """Without one of its synchronizations: refused, or not needed."""
    places = [number for number, line in enumerate(program.lines) if line.endswith(SYNC)]
    if not places or program.counts:
        return ""
    place = program.lots.choice(places)
    line = program.lines[place]
    program.lines[place] = line[: len(line) - len(line.lstrip())] + "pass"
    kernel = load(program.text(), folder, "mutant").f
    program.lines[place] = line
    try:
        kernel.check(ranks=program.ranks, blocks=program.blocks)
    except commsir.CheckError:
        counts["mutants refused"] += 1
        return ""
    counts["mutants accepted"] += 1
    for number in range(SCHEDULES_OF_MUTANTS):
        if bits(program, simulate(program, kernel, seed + number, ("plain", "weak")[number % 2])) != right:
            return f"accepted without {line.strip()}, and wrong in a schedule"
    return ""


def judge_ptx(program: Program, kernel: Any, seed: int, folder: pathlib.Path) -> str:
    """What is wrong with the kernel as PTX, on whole numbers, whose sums are exact in any order."""
    import emulate
    import emulator
    import memory

    path = folder / "program.mlir"
    path.write_text(str(kernel.specialize(ranks=program.ranks, blocks=program.blocks).ir), encoding="utf-8")
    lots, ctas = random.Random(seed), program.ranks * program.blocks
    threads = lots.choice([n for n in (32, 64, 128, 128, 128, 256) if n * ctas <= MOST_THREADS])
    options = f"blocks={program.blocks} threads={threads} chip={lots.choice(['sm_80', 'sm_90', 'sm_90', 'sm_100'])}"
    try:
        counts = {name: program.given[name] for name in program.counts}
        pair = emulate.Comparison(str(path), program.ranks, options, seed, weak=False, whole=True, given=counts)
        if pair.ptx.count("\n") * threads * ctas > MOST_WORK:
            raise TooLong
        pair.run(emulator.parse(pair.ptx), launches=2, continues=True)
    except (memory.Fault, SystemExit, NotImplementedError) as fault:
        return f"as PTX, {options}: {fault!r}"
    return ""


def judge(seed: int, folder: pathlib.Path, is_emulated: bool, counts: collections.Counter[str]) -> tuple[str, str]:
    """What is wrong with the program of a seed, and its text."""
    program = Program(random.Random(seed), is_emulated)
    text = program.text()
    try:
        kernel = load(text, folder, "program").f
        wrong, right = judge_run(program, kernel, seed)
        wrong = wrong or judge_mutant(program, right, seed, folder, counts)
        if is_emulated and not wrong:
            wrong = judge_ptx(program, kernel, seed, folder)
            counts["emulated"] += 1
    except TooLong:
        counts["too long to emulate"] += 1
    except Exception as error:  # Whatever is raised is a failure of this program.
        wrong = f"{type(error).__name__}: {error}"
    return wrong, text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--emulate", type=int, default=0)
    parser.add_argument("--keep", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()) / "commsir-matmuls")
    options = parser.parse_args()
    sys.path.insert(0, str(PTX))
    deadline, done, failed = time.monotonic() + options.seconds, 0, 0
    counts = collections.Counter[str]()
    for seed in range(options.seed, options.seed + options.programs):
        if done and time.monotonic() > deadline:
            break
        with tempfile.TemporaryDirectory() as folder:
            is_emulated = options.emulate > 0 and seed % options.emulate == 0
            wrong, text = judge(seed, pathlib.Path(folder), is_emulated, counts)
        done += 1
        if wrong:
            failed += 1
            options.keep.mkdir(parents=True, exist_ok=True)
            (options.keep / f"seed{seed}.py").write_text(f"# {wrong}\n".replace("\n", "\n# ")[:-2] + text, "utf-8")
            print(f"seed {seed}: {wrong}\n{text}", flush=True)
    print(", ".join(f"{name}: {number}" for name, number in sorted(counts.items())))
    print(f"{done} programs from seed {options.seed}, {failed} wrong")
    # Fewer would be a test of nothing.
    sys.exit(1 if failed or counts["mutants refused"] < done // 8 else 0)


if __name__ == "__main__":
    main()
