"""Runs the litmus tests of docs/Spec.md on the GPUs of this machine, many times each: no forbidden outcome may occur.

Usage: litmus.py [--bin FOLDER] [--target cuda|cpu] [--ranks 2] [--times 4096] [--runs 3] [--seed 1] [--only TEXT]
                 [--file FILE] [--json FILE] [--ptx FOLDER]

Takes each kernel of test/lowering/check-sync/litmus.mlir that has no race and at most `--ranks` ranks, and makes one
that does the same `--times` times in a launch, each time with its own cells and elements, after a barrier and a random
delay of each block. The project's own lowering compiles it. The values read are counted: an outcome that the test does
not list is a failure. Handshakes of packets, lines and poison, which reuse their slots, fail if a tile is torn or old.
An outcome that the model allows and the hardware never shows is no fault; the table has the counts.

Every poll has a time limit (--timeout of comms-run). --target cpu runs the same kernels in the CPU world with weak
memory. --ptx only writes their PTX into a folder, which needs no GPU. Ends with status 1 if something failed. Needs
NumPy.
"""

from __future__ import annotations

import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
LITMUS = ROOT / "test/lowering/check-sync/litmus.mlir"
CELLS = 3  # of the signal of each test
LENGTH = 64  # elements of a packet or poisoned tile
MOST = 400  # steps of a delay


@dataclass
class Test:
    """A kernel that repeats a litmus test, and the outcomes that may come of it."""

    name: str
    text: str
    ranks: int
    blocks: int
    allowed: set[str]
    #: Of each value of an outcome the rank that stores it; none: tiles, whose elements must be the turn's number.
    columns: list[int] = field(default_factory=list)
    counts: collections.Counter[str] = field(default_factory=collections.Counter)
    error: str = ""

    @property
    def forbidden(self) -> list[str]:
        return sorted(outcome for outcome in self.counts if outcome not in self.allowed)


DELAY = """    %long = memref.load %delays[%turn, %block] : memref<{times}x{blocks}xi64>
    %until = arith.index_cast %long : i64 to index
    %spun = scf.for %step = %k0 to %until step %k1 iter_args(%mixed = %long) -> (i64) {{
      %shifted = arith.shrui %mixed, %seven : i64
      %other = arith.xori %mixed, %shifted : i64
      %next = arith.muli %other, %odd : i64
      scf.yield %next : i64
    }}
    memref.store %spun, %sink[%block] : memref<{blocks}xi64>
"""

HEAD = """comms.kernel @{name}({arguments}%delays: memref<{times}x{blocks}xi64>, %sink: memref<{blocks}xi64>,
    %out: memref<{times}x{width}x{kind}>) attributes {{ranks = {ranks}, blocks = {blocks}}} {{
  %k0 = arith.constant 0 : index
  %k1 = arith.constant 1 : index
  %times = arith.constant {times} : index
  %seven = arith.constant 7 : i64
  %odd = arith.constant 6364136223846793005 : i64
"""


def repeat(part: str, times: int) -> Test | None:
    """The test of a part of the file; none: it has a race, and so no outcomes."""
    found = re.search(
        r"comms\.kernel @(\w+)\((.*?)\) attributes \{ranks = (\d+), blocks = (\d+)\} \{\n(.*?)\n\}", part, re.S
    )
    said = re.search(r"^// (outcomes|final): (.*) in (.*)$", part, re.M)
    if not found or not said:
        return None
    name, arguments, ranks, blocks, body = found[1], found[2], int(found[3]), int(found[4]), found[5]
    wanted = said[2].split()
    is_final = said[1] == "final"

    def widen(text: str) -> str:
        text = re.sub(r"(window|memref)<1xf32>", rf"\1<{times}xf32>", text)
        return text.replace(f"signal<{CELLS}>", f"signal<{CELLS * times}>")

    width = len(wanted)
    lines = [line for line in body.splitlines() if "comms.return" not in line and not line.strip().startswith("//")]
    first = next(i for i, line in enumerate(lines) if "scf.if" in line)
    before, inside = lines[:first], lines[first:]
    if "%block = comms.block_id" not in body:
        before.append("  %block = comms.block_id")
    extent = "grid" if blocks > 1 else "block"
    text = HEAD.format(
        name=name, arguments=widen(arguments) + ", ", times=times, blocks=blocks, width=width, kind="i64", ranks=ranks
    )
    text += widen("\n".join(before)) + "\n"
    text += f"  %cells = arith.constant {CELLS} : index\n  scf.for %turn = %k0 to %times step %k1 {{\n"
    text += "    %base = arith.muli %turn, %cells : index\n"
    for cell in range(CELLS):
        text += f"    %n{cell} = arith.constant {cell} : index\n    %i{cell} = arith.addi %base, %n{cell} : index\n"
    for column in range(width):
        text += f"    %o{column} = arith.constant {column} : index\n"
    text += f"    comms.barrier %team {extent} order relaxed\n" + DELAY.format(times=times, blocks=blocks)
    agent = ""
    for line in inside:
        if guard := re.search(r"scf\.if %at(\w+)", line):
            agent = guard[1].replace("_", ".")
        line = re.sub(r"(%s)\[%c(\d)\]", r"\1[%i\2]", line)
        line = re.sub(r"(comms\.tile_(?:store %\w+,|load) %\w+)\[%c0\]", r"\1[%turn]", line)
        text += "  " + widen(line) + "\n"
        read = re.match(r"\s*%(\w+) = comms\.(read_signal|tile_load|wait_signal)", line)
        for column, which in enumerate(wanted if read and not is_final else []):
            who, what = which.split(":")
            if not read or read[1] != what or agent not in (who, who.removesuffix(".0")):
                continue
            value = f"%{what}"
            if read[2] == "tile_load":
                value = f"%{what}_int"
                text += f"      %{what}_one = tensor.extract %{what}[%k0] : tensor<1xf32>\n"
                text += f"      {value} = arith.fptosi %{what}_one : f32 to i64\n"
            text += f"      memref.store {value}, %out[%turn, %o{column}] : memref<{times}x{width}xi64>\n"
    text += "  }\n"
    if is_final:
        text += finals(wanted, times, extent)
    columns = [int(which.split(":")[0].split(".")[0]) for which in wanted]
    return Test(name, text + "  comms.return\n}\n", ranks, blocks, set(said[3].split()), columns)


def finals(wanted: list[str], times: int, extent: str) -> str:
    """Reads cells when all have come."""
    text = f"  comms.barrier %team {extent}\n  scf.for %turn = %k0 to %times step %k1 {{\n"
    text += "    %base = arith.muli %turn, %cells : index\n"
    for column, which in enumerate(wanted):
        rank, cell = re.match(r"(\d+)(?:\.\d+)?:\w+\[(\d+)\]", which).groups()  # type: ignore[union-attr]
        text += f"""    %r{column} = arith.constant {rank} : index
    %n{column} = arith.constant {cell} : index
    %o{column} = arith.constant {column} : index
    %i{column} = arith.addi %base, %n{column} : index
    %here{column} = arith.cmpi eq, %rank, %r{column} : index
    %one{column} = arith.cmpi eq, %block, %k0 : index
    %both{column} = arith.andi %here{column}, %one{column} : i1
    scf.if %both{column} {{
      %last{column} = comms.read_signal %s[%i{column}] order acquire : !comms.signal<{CELLS * times}>
      memref.store %last{column}, %out[%turn, %o{column}] : memref<{times}x{len(wanted)}xi64>
    }}
"""
    return text + "  }\n"


def handshake(name: str, kind: str, slots: int, times: int) -> Test:
    """Two ranks send each other a tile in each turn, through slots that come round again, as protocols do."""
    element = "f32" if kind == "poison" else "i64"
    # A line holds 32 elements in 16 units, and has a rest of 2 behind all lines.
    lines = LENGTH // 32
    units = 16 * lines if kind == "lines" else LENGTH
    memory = f"{slots * (18 * lines if kind == 'lines' else units)}x{element}"
    init = ' {comms.hidden, comms.init = "poison"}' if kind == "poison" else ""
    assumes = " assumes store128_whole" if kind == "lines" else ""
    text = HEAD.format(
        name=name,
        arguments=f"%box: !comms.window<{memory}>{init}, ",
        times=times,
        blocks=1,
        width=LENGTH,
        kind="f32",
        ranks=2,
    )
    text += f"""  %team = comms.team world
  %rank = comms.rank %team
  %block = comms.block_id
  %peer = arith.subi %k1, %rank : index
  %slots = arith.constant {slots} : index
  %units = arith.constant {units} : index
  %all = arith.constant {LENGTH} : index
  %mine = comms.local %box : !comms.window<{memory}> -> memref<{memory}>
  %there = comms.peer %box at %peer of %team : !comms.window<{memory}> -> memref<{memory}>
  scf.for %turn = %k0 to %times step %k1 {{
    %slot = arith.remui %turn, %slots : index
    %at = arith.muli %slot, %units : index
    %number = arith.index_cast %turn : index to i32
    %value = arith.sitofp %number : i32 to f32
    %tile = comms.splat %value : f32 -> tensor<{LENGTH}xf32>
""" + DELAY.format(times=times, blocks=1)
    if kind == "poison":
        # The slot of the turn before is filled again; a fence stands for the end of a launch (M10).
        text += f"""    %before = arith.constant {slots - 1} : index
    %sum = arith.addi %turn, %before : index
    %old = arith.remui %sum, %slots : index
    %stale = arith.muli %old, %units : index
    comms.poison_store %tile, %there[%at] : tensor<{LENGTH}xf32>, memref<{memory}>
    comms.poison_fill %mine[%stale] count %all : memref<{memory}>
    %got = comms.poison_load %mine[%at] : memref<{memory}> -> tensor<{LENGTH}xf32>
    comms.fence acq_rel sys
"""
    else:
        text += f"""    %one = arith.constant 1 : i32
    %flag = arith.addi %number, %one : i32
    comms.packet_store %tile, %there[%at] flag %flag{assumes} : tensor<{LENGTH}xf32>, memref<{memory}>
    %got = comms.packet_load %mine[%at] flag %flag{assumes} : memref<{memory}> -> tensor<{LENGTH}xf32>
"""
    text += f"""    %row = arith.muli %turn, %all : index
    comms.tile_store %got, %out[%row] : tensor<{LENGTH}xf32>, memref<{times}x{LENGTH}xf32>
  }}
  comms.return
}}
"""
    return Test(name, text, 2, 1, {"whole"})


class Runner:
    def __init__(self, options: argparse.Namespace, folder: pathlib.Path) -> None:
        self.options = options
        self.folder = folder
        self.random = np.random.default_rng(options.seed)

    def run(self, test: Test, number: int) -> None:
        """One run of the kernel; counts what came of it."""
        file = self.folder / f"{test.name}.mlir"
        file.write_text(test.text)
        times = self.options.times
        for rank in range(test.ranks):
            # Now and then nobody, or one alone, is late.
            late = self.random.integers(0, MOST, (times, test.blocks)) * self.random.integers(
                0, 2, (times, test.blocks)
            )
            np.save(self.folder / f"delays-{rank}.npy", late.astype(np.int64))
        command = [
            str(self.options.bin / "comms-run"),
            str(file),
            f"--ranks={test.ranks}",
            f"--blocks={test.blocks}",
            f"--target={self.options.target}",
            f"--input=delays={self.folder}/delays-%r.npy",
            f"--output=out={self.folder}/out-%r.npy",
            "--no-check",
            "--quiet",
        ]
        if self.options.target == "cuda":
            command.append(f"--timeout={self.options.timeout}")
        else:
            command += ["--memory=weak", "--races=ignore", f"--seed={self.options.seed + number}"]
        limit = 60 + 4 * self.options.timeout
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
        except subprocess.TimeoutExpired:
            test.error = f"did not end within {limit:.0f} s"
            return
        if done.returncode:
            test.error = done.stderr.strip()[-1500:] or f"comms-run ended with {done.returncode}"
            return
        self.count(test)

    def count(self, test: Test) -> None:
        found = [np.load(self.folder / f"out-{rank}.npy") for rank in range(test.ranks)]
        if test.columns:
            values = [found[rank][:, column] for column, rank in enumerate(test.columns)]
            test.counts.update("".join(map(str, row)) for row in zip(*values, strict=True))
            return
        turns = np.arange(self.options.times, dtype=np.float32)[:, None]
        for one in found:
            is_whole = (one == one[:, :1]).all(axis=1)
            is_right = (one == turns).all(axis=1)
            test.counts["whole"] += int(is_right.sum())
            test.counts["old"] += int((is_whole & ~is_right).sum())
            test.counts["torn"] += int((~is_whole).sum())
        test.counts = +test.counts

    def write_ptx(self, test: Test) -> None:
        file = self.options.ptx / f"{test.name}.mlir"
        file.write_text(test.text)
        gpu = f"ranks={test.ranks} blocks={test.blocks} threads=32 check=false chip={self.options.chip}"
        command = [str(self.options.bin / "comms-translate"), "--comms-to-ptx", str(file), f"--gpu={gpu}"]
        done = subprocess.run([*command, "-o", str(file.with_suffix(".ptx"))], capture_output=True, text=True)
        test.error = done.stderr.strip()[-1500:] if done.returncode else ""


def make_tests(options: argparse.Namespace) -> list[Test]:
    parts = options.file.read_text().split("// -----")
    made = [test for part in parts if (test := repeat(part, options.times))]
    if options.file == LITMUS:
        made += [handshake(f"shake_{kind}", kind, slots, options.times) for kind, slots in SHAKES]
    parts = options.only.split(",")
    return [test for test in made if test.ranks <= options.ranks and any(part in test.name for part in parts)]


#: How protocols poll and reuse: ll and ll128 have two buffers, lamport has three.
SHAKES = (("packets", 2), ("lines", 2), ("poison", 3))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin")
    parser.add_argument("--target", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--times", type=int, default=4096)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=10, help="seconds that a poll may take")
    parser.add_argument("--only", default="", help="parts of names, separated by commas")
    parser.add_argument("--file", type=pathlib.Path, default=LITMUS)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--ptx", type=pathlib.Path, help="write PTX into this folder, and run nothing")
    parser.add_argument("--chip", default="sm_90")
    options = parser.parse_args()
    tests = make_tests(options)
    if options.ptx:
        options.ptx.mkdir(parents=True, exist_ok=True)
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        runner = Runner(options, pathlib.Path(name))
        for test in tests:
            if options.ptx:
                runner.write_ptx(test)
            else:
                for number in range(options.runs):
                    if not test.error:
                        runner.run(test, number)
            counts = ", ".join(f"{outcome} {test.counts[outcome]}" for outcome in sorted(test.counts))
            missing = sorted(test.allowed - set(test.counts)) if test.counts else []
            unseen = f"; not seen: {' '.join(missing)}" if missing else ""
            print(f"{test.name}: {counts}{unseen}", flush=True)
            if test.forbidden or test.error:
                failed += 1
                print(f"  FAILED: {test.error or 'forbidden: ' + ' '.join(test.forbidden)}", flush=True)
    if options.json:
        options.json.write_text(
            json.dumps(
                {t.name: {"counts": t.counts, "forbidden": t.forbidden, "error": t.error} for t in tests}, indent=1
            )
        )
    print(f"{len(tests)} litmus tests, {failed} failed")
    return 1 if failed or not tests else 0


if __name__ == "__main__":
    sys.exit(main())
