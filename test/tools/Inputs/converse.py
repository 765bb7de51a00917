"""Writes lines to a program's standard input, each after the answer to the previous one; prints the answers."""

import json
import pathlib
import subprocess
import sys

KERNEL = pathlib.Path(__file__).with_name("sum.mlir")
LINES = [f"{KERNEL} --ranks 2 --input x=iota\n", f"\n# none\n{KERNEL} --ranks 2 --input z=1\n", f"{KERNEL} --ranks 3"]

with subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
    assert process.stdin and process.stdout
    codes = []
    for number, line in enumerate(LINES):
        process.stdin.write(line)
        process.stdin.flush()
        if number == len(LINES) - 1:  # no newline at the end
            process.stdin.close()
        codes.append(json.loads(process.stdout.readline())["exit_code"])
    print(*codes, "ended with", process.wait(timeout=60))
