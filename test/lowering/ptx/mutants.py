"""Weakens one barrier, fence or order of a kernel's PTX after the other: a memory as weak as PTX allows must show it.

mutants.py KERNEL.mlir --ranks N --gpu "…" [--seeds K]

Prints what is weakened and whether one of the seeds gave a wrong result or a hang.
"""

import argparse
import re

import emulate
import emulator
import memory

WEAKER = [
    (r"st\.release\.sys", "st.relaxed.sys"),
    (r"st\.release\.sys", "st.release.gpu"),
    (r"ld\.acquire\.sys", "ld.relaxed.sys"),
    (r"ld\.acquire\.sys", "ld.acquire.gpu"),
    (r"red\.release\.sys", "red.relaxed.sys"),
    (r"fence\.acq_rel\.\w+;", ";"),
    (r"barrier\.cluster\.arrive\.aligned", "barrier.cluster.arrive.relaxed.aligned"),
    (r"bar\.sync\s+0;", ";"),
]


def shows(pair: emulate.Comparison, ptx: str) -> bool:
    try:
        pair.run(emulator.parse(ptx), 3, False)
    except memory.Fault:
        return True
    return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kernel")
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--gpu", required=True, help="options of comms-to-nvvm")
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()

    def pair(seed: int) -> emulate.Comparison:
        return emulate.Comparison(options.kernel, options.ranks, options.gpu, seed, True)

    seeds = range(1, options.seeds + 1)
    ptx = pair(1).ptx
    whole = sum(shows(pair(seed), ptx) for seed in seeds)
    print(f"as it is: wrong with {whole} of {options.seeds} seeds")
    start = ptx.index(".entry")
    for pattern, new in WEAKER:
        for number, match in enumerate(re.finditer(pattern, ptx[start:]), 1):
            weakened = ptx[: start + match.start()] + new + ptx[start + match.end() :]
            seen = any(shows(pair(seed), weakened) for seed in seeds)
            was = " ".join(match[0].split())
            print(f"{was} -> {new}, {number}: {'shown' if seen else 'not shown'}", flush=True)


if __name__ == "__main__":
    main()
