"""The programs comms-run, comms-opt, comms-bench and comms-translate, which are part of the library."""

from __future__ import annotations

import os
import signal
import sys

from commsir import _native, errors


def _run(name: str) -> None:
    # As in the programs themselves: Python's handler would wait for their end.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        # The library takes UTF-8 under every locale.
        given = [os.fsencode(word).decode(errors="surrogateescape") for word in sys.argv[1:]]
        status = int(_native.call("tool", [name, *given]))
    except errors.CommsError as error:
        sys.exit(f"{name}: error: {error}")
    sys.stdout.flush()
    # As the programs themselves: what still runs must not meet the interpreter's end.
    os._exit(status)


def comms_run() -> None:
    _run("comms-run")


def comms_opt() -> None:
    _run("comms-opt")


def comms_bench() -> None:
    _run("comms-bench")


def comms_translate() -> None:
    _run("comms-translate")
