"""Checks that the table of docs/Spec.md, the lowering and the device library name the same calls.

Usage: table.py COMMS_OPT SOURCE_ROOT CALLS

Lowers CALLS (a .mlir file) with locations, which link each call to the operation that it came from, and
compares these pairs with the table. The body of each function must use the symbols of NCCL that its row names.
"""

import argparse
import pathlib
import re
import subprocess
import sys

ROW = re.compile(r"^\| (?P<operations>`comms\..*?) \| (?P<functions>.*?) \| (?P<symbols>.*?) \|$", re.M)
FUNCTION = re.compile(r"^COMMSIR_EXPORT [^;{]*?\b(?P<name>commsir_nccl_\w+)\([^{]*\{(?P<body>.*?)^\}", re.M | re.S)
CALL = re.compile(r'llvm\.call @(commsir_nccl_\w+)\(.*loc\("[^"]*":(\d+):\d+\)')
OPERATION = re.compile(r"comms\.\w+")

Pairs = set[tuple[str, str]]


def read_table(spec: str) -> tuple[Pairs, dict[str, list[str]]]:
    """Pairs of operation and function, and NCCL's symbols of each function."""
    section = spec.partition("### What NCCL does\n")[2].partition("\n## ")[0]
    pairs: Pairs = set()
    symbols: dict[str, list[str]] = {}
    for row in ROW.finditer(section):
        functions = re.findall(r"commsir_nccl_\w+", row["functions"])
        named = re.findall(r"nccl\w+(?:::\w+)?", row["symbols"])
        for operation in OPERATION.findall(row["operations"]):
            pairs |= {(operation, function) for function in functions}
        each = len(functions) > 1 and len(functions) == len(named)
        for number, function in enumerate(functions):
            symbols[function] = [named[number]] if each else named
    return pairs, symbols


def lower(comms_opt: str, calls: pathlib.Path) -> Pairs:
    """Pairs of operation and function that the pass makes."""
    command = [comms_opt, str(calls), "--comms-call-nccl", "-mlir-print-debuginfo", "-mlir-print-local-scope"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    lines = calls.read_text().splitlines()
    pairs: Pairs = set()
    for function, line in CALL.findall(text):
        operation = OPERATION.search(lines[int(line) - 1])
        if operation is None:
            sys.exit(f"{calls}:{line}: no operation, but a call of {function}")
        pairs.add((operation[0], function))
    return pairs


def uses(body: str, symbol: str) -> bool:
    """Whether C++ uses the function, the type or the type's member."""
    return all(re.search(rf"\b{part}\b", body) for part in symbol.split("::"))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("comms_opt")
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("calls", type=pathlib.Path)
    options = parser.parse_args()
    table, symbols = read_table((options.root / "docs/Spec.md").read_text())
    made = lower(options.comms_opt, options.calls)
    wrong = [f"the Spec has no row for {op}: {function}" for op, function in sorted(made - table)]
    wrong += [f"{options.calls.name} has no {op} that becomes {function}" for op, function in sorted(table - made)]
    source = (options.root / "lowering/nvvm/device/NcclDevice.cu").read_text()
    bodies = {match["name"]: match["body"] for match in FUNCTION.finditer(source)}
    for helper in re.findall(r"^static __device__ void (\w+)\(.*?\{(.*?)^\}", source, re.M | re.S):
        for name, body in bodies.items():
            if re.search(rf"\b{helper[0]}\(", body):
                bodies[name] = body + helper[1]
    for function, named in sorted(symbols.items()):
        if function not in bodies:
            wrong.append(f"the device library has no {function}")
            continue
        wrong += [f"{function} does not use {symbol}" for symbol in named if not uses(bodies[function], symbol)]
    print(*wrong, sep="\n", end="\n" if wrong else "")
    print(f"{len(table)} calls of operations, {len(symbols)} functions" if not wrong else f"{len(wrong)} differences")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
