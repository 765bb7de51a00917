"""Every kernel of the test suites survives a round trip through text and through bytecode.

Usage: roundtrip.py --comms-opt PATH FOLDER…
Skips parts of files (between `// -----`) that must be refused: those with
`expected-error`, and files under `invalid` or `Inputs/broken`. Files that a
test writes for several element types (TYPE) are taken with f32.
"""

import argparse
import concurrent.futures
import pathlib
import re
import subprocess
import sys


def parts(path: pathlib.Path) -> list[str]:
    """The parts of a file that must parse."""
    text = path.read_text(encoding="utf-8").replace("xTYPE", "xf32")
    return [
        part
        for part in re.split(r"^// -----.*$", text, flags=re.MULTILINE)
        if "expected-error" not in part and re.search(r"^\s*(comms\.|module|builtin\.|func\.|llvm\.)", part, re.M)
    ]


def check(comms_opt: str, path: pathlib.Path) -> list[str]:
    """What is wrong with the round trips of one file, as lines."""
    # One process for all parts, and for text and bytecode: starting it is what takes long.
    # It parses each part, writes it both ways, reads it back and compares the two.
    done = subprocess.run(
        [comms_opt, "-verify-roundtrip", "-split-input-file", "-o", "/dev/null", "-"],
        input="// -----\n".join(parts(path)),
        capture_output=True,
        text=True,
    )
    return [f"{path}: {done.stderr.strip()}"] if done.returncode else []


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--comms-opt", required=True)
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    files = [
        path
        for folder in options.folders
        for path in sorted(folder.rglob("*.mlir"))
        if not {"invalid", "broken", "fuzz"} & set(path.parts)
    ]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = pool.map(lambda path: check(options.comms_opt, path), files)
        wrong = [line for lines in results for line in lines]
    print("\n".join(wrong))
    checked = sum(len(parts(path)) for path in files)
    print(f"{checked} kernels of {len(files)} files, {len(wrong)} wrong")
    return 1 if wrong or not checked else 0


sys.exit(main())
