"""Random changes to saved runs: each must replay, or be refused with an error of CommsIR.

Changes affect everything in the file: members of the ZIP file, their names, sizes, flags and bytes, the fields of
run.json, the kernel, the arrays. Any other exception is a fault. A replay is also at fault if it takes more than LIMIT
seconds or more than MEMORY bytes, or if it changes the folder that it runs in.

Usage: saved_runs.py [--runs N] [--seed S] [--seconds T] [--keep FOLDER] [--corpus FOLDER]
Files in the corpus are replayed first. A failure keeps the file in FOLDER.
"""

import argparse
import collections
import io
import json
import os
import pathlib
import random
import resource
import sys
import tempfile
import time
import warnings
import zipfile
from typing import Any

import commsir
import numpy as np

LIMIT = 30
MEMORY = 4 << 30

KERNEL = """comms.kernel @k(%x: memref<16xf32>, %w: !comms.window<8xbf16>, %s: index) attributes {blocks = 1} {
  %c = arith.constant 5 : index
  %v = memref.load %x[%c] : memref<16xf32>
  %i = arith.fptosi %v : f32 to i64
  %n = arith.index_cast %i : i64 to index
  %w2 = memref.load %x[%n] : memref<16xf32>
  memref.store %w2, %x[%c] : memref<16xf32>
  comms.return
}"""
TEXTS = ["", "x" * 300, "../../x", "/etc/passwd", "%r", "\0", "é", "f32", "bf16", "f4E2M1FN", "i1", "i4", "index"]
NUMBERS: list[Any] = [0, -1, 1, 3, 7, 16, 17, 1 << 31, (1 << 63) - 1, -(1 << 63), 1 << 64, 1e308, -0.5, float("nan")]
SHAPES: list[Any] = [[], {}, [16], [8, 2], [-1], [0], ["16"], [1 << 62, 4], [1 << 32, 1 << 32], [[16]], [1] * 40]
VALUES: list[Any] = [*TEXTS, *NUMBERS, *SHAPES, None, True, False]
OPTIONS = ["trace", "inputs", "target", "fuzz", "launches", "blocks", "max_steps", "kernel", "file", "workers", "seed"]
OPTIONS += ["memory_limit", "produce", "types", "shapes", "ranks", "scalars", "time_limit", "total_time", "instrument"]
OPTIONS += ["check", "check_events", "algorithm", "protocol", "chip", "threads", "shuffle", "fast", "expect", "batch"]
NAMES = ["run.json", "kernel.mlir", "arrays/x/0", "arrays/x/7", "arrays/../0", "../x", "/x", "arrays/x/-1"]
NAMES += ["arrays/x/99999999", "arrays//0", "arrays/x", "a\\b", "arrays/x/0/", "run.json/", "RUN.JSON", "arrays/x/00"]
#: Headers of .npy files, which no member of a saved run is.
NPY = [b"\x93NUMPY\x01\x00", b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }\n"]


class Mutator:
    def __init__(self, seed: int, base: dict[str, bytes]) -> None:
        self.random = random.Random(seed)
        self.base = base

    def value(self, value: Any) -> Any:
        """The value with one change somewhere in it."""
        rnd = self.random
        if not isinstance(value, dict | list) or not value or rnd.random() < 0.1:
            if isinstance(value, int) and rnd.random() < 0.4:
                return value + rnd.choice([-1, 1, 1 << 31, 1 << 62])
            return rnd.choice(VALUES)
        if isinstance(value, dict):
            made = dict(value)
            key = rnd.choice(list(made))
            kind = rnd.random()
            if kind < 0.1:
                del made[key]
            elif kind < 0.2:
                made[rnd.choice([*OPTIONS, *TEXTS])] = rnd.choice([made[key], *VALUES])
            else:
                made[key] = self.value(made[key])
            return made
        made_list = list(value)
        at = rnd.randrange(len(made_list))
        made_list[at : at + 1] = rnd.choice([[], [made_list[at]] * 2, [self.value(made_list[at])]])
        return made_list

    def damage(self, data: bytes) -> bytes:
        rnd = self.random
        kind = rnd.randrange(6)
        if kind == 0 or not data:
            return rnd.choice([b"", rnd.choice(NPY), rnd.randbytes(rnd.randrange(200))])
        if kind == 1:
            return data[: rnd.randrange(len(data))]
        if kind == 2:
            return data * rnd.choice([2, 3])
        made = bytearray(data)
        for _ in range(rnd.randint(1, 8)):
            at = rnd.randrange(len(made))
            if kind == 3:
                made[at] = rnd.randrange(256)
            elif kind == 4:
                made[at] ^= 1 << rnd.randrange(8)
            else:
                made[at : at + rnd.randrange(4)] = rnd.choice([b"-", b"((((", b"9999999999", b"?", b"%", b'"', b"\xff"])
        return bytes(made)

    def file(self) -> bytes:
        """A ZIP file."""
        rnd = self.random
        files = dict(self.base)
        head = json.loads(files["run.json"])
        for _ in range(rnd.randint(0, 3)):
            head = self.value(head)
        files["run.json"] = json.dumps(head).encode()
        for name in list(files):
            if rnd.random() < 0.1:
                files[name] = self.damage(files[name])
            if rnd.random() < 0.04:
                del files[name]
        entries = list(files.items())
        if entries and rnd.random() < 0.15:
            entries.append((rnd.choice(NAMES), rnd.choice(entries)[1]))
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as made:
            for name, data in entries:
                part = zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0))
                part.compress_type = rnd.choice([zipfile.ZIP_STORED] + [zipfile.ZIP_DEFLATED] * 6 + [zipfile.ZIP_LZMA])
                part.external_attr = rnd.choice([0] * 20 + [0o120777 << 16, 0o040755 << 16, 0xFFFFFFFF])
                made.writestr(part, data)
        whole = bytearray(packed.getvalue())
        if rnd.random() < 0.2:
            for _ in range(rnd.randint(1, 4)):  # Of headers and the central directory, mostly.
                whole[rnd.choice([rnd.randrange(len(whole)), -rnd.randint(1, min(len(whole), 400))])] = rnd.randrange(
                    256
                )
        return bytes(whole)


def judge(path: pathlib.Path) -> tuple[str, str]:
    """What came of it, and what is wrong with that."""
    begun = time.monotonic()
    try:
        commsir.replay(path, time_limit=2, max_steps=100_000)
        said = "ran"
    except commsir.CommsError as error:
        said = type(error).__name__
        if not str(error).strip():
            return said, "an error without a text"
    except Exception as error:
        return "wrong", f"{type(error).__name__}: {error}"
    took = time.monotonic() - begun
    return said, f"it took {took:.1f} s" if took > LIMIT else ""


def make_base(folder: pathlib.Path) -> dict[str, bytes]:
    arrays = {"x": [np.full(16, 1e9, np.float32)] * 2}
    try:
        commsir.simulate(KERNEL, ranks=2, arrays=arrays, scalars={"s": 3})
    except commsir.CommsError as error:
        error.save(folder / "base.zip")
    with zipfile.ZipFile(folder / "base.zip") as file:
        return {name: file.read(name) for name in file.namelist()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--keep", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()) / "commsir-saved-runs")
    parser.add_argument("--corpus", type=pathlib.Path, default=pathlib.Path(__file__).parent / "corpus/saved-runs")
    options = parser.parse_args()
    deadline = time.monotonic() + options.seconds
    warnings.filterwarnings("ignore", "Duplicate name")  # Of a part that is there twice on purpose.
    resource.setrlimit(resource.RLIMIT_AS, (2 * MEMORY, 2 * MEMORY))
    counts: collections.Counter[str] = collections.Counter()

    def note(path: pathlib.Path, what: str) -> None:
        said, wrong = judge(path)
        counts[said] += 1
        if not wrong:
            return
        counts["wrong"] += said != "wrong"
        options.keep.mkdir(parents=True, exist_ok=True)
        kept = options.keep / f"{what}.zip"
        kept.write_bytes(path.read_bytes())
        print(f"WRONG {what}: {wrong}\n  {kept}", flush=True)

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        base = make_base(folder)
        path = folder / "run.zip"
        os.chdir(folder)
        for seed in sorted(options.corpus.glob("*.zip")):
            note(seed.resolve(), seed.stem)
        for number in range(options.seed, options.seed + options.runs):
            if time.monotonic() > deadline:
                break
            path.write_bytes(Mutator(number, base).file())
            note(path, str(number))
            if {one.name for one in folder.iterdir()} != {"base.zip", "run.zip"}:
                print(f"WRONG {number}: it wrote {list(folder.iterdir())}")
                counts["wrong"] += 1
                break
    if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 > MEMORY:
        print(f"WRONG: more than {MEMORY} bytes of memory")
        counts["wrong"] += 1
    print(", ".join(f"{name}: {number}" for name, number in sorted(counts.items())))
    print(f"{sum(counts.values())} runs from seed {options.seed}")
    # Fewer that get to the run would be a test of nothing.
    sys.exit(1 if counts["wrong"] or counts["UsageError"] < 5 or counts["BoundsError"] < 5 else 0)


if __name__ == "__main__":
    main()
