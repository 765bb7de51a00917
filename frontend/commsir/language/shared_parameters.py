"""What the parameters mean that functions of the kernel language share.

`help()` shows those that the function's own text does not explain.
"""

from __future__ import annotations

import inspect
import re

_REDUCTIONS = '"sum", "prod", "min", "max" or "avg", or for integers "and", "or" or "xor"'

#: What a parameter means, by its name.
MEANINGS: dict[str, str] = {
    # Places.
    "source": "a part of this rank's memory, such as x[0:32]",
    "dest": "a part of this rank's memory, of the window's element type",
    "window": "a window or a part of one, such as w[o:o + 32]; the peer's part has the same place",
    "memory": "an array, scratch memory, or a part of a window from local(), peer() or multimem()",
    "offset": "where the tile begins in the memory, in elements in row-major order",
    "length": "the number of elements of the tile, known at compile time",
    "valid": "how many elements of the tile exist, from the first on; a load gives 0 for the others. None: all",
    "count": "the number of elements; None: as many as the parts have",
    "tile": "the row of values",
    "tiles": "a tuple or list of tiles",
    "dtype": "an element type, such as commsir.f32",
    "slot": "a slot of a channel, ch[i]",
    "cell": "a cell of a signal or counter, s[i]",
    # Ranks.
    "peer": "a rank of the team, from 0",
    "team": 'a team, "world", "lsa" (ranks in reach of loads and stores) or "rail". None: the world',
    "reversed": "in the opposite order",
    # Synchronization.
    "ge": "the least value that ends the wait (i64)",
    "eq": "the only value that ends the wait (i64)",
    "set": "the new value of the cell (i64)",
    "add": "the increment of the cell (i64). None, without `set`: 1",
    "order": '"relaxed", "acquire", "release" or "acq_rel", as in PTX',
    "scope": '"gpu" if only blocks of one GPU take part, else "sys"',
    "extent": '"block" or "grid"',
    "after": "the token of a wait that has to end before the access",
    "gin": 'goes through the network adapter by NCCL\'s GIN, with settings as in "context_id = 0, backend = proxy"; '
    '"": with NCCL\'s own. None: by load and store',
    "assumes": 'by which assumption data and flag arrive together: "store8_whole", "store16_whole" or "store128_whole"',
    # Numbers.
    "op": _REDUCTIONS,
    "x": "a tile or scalar of floats; the result has its length",
    "a": "a tile or scalar",
    "b": "a tile or scalar, of the length of `a` or of one element",
    "value": "a tile or scalar",
}

#: The same for collectives.
OF_COLLECTIVES: dict[str, str] = {
    "x": "a window, an array, or a tuple of them; outside a kernel a list with one array per rank",
    "team": MEANINGS["team"],
    "op": _REDUCTIONS,
    "root": "a rank of the team",
    "outs": "the arrays of the results, one or a tuple. None: the results replace `x`",
    "args": "a tuple of arrays; `consume` gets one row of each",
    "consume": "a function from one row of each result, and one of each of `args`, to one row of each of `outs`",
    "produce": "a function from one row of each input to the tiles to send. None: the rows are sent",
    "algorithm": "the name of an algorithm. None: chosen by size and machine",
    "protocol": "the name of a protocol. None: chosen by size and machine",
}


def explain(text: str, signature: inspect.Signature, meanings: dict[str, str]) -> str:
    """Returns the documentation `text`, followed by the parameters that it does not name in backticks."""
    named = [name for name in signature.parameters if not re.search(rf"`{name}`", text)]
    lines = [f"    {name}: {meanings[name]}" for name in named if name in meanings]
    return "\n".join([inspect.cleandoc(text), "", "Parameters:", *lines]) if lines else text
