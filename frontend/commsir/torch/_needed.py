"""Imported before torch: gives instructions if torch is missing or old."""

from __future__ import annotations

import re

try:
    import torch
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ModuleNotFoundError(
        "commsir.torch needs torch, which is not installed here: pip install torch", name="torch"
    ) from None

#: The oldest release of torch that is tested.
OLDEST = (2, 11)


def explain_old_torch(error: ImportError | AttributeError) -> None:
    """Raises an ImportError that says so if torch is older than the oldest tested release and lacks what `error`
    names.
    """
    found = tuple(map(int, re.findall(r"\d+", str(torch.__version__))[:2]))
    if found < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise ImportError(
            f"commsir.torch needs torch {oldest} or newer; this is torch {torch.__version__}, in which something is "
            f"missing ({error}): pip install --upgrade torch",
            name="torch",
        ) from error
