# ===- switches.py - Switches in the environment ----------------------------===#
#
# Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===-----------------------------------------------------------------------===#
"""Reads switches by the rule of CommsIR (docs/GpuReference.md), for scripts that run without its package."""

import os


def is_on(name: str) -> bool:
    """Whether the variable is set, and to nothing that turns a switch off."""
    return os.environ.get(name, "").lower() not in ("", "0", "n", "no", "off", "false")


#: Ranks are processes that take turns on GPUs.
SHARES = is_on("COMMSIR_SHARE_GPU")
