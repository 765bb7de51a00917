"""Runs a command and ends with 0 if the command's exit status is the given one.

Usage: status.py STATUS COMMAND...
"""

import subprocess
import sys

wanted, command = int(sys.argv[1]), sys.argv[2:]
status = subprocess.run(command).returncode
if status != wanted:
    print(f"exit status {status}, expected {wanted}: {' '.join(command)}", file=sys.stderr)
sys.exit(status != wanted)
