"""Proves that the programs of algorithms and protocols compute what their collectives say.

Usage: expansions.py FILE.mlir [--mutants]

Expands each kernel of the file by every algorithm and protocol that supports it, over channels and lowered to memory.
With --mutants, changes one op at a time of those that move and compute elements, over channels: the checker must refuse
each such program, because of what the kernel computes or because it hangs or races.
"""

import argparse
import itertools
import re
import subprocess
import sys

ALGORITHMS = ("one_shot", "two_shot", "ring", "permutation")
PROTOCOLS = ("pull", "push", "ll", "ll128", "lamport")

#: What changes a value, and into what.
CHANGES = (
    (re.compile(r"\barith\.addf\b"), "arith.subf"),
    (re.compile(r"\barith\.maximumf\b"), "arith.addf"),
    (re.compile(r"^ *comms\.tile_store .*$"), ""),
)
SAID = {
    "sum": "all_reduce(sum)",
    "maximum": "all_reduce(max)",
    "part": "reduce_scatter(avg)",
    "parts": "all_gather()",
    "exchange": "all_to_all()",
    "from_root": "broadcast(root 2)",
    "scattered": "scatter(root 0)",
}


def opt(text: str, *passes: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["comms-opt", *passes], input=text, capture_output=True, text=True)


def kernels(path: str) -> dict[str, str]:
    with open(path) as file:
        parts = re.split(r"(?m)^(?=comms\.kernel)", file.read())[1:]
    return {part[len("comms.kernel @") : part.index("(")]: part for part in parts}


def prove(path: str) -> int:
    proven = 0
    for algorithm, protocol, lowered in itertools.product(ALGORITHMS, PROTOCOLS, ("false", "true")):
        options = f"algorithm={algorithm} protocol={protocol} blocks=2 lower-channels={lowered}"
        said = opt("\n".join(kernels(path).values()), f"-comms-check-expansion={options}").stderr
        proven += said.count("remark: its expansion computes what its collectives say")
        errors = [line for line in said.splitlines() if re.search(r": (error|warning): ", line)]
        wrong = [line for line in errors if "cannot be used" not in line]
        if wrong:
            print(options, *wrong, sep="\n")
            return 1
    print(f"{proven} expansions, all proven")
    return 0


def mutate(path: str) -> int:
    mutants = 0
    for name, text in kernels(path).items():
        if name not in SAID:
            continue
        text = text.replace("attributes {", f'attributes {{comms.computes = {{y = "{SAID[name]}"}}, ', 1)
        for algorithm in ALGORITHMS:
            made = opt(text, f"-comms-expand-collectives=algorithm={algorithm} protocol=pull", "-canonicalize", "-cse")
            if "cannot be used" in made.stderr:
                continue
            if made.returncode or opt(made.stdout, "-comms-check-sync=blocks=2").returncode:
                print(f"{name} {algorithm}: the program itself is refused\n{made.stderr}")
                return 1
            lines = made.stdout.splitlines()
            for (index, line), (pattern, change) in itertools.product(enumerate(lines), CHANGES):
                if not pattern.search(line):
                    continue
                mutants += 1
                changed = "\n".join([*lines[:index], pattern.sub(change, line), *lines[index + 1 :]])
                verdict = opt(changed, "-comms-check-sync=blocks=2")
                if verdict.returncode == 0 or "expected is" not in verdict.stderr:
                    print(f"{name} {algorithm}: accepted, '{change}' for {line.strip()}\n{verdict.stderr}")
                    return 1
    print(f"{mutants} mutants, all refused")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--mutants", action="store_true")
    options = parser.parse_args()
    return mutate(options.file) if options.mutants else prove(options.file)


if __name__ == "__main__":
    sys.exit(main())
