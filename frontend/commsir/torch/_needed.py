"""Imported before torch: gives instructions if torch is missing."""

try:
    import torch  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ModuleNotFoundError(
        "commsir.torch needs torch, which is not installed here: pip install torch", name="torch"
    ) from None
