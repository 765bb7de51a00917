"""From the syntax tree of a Python function to the text of a comms.kernel.

The compiler is one class in layers: each module adds a subject to the one before it, and calls what lies below. What a
layer asks of those above it is declared once, in `base`.

    base           state, errors, and what layers ask of those above
    numbers        constants, conversions, comparisons
    arithmetic     operators and mathematics
    teams          teams and their numbers
    memory         loads and stores
    compile_time   objects of Python and dimensions that the compiler knows
    branches       `if`, early exits, `and` and `or`
    loop_variables what loops change, and its types
    while_loops    scf.while
    for_loops      ranges, peers, tuples
    subscripts     parts of arrays, elements of tuples, cells
    matrices       products of matrices
    expressions    what has a value
    calls          handlers, constants, inlining
    statements     what has none
    kernel         the whole

Next to them:

    values         what expressions are
    region_values  values that regions yield to the code after them
    scope          what names mean
    analysis       of syntax trees
    emitter        lines of text
    registry       handlers, by what they implement
    hints          what to write instead
"""

from .kernel import Compiler, Head

__all__ = ["Compiler", "Head"]
