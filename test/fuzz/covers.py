"""Checks that bounds.py writes every op of kernels that computes an index or reaches memory.

The ops are those of lowering/analysis/UncheckedOps.cpp, all ops of the MLIR dialects that it lists as a whole, and
those of the comms dialect with an operand that is an index, memory, a window, a cell or a channel. An op that
bounds.py does not write has a reason in EXCEPTIONS.

Usage: covers.py SOURCE_FOLDER MLIR_INCLUDE_FOLDER [--programs N]
"""

import argparse
import pathlib
import re
import sys

from access_programs import Program

EXCEPTIONS = {
    # Float arithmetic: no result is an index except by fptosi and fptoui, which are written.
    r"arith\.(addf|subf|mulf|divf|remf|negf|cmpf|extf|truncf|maximumf|minimumf|maxnumf|minnumf)": "computes floats",
    r"math\.(?!absi|ctlz|cttz|ctpop|ipowi).*": "computes floats, or asks what a float is",
    r"math\.ipowi": "comms-legalize-numerics refuses it",
    r"arith\.uitofp": "its result reaches an index only by ops that are written",
    r"vector\.(bitcast|broadcast|shape_cast|(de)?interleave|shuffle|reduction|step|(from|to)_elements)": (
        "has no operand that is an index: its positions are constants that comms-check-ops compares"
    ),
    r"vector\.(extract|insert|extract_strided_slice|insert_strided_slice|constant_mask)": (
        "its positions are constants that comms-check-ops compares"
    ),
    r"tensor\.extract": "reads the one element of a tile of one",
    r"tensor\.(extract_slice|concat)": "its positions are constants that its verifier and comms-check-ops compare",
    r"comms\.(all_reduce|reduce_scatter|all_gather|all_to_all(_v)?|broadcast|reduce|gather|scatter|send_recv)": (
        "has shapes that are compared by its verifier; becomes ops that are written"
    ),
    r"comms\.(channel|send|recv|channel_barrier)": "becomes packet, poison and tile ops, which are written",
    r"comms\.multimem.*": "needs a GPU's multicast memory",
    r"comms\.(record_access|record_sync)": "is made by passes; a kernel that holds it only checks more",
}


def list_ops(dialect: str, include: pathlib.Path) -> set[str]:
    """The names of all ops of a dialect of MLIR."""
    file = include / f"mlir/Dialect/{dialect.capitalize()}/IR/{dialect.capitalize()}Ops.td"
    names = re.findall(r'^def \w+\s*:\s*\w+<"([a-z0-9_.]+)"', file.read_text(), flags=re.MULTILINE)
    return {f"{dialect}.{name}" for name in names}


def allowed(folder: pathlib.Path, include: pathlib.Path) -> set[str]:
    """The names of all ops that the fuzzer has to write or to make an exception of."""
    text = (folder / "lowering/analysis/UncheckedOps.cpp").read_text()
    table = text[text.index("kOps[] = {") : text.index("static bool isListed")]
    ops = set(re.findall(r'"((?:affine|arith|cf|memref|scf|tensor|vector)\.[a-z_]+)"', table))
    for dialect in re.findall(r'"(\w+)"', text[text.index("kDialects[] = {") : text.index("/// Ops of other")]):
        ops |= list_ops(dialect, include) if dialect != "comms" else set()
    dialect = "\n".join(file.read_text() for file in sorted((folder / "dialect").glob("*.td")))
    for part in re.split(r"^def Comms_", dialect, flags=re.MULTILINE)[1:]:
        name = re.search(r'<"([a-z_]+)"', part)
        arguments = re.search(r"let arguments = \(ins(.*?)\);", part, flags=re.DOTALL)
        collective = "Collective<" in part.split("{")[0]
        reaches = arguments and re.search(r"Index|MemRef|Window|Signal:|Counter|Channel", arguments[1])
        if name and (collective or reaches):
            ops.add(f"comms.{name[1]}")
    return ops


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("include", type=pathlib.Path)
    parser.add_argument("--programs", type=int, default=600)
    options = parser.parse_args()
    written: set[str] = set()
    for seed in range(options.programs):
        written |= set(re.findall(r"\b[a-z]+\.[a-z0-9_.]+\b", Program(seed).source))
    wrong = 0
    ops = allowed(options.folder, options.include)
    for op in sorted(ops):
        excepted = any(re.fullmatch(one, op) for one in EXCEPTIONS)
        if op in written and excepted:
            print(f"{op}: is written, and an exception in {__file__} says that it is not")
        elif op not in written and not excepted:
            print(f"{op}: a kernel may hold it, bounds.py does not write it, and no exception says why")
        else:
            continue
        wrong += 1
    print(f"{len(ops)} ops, {wrong} wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
