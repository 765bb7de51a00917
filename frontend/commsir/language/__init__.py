"""The kernel language: Python functions that become comms.kernel (docs/PythonKernels.md)."""
