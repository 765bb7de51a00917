"""Kernels to read and to start from: `python -m commsir.examples.one_shot` runs one."""
