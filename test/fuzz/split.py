"""Writes each part of the given .mlir files (parts end at `// -----`) to a folder, one file per part.

Usage: split.py FOLDER FILE…   Skips parts over 4 KiB, the fuzzers' limit.
"""

import hashlib
import pathlib
import re
import sys


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    for name in sys.argv[2:]:
        text = pathlib.Path(name).read_text(encoding="utf-8")
        for part in re.split(r"^// -----.*$", text, flags=re.MULTILINE):
            code = re.sub(r"^\s*//.*\n", "", part, flags=re.MULTILINE).strip().encode()
            if 0 < len(code) <= 4096:
                (folder / hashlib.sha256(code).hexdigest()[:16]).write_bytes(code)


main()
