# ===- blocks.py - The code blocks of a page, as files ---------------------===#
#
# Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===-----------------------------------------------------------------------===#
"""blocks.py PAGE LANGUAGE INDEX: prints the INDEX-th block (from 0) of LANGUAGE."""

import pathlib
import re
import sys

page, language, index = sys.argv[1:]
blocks = re.findall(rf"^```{language}(?: [^\n]*)?\n(.*?)^```$", pathlib.Path(page).read_text(), re.S | re.M)
sys.stdout.write(blocks[int(index)])
