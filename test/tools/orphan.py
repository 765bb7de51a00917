"""Ends comms-bench --tune by a signal, and reports whether its measuring process ends as well.

Usage: orphan.py KILL|HUP FOLDER
"""

import pathlib
import signal
import subprocess
import sys
import time


def main() -> None:
    folder = pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True)
    table = folder / "table.json"
    tune = ["comms-bench", "--target=cpu", "--ranks=2", "--budget=600", "--quiet", f"--tune={table}"]
    bench = subprocess.Popen(tune, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    journal = folder / "table.json.journal"
    while not (journal.exists() and journal.stat().st_size) and bench.poll() is None:
        time.sleep(0.02)
    bench.send_signal(signal.Signals[f"SIG{sys.argv[1]}"])
    # The pipe ends when the last process that holds it does.
    try:
        bench.communicate(timeout=120)
        print(f"ended with {bench.returncode}, the journal stays: {journal.exists()}")
    except subprocess.TimeoutExpired:
        print("what measures goes on")


if __name__ == "__main__":
    main()
