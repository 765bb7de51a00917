"""Compiles what is shipped to PTX for one chip, beyond the bf16 collectives of one shape; ptxas must accept all.

shipped.py PTXAS CHIP DEVICE_LIBRARY [OPTIONS]

  programs  the executed tests, the demos and the kernels over GIN. RUN lines make variants of some by sed; these are
            divided among the chips
  types     every collective by every algorithm and protocol, with other types than in every.py. The types of a
            combination are divided among the chips, so that the three tests together have them all
  tables    the configs that the shipped tables choose, by comms-bench --explain: on sm_90, where the tables were
            measured, all different ones; on other chips every third

every.py finds the protocols and algorithms.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(__file__))
from every import OPERATIONS, expand, kernel, known
from sweep import check_rules

TEST = pathlib.Path(__file__).resolve().parents[2]
CHIPS = ["sm_80", "sm_90", "sm_100"]
ARITHMETIC = ["f16", "f32", "f8E4M3FN", "f8E5M2", "i32", "i8"]
# What only moves is of eight or of thirty-two bits, or of sixty-four.
MOVED = ["i8", "f32", "i64"]
# Functions that are expanded into polynomials, of which some have fused products and sums of their own; of sums and
# products that the kernel has in addition to them nothing is told then.
POLYNOMIALS = re.compile(r"\bmath\.(?!absf|ceil|floor|is|rsqrt|sqrt)")
# A contraction fuses the product of a block's sum and its scales with the addition to the others' sum.
SCALED = re.compile(r"\bscaled by\b")
UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20}


class Assembler:
    def __init__(self, ptxas: str, chip: str, library: str, options: list[str], folder: str) -> None:
        self.ptxas, self.chip, self.library, self.options = ptxas, chip, library, options
        self.source, self.ptx = os.path.join(folder, "a.mlir"), os.path.join(folder, "a.ptx")

    def take(self, name: str, text: str, gpu: str) -> int:
        """Assembles the kernels of `text`; returns how many there are, and ends the program where one cannot be."""
        pathlib.Path(self.source).write_text(text)
        where = f"{name} [{gpu}] for {self.chip}"
        made = subprocess.run(
            ["comms-translate", "--comms-to-ptx", self.source, f"--gpu={gpu} check=false chip={self.chip}"]
            + [f"--device-library={self.library}"],
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode:
            sys.exit(f"{where}: comms-translate failed\n{made.stderr[:2000]}")
        # Kernels alone: what is linked in of NCCL's library follows its own rules.
        rules = "\n".join(re.findall(r"^\.visible \.entry.*?^}", made.stdout, re.DOTALL | re.MULTILINE))
        check_rules(rules, where, allow_fma=bool(POLYNOMIALS.search(text) or SCALED.search(text)))
        pathlib.Path(self.ptx).write_text(made.stdout)
        command = [self.ptxas, f"-arch={self.chip}", *self.options, self.ptx, "-o", os.devnull]
        assembled = subprocess.run(command, capture_output=True, text=True, check=False)
        if assembled.returncode:
            sys.exit(f"{where}: ptxas failed\n{assembled.stderr[:2000]}")
        return made.stdout.count(".visible .entry")


def programs(assembler: Assembler) -> str:
    files = [path for folder in ("exec", "demo", "gpu/gin") for path in sorted((TEST / folder).glob("*.mlir"))]
    turn, count = CHIPS.index(assembler.chip), 0
    for path in files:
        text = path.read_text()
        # sm_80 has no such instructions, and the lowering says so.
        if assembler.chip == "sm_80" and path.name == "multimem.mlir":
            continue
        made = re.findall(r"sed 's/(\w+)/(\w+)/g?' %s", text)
        variants = [text.replace(word, value) for word, value in made] or [text]
        ranks = re.search(r"\branks = (\d+)", text) or re.search(r"--ranks (\d+)", text)
        gpu = f"ranks={ranks[1] if ranks else 4} blocks=2 threads=128"
        for variant in variants[turn :: len(CHIPS)] if len(made) > 1 else variants:
            # The demo's arrays have as many rows as somebody gives it.
            count += assembler.take(path.name, variant.replace("<?x", "<192x"), gpu)
    return f"{count} kernels of {len(files)} files"


def types(assembler: Assembler) -> str:
    turn = CHIPS.index(assembler.chip)
    algorithms, protocols = known("algorithm"), known("protocol")
    wanted = {}
    for operation in OPERATIONS:
        reduces = operation[1].startswith(("sum", "max"))
        number = 0
        for algorithm in algorithms:
            for protocol in protocols:
                number += 1
                # Over three chips all types of sums, and one type of each move.
                first = (number + turn * 2) % len(ARITHMETIC)
                some = [ARITHMETIC[first], ARITHMETIC[(first + 1) % 6]] if reduces else [MOVED[(number + turn) % 3]]
                for element in some:
                    text = kernel(operation, algorithm, protocol).replace("xbf16>", f"x{element}>")
                    name = f"{operation[0]}__{algorithm}__{protocol}"
                    wanted[f"{name}__{element}"] = text.replace(f"@{name}(", f"@{name}__{element}(")
    expanded = expand("// -----\n".join(wanted.values())).stdout
    usable = [name for name in wanted if f"@{name}(" in expanded]
    count = assembler.take("types", "".join(wanted[name] for name in usable), "blocks=2 threads=128")
    if count != len(usable):
        sys.exit(f"{assembler.chip}: {len(usable)} kernels, but {count} entries")
    return f"{count} kernels of {len({name.rsplit('__', 1)[1] for name in usable})} types"


def explain(table: pathlib.Path, ranks: int, what: str) -> list[tuple[str, ...]]:
    """(operation, bytes, unit, rows, columns, algorithm, protocol, shape) of each choice by that table."""
    command = ["comms-bench", "--explain", "--chip", "sm_90", "--ranks", str(ranks), *what.split()]
    environment = {**os.environ, "COMMSIR_TABLES": str(table)}
    told = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
    found = re.findall(
        r"^(\w+) of ([\d.]+) (B|KiB|MiB) bf16(?: \((\d+) x (\d+)\))?, .*?: (\w+)/(\w+) (.*?)"
        rf", by the table {table.stem} ",
        told,
        re.MULTILINE,
    )
    return [tuple(row) for row in found]


def chosen_text(name: str, row: tuple[str, ...], ranks: int) -> str:
    operation, size, unit, rows, columns, *_ = row
    if rows:
        text = (TEST / "lowering/ptx/cluster-row.mlir").read_text().replace("4x8192", f"{rows}x{columns}")
        return text.replace("8192", columns).replace("@rms(", f"@{name}(")
    elements = int(float(size) * UNITS[unit]) // 2
    before = {"all_reduce": "sum ", "reduce_scatter": "sum ", "broadcast": "root 0 "}.get(operation, "")
    x = elements * ranks if operation == "reduce_scatter" else elements
    y = elements * ranks if operation == "all_gather" else elements
    x_type, y_type = f"!comms.window<{x}xbf16>", f"!comms.window<{y}xbf16>"
    return f"""comms.kernel @{name}(%x: {x_type}, %y: {y_type}) {{
  %team = comms.team world
  comms.{operation} {before}%team ins(%x : {x_type}) outs(%y : {y_type})
  comms.return
}}
"""


def tables(assembler: Assembler) -> str:
    differing: dict[tuple[str, ...], tuple[str, int, tuple[str, ...]]] = {}
    for table in sorted((TEST.parent / "runtime/choose/tables").glob("*.json")):
        ranks = json.loads(table.read_text())["ranks"]
        rows = explain(table, ranks, "--op all --sizes 1K..256M*2")
        rows += explain(
            table, ranks, "--op all_reduce_rmsnorm --rows 1,2,8,16,32,64,128,256,512 --hidden 4096,5120,6144,7168,8192"
        )
        for row in rows:
            operation, _, _, row_count, columns, algorithm, protocol, shape = row
            without_blocks = re.sub(r"\bb\d+ ", "", shape)
            key = (str(ranks), operation, columns and "rows", algorithm, protocol, without_blocks)
            differing.setdefault(key, (f"way_{len(differing)}", ranks, row))
    ways = list(differing.values())
    if assembler.chip != "sm_90":
        ways = ways[CHIPS.index(assembler.chip) :: 3]
    for name, ranks, row in ways:
        numbers = dict(re.findall(r"\b([btc])(\d+)", row[7]))
        cluster = numbers.get("c", "1") if assembler.chip != "sm_80" else "1"
        gpu = f"ranks={ranks} blocks={numbers['b']} threads={numbers['t']} cluster={cluster}"
        gpu += f" algorithm={row[5]} protocol={row[6]}"
        assembler.take(f"{name}: {row}", chosen_text(name, row, ranks), gpu)
    return f"{len(ways)} ways of the tables"


def main() -> None:
    ptxas, chip, library, *options = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        assembler = Assembler(ptxas, chip, library, options, folder)
        for part in (programs, types, tables):
            print(f"{part.__name__}: {part(assembler)} assemble", flush=True)


if __name__ == "__main__":
    main()
