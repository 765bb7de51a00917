"""Compiles every operation by every algorithm and protocol to PTX for one chip; ptxas must accept all.

every.py PTXAS CHIP [OPTIONS]

The lowering itself provides the list: the error for an unknown name lists algorithms and protocols, and a combination
is supported if it expands.
"""

import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(__file__))
from sweep import check_rules

RANKS = 3
PART = 2048

# Name, what stands before the arrays, parts that inputs and outputs hold.
OPERATIONS = [
    ("all_reduce", "sum %team", 1, 1),
    ("reduce_scatter", "sum %team", RANKS, 1),
    ("all_gather", "%team", 1, RANKS),
    ("all_to_all", "%team", RANKS, RANKS),
    ("all_to_all_v", "%team", 1, 1),
    ("broadcast", "root 1 %team", 1, 1),
    ("reduce", "max root 1 %team", 1, 1),
    ("gather", "root 1 %team", 1, RANKS),
    ("scatter", "root 1 %team", RANKS, 1),
    ("send_recv", "%team from 0 to 1", 1, 1),
]

EXPAND = "builtin.module(comms.kernel(comms-expand-collectives{threads=128 blocks=2}))"


def kernel(operation: tuple[str, str, int, int], algorithm: str, protocol: str) -> str:
    name, before, inputs, outputs = operation
    shape, more, after = "", "", ""
    if name == "all_to_all_v":
        shape, rows = "16x256", f"memref<{RANKS}xi32>"
        more = f", %s: {rows}, %r: {rows}"
        after = f"send_rows(%s : {rows}) recv_rows(%r : {rows}) max_rows 8 "
    x, y = (f"!comms.window<{shape or PART * parts}xbf16>" for parts in (inputs, outputs))
    arguments = f"%x: {x}, %y: {y}{more}"
    return f"""comms.kernel @{name}__{algorithm}__{protocol}({arguments}) attributes {{ranks = {RANKS} : i64}} {{
  %team = comms.team world
  comms.{name} {before} ins(%x : {x}) outs(%y : {y}) {after}{{algorithm = "{algorithm}", protocol = "{protocol}"}}
  comms.return
}}
"""


def expand(text: str) -> subprocess.CompletedProcess[str]:
    command = ["comms-opt", "--split-input-file", f"--pass-pipeline={EXPAND}"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


def known(what: str) -> list[str]:
    """All algorithms, or all protocols."""
    wrong = kernel(OPERATIONS[0], "none" if what == "algorithm" else "one_shot", "none")
    said = re.search(rf"unknown {what} 'none': known are (.*)", expand(wrong).stderr)
    if not said:
        sys.exit(f"comms-opt does not say which {what}s there are")
    return said.group(1).split(", ")


def main() -> None:
    ptxas, chip, *options = sys.argv[1:]
    texts = {}
    algorithms, protocols = known("algorithm"), known("protocol")
    for operation in OPERATIONS:
        for algorithm in algorithms:
            for protocol in protocols:
                texts[f"{operation[0]}__{algorithm}__{protocol}"] = kernel(operation, algorithm, protocol)
    expanded = expand("// -----\n".join(texts.values())).stdout
    usable = [name for name in texts if f"@{name}(" in expanded]
    with tempfile.TemporaryDirectory() as folder:
        source, path = os.path.join(folder, "all.mlir"), os.path.join(folder, "all.ptx")
        with open(source, "w") as file:
            file.write("".join(texts[name] for name in usable))
        command = ["comms-translate", "--comms-to-ptx", source]
        made = subprocess.run(
            [*command, f"--gpu=blocks=2 check=false threads=128 chip={chip}"],
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode != 0:
            sys.exit(f"{chip}: comms-translate failed\n{made.stderr[:2000]}")
        check_rules(made.stdout, chip)
        entries = made.stdout.count(".visible .entry")
        if entries != len(usable):
            sys.exit(f"{chip}: {len(usable)} kernels, but {entries} entries")
        with open(path, "w") as file:
            file.write(made.stdout)
        command = [ptxas, f"-arch={chip}", *options, path, "-o", os.devnull]
        assembled = subprocess.run(command, capture_output=True, text=True, check=False)
        if assembled.returncode != 0:
            sys.exit(f"{chip}: ptxas failed\n{assembled.stderr[:2000]}")
    for operation in OPERATIONS:
        pairs = [name.split("__", 1)[1].replace("__", "/") for name in usable if name.startswith(operation[0] + "__")]
        print(f"{operation[0]}: {' '.join(pairs)}")
    print(f"{len(usable)} kernels assemble")


if __name__ == "__main__":
    main()
