"""Weakens each barrier, fence, order and poll of a kernel's PTX in turn: a memory as weak as PTX allows must reveal it.

mutants.py KERNEL.mlir --ranks N --gpu "…" [--seeds K] [--launches L] [--stores]

A poll is a branch back over a strong load; without it, the first value loaded is used. --stores also removes each
store of a vector: in lamport, some of them write the poison of a later launch. Prints each change, and whether one of
the seeds gave a wrong result or a hang.
"""

import argparse
import re
from collections.abc import Iterator

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

STORES = [(r"st\.global\.v4\.b32[^;]*;", ";")]


def polls(ptx: str, start: int) -> Iterator[re.Match[str]]:
    """Branches back to a label behind which a strong load stands."""
    for branch in re.finditer(r"@!?%p\d+ bra\S*\s+(\$\w+);", ptx[start:]):
        label = ptx.find(f"{branch[1]}:", start, start + branch.start())
        if label >= 0 and re.search(r"\bld\.(relaxed|acquire)\.", ptx[label : start + branch.start()]):
            yield branch


def mutations(ptx: str, stores: bool) -> Iterator[tuple[str, str]]:
    """What is weakened, and the text with that."""
    start = ptx.index(".entry")
    found = [
        (match, new, " ".join(match[0].split()) + f" -> {new}", number)
        for pattern, new in WEAKER + STORES * stores
        for number, match in enumerate(re.finditer(pattern, ptx[start:]), 1)
    ]
    found += [(match, ";", "poll -> ;", number) for number, match in enumerate(polls(ptx, start), 1)]
    for match, new, name, number in found:
        yield f"{name}, {number}", ptx[: start + match.start()] + new + ptx[start + match.end() :]


def shows(pair: emulate.Comparison, ptx: str, launches: int) -> bool:
    try:
        pair.run(emulator.parse(ptx), launches, False)
    except memory.Fault:
        return True
    return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kernel")
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--gpu", required=True, help="options of comms-to-nvvm")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--launches", type=int, default=3)
    parser.add_argument("--stores", action="store_true")
    options = parser.parse_args()

    def pair(seed: int) -> emulate.Comparison:
        return emulate.Comparison(options.kernel, options.ranks, options.gpu, seed, True)

    def count(ptx: str, enough: int) -> int:
        """How many seeds show a fault, up to `enough`."""
        found = 0
        for seed in range(1, options.seeds + 1):
            found += found < enough and shows(pair(seed), ptx, options.launches)
        return found

    ptx = pair(1).ptx
    print(f"as it is: wrong with {count(ptx, options.seeds)} of {options.seeds} seeds")
    for name, weakened in mutations(ptx, options.stores):
        print(f"{name}: {'shown' if count(weakened, 1) else 'not shown'}", flush=True)


if __name__ == "__main__":
    main()
