"""The kernel language: Python functions that become comms.kernel (docs/PythonKernels.md).

What programs write:

    dtypes         types of elements
    parameters     annotations, and the types that editors see
    functions      teams, memory, tiles, numbers
    communication  copies, signals, barriers, packets, channels
    collectives    collectives
    host           collectives outside kernels

What becomes of it:

    source         syntax trees of functions
    diagnostics    errors that show their lines
    compiler       from syntax to text
    lowering       what functions, methods and attributes become

Arrows: `lowering` to `compiler` to what programs write; `host` alone runs kernels, and so knows the package around it.
"""
