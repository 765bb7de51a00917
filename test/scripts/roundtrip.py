"""Every kernel of the test suites survives a round trip through text and through bytecode.

Usage: roundtrip.py --comms-opt PATH FOLDER…
Parts of a file (between `// -----`) that are meant to be refused are left out:
those with `expected-error`, and files under `invalid` or `Inputs/broken`.
"""

import argparse
import concurrent.futures
import pathlib
import re
import subprocess
import sys


def parts(path: pathlib.Path) -> list[str]:
    """The parts of a file that must parse."""
    text = path.read_text(encoding="utf-8")
    return [
        part
        for part in re.split(r"^// -----.*$", text, flags=re.MULTILINE)
        if "expected-error" not in part
        and re.search(r"^\s*(comms\.|module|builtin\.|func\.|llvm\.)", part, re.M)
    ]


def run(comms_opt: str, arguments: list[str], data: bytes) -> bytes:
    """Standard output of comms-opt; raises CalledProcessError with its errors."""
    return subprocess.run(
        [comms_opt, *arguments], input=data, capture_output=True, check=True
    ).stdout


def check(comms_opt: str, path: pathlib.Path) -> list[str]:
    """What is wrong with the round trips of one file: a line for each part."""
    wrong = []
    for number, part in enumerate(parts(path), 1):
        try:
            text = run(comms_opt, ["-"], part.encode())
            again = run(comms_opt, ["-"], text)
            bytecode = run(comms_opt, ["-emit-bytecode", "-"], text)
            back = run(comms_opt, ["-"], bytecode)
        except subprocess.CalledProcessError as error:
            wrong.append(f"{path}: part {number}: {error.stderr.decode(errors='replace').strip()}")
            continue
        if again != text:
            wrong.append(f"{path}: part {number}: the text changes when it is parsed again")
        if back != text:
            wrong.append(f"{path}: part {number}: the text changes through bytecode")
    return wrong


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
