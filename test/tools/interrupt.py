"""Interrupts a run, and prints what remains in the folder.

Usage: interrupt.py KERNEL FOLDER
"""

import pathlib
import subprocess
import sys
import time


def main() -> None:
    kernel, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True)
    arguments = ["--ranks=2", "--no-check", f"--trace={folder}/trace.json"]
    arguments += [f"--dump-object={folder}/kernel.o", f"--output=s={folder}/s-%r.npy"]
    run = subprocess.Popen(
        ["comms-run", kernel, *arguments, "--time-limit=60"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    for _ in range(500):
        if any(folder.iterdir()):
            break
        time.sleep(0.02)
    before = len(list(folder.iterdir()))
    time.sleep(0.3)
    # Not an interrupt: processes in the background may ignore those.
    run.terminate()
    status = run.wait()
    print(f"{before > 0} before, {len(list(folder.iterdir()))} files after, ended {status != 0}")


if __name__ == "__main__":
    main()
