"""Lowers a kernel to PTX with many options; ptxas must accept each result.

sweep.py PTXAS KERNEL.mlir --ranks N --each "opts" [--each "opts" …] runs
the product of all --each groups (variants separated by "|").
Also checks the rules that no kernel may break.
"""

import argparse
import itertools
import os
import re
import subprocess
import sys
import tempfile

# What must never be in PTX of a kernel.
FORBIDDEN = {
    # What makes the NaN of pairs canonical, x * 1 + -0, has a type of its own.
    r"\bfma\.(?!rn\.(b?f16x2|f32) )": "fused products and sums",
    r"\.ftz\b": "flushed subnormals",
    r"\.approx\b": "approximations",
    r"(?<![.\w])(mul|add|sub)\.f(32|64|32x2)\b": "rounding left open",
    r"\batom\.global\.": "an atomic without order and scope",
    r"\bcall\b.*__nv": "a call of libdevice",
}


# Roots, which steps with two fused products and sums each make right (lowering/nvvm/SquareRoots.cpp).
GUESSED = re.compile(r"\b(rsqrt|rcp)\.approx\.ftz\.f32\b")


def check_rules(ptx: str, where: str, allow_fma: bool = False) -> None:
    """Ends the program at the first line that breaks a rule. `allow_fma`: the kernel itself asks for some."""
    ptx, guesses = GUESSED.subn("", ptx)
    fused = re.findall(r".*\bfma\.rn\.f32 .*", ptx)
    if allow_fma:
        ptx = re.sub(r"\bfma\.rn\.f(32(x2)?|64)\b", "", ptx)
    elif len(fused) != 2 * guesses:
        sys.exit(f"{where}: {len(fused)} fused products and sums for {guesses} roots: {fused[:1]}")
    for line in ptx.splitlines():
        for pattern, what in FORBIDDEN.items():
            if re.search(pattern, line):
                sys.exit(f"{where}: {what}: {line.strip()}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("ptxas")
    parser.add_argument("kernel")
    parser.add_argument("--each", action="append", default=[])
    parser.add_argument("--allow-fma", action="store_true")
    parser.add_argument("--device-library", help="bitcode of NCCL's, for kernels that call it")
    args = parser.parse_args()
    count = 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kernel.ptx")
        for variant in itertools.product(*(e.split("|") for e in args.each)):
            options = " ".join(part.strip() for part in variant).strip()
            chip = re.search(r"chip=(\S+)", options)
            arch = chip.group(1) if chip else "sm_90"
            command = ["comms-translate", "--comms-to-ptx", args.kernel, f"--gpu={options}"]
            if args.device_library:
                command.append(f"--device-library={args.device_library}")
            made = subprocess.run(command, capture_output=True, text=True)
            where = f"{args.kernel} [{options}]"
            if made.returncode != 0:
                sys.exit(f"{where}: comms-translate failed\n{made.stderr[:2000]}")
            check_rules(made.stdout, where, args.allow_fma)
            with open(path, "w") as file:
                file.write(made.stdout)
            assembled = subprocess.run(
                [args.ptxas, f"-arch={arch}", path, "-o", os.devnull], capture_output=True, text=True
            )
            if assembled.returncode != 0:
                sys.exit(f"{where}: ptxas failed\n{assembled.stderr[:2000]}")
            count += 1
    print(f"{count} variants assemble")


if __name__ == "__main__":
    main()
