"""Changes of a program: ops are deleted, doubled, swapped, weakened or redirected."""

import dataclasses
import random

from sync_program import CELLS, CONTEXTS, SLOTS, Op, Program


def change(random_: random.Random, program: Program) -> None:
    thread = random_.choice([thread for thread in program.threads() if program.ops[thread]] or [(0, 0)])
    ops = program.ops[thread]
    if not ops:
        return
    index = random_.randrange(len(ops))
    op = ops[index]
    what = random_.choice(["delete", "delete", "double", "swap", "swap", "borrow", *["weaken"] * 6])
    if what == "delete":
        del ops[index]
    elif what == "double":
        ops.insert(random_.randrange(len(ops) + 1), op)
    elif what == "swap":
        other = random_.randrange(len(ops))
        ops[index], ops[other] = ops[other], ops[index]
    elif what == "borrow":
        others = program.ops[random_.choice(program.threads())]
        ops[index:index] = random_.sample(others, min(len(others), 1))
    else:
        ops[index] = weakened(random_, program, op)


ORDERS = {
    "signal": ["relaxed", "release"],
    "wait": ["relaxed", "acquire"],
    "barrier": ["relaxed", "release", "acquire", "acq_rel"],
    "fence": ["release", "acquire", "acq_rel"],
}


def weakened(random_: random.Random, program: Program, op: Op) -> Op:
    """Another peer, place, cell, value, order, scope or kind: what the op has."""
    what = random_.choice(
        {
            "signal": ["peer", "at", "a", "b", "order", "order", "how", "via"],
            "wait": ["at", "a", "b", "b", "order", "order", "how"],
            "barrier": ["order", "how"],
            "fence": ["order", "scope", "scope"],
            "reset": ["at"],
            "packet": ["peer", "at", "a", "b"],
            "receive": ["at", "a", "b"],
            "poison": ["peer", "at", "a", "b"],
            "take": ["at", "a", "b"],
            "fill": ["peer", "at", "a", "b"],
            "put": ["peer", "at", "a", "via", "counter"],
            "get": ["peer", "at", "a", "via"],
            "flush": ["via"],
            "count": ["at", "a", "b"],
            "send": ["peer", "slot"],
            "recv": ["peer", "slot"],
            "close": ["slot"],
            "alias": ["peer"],
            "spread": ["at", "a"],
            "combine": ["at", "a"],
        }.get(op.kind, ["peer", "at", "a"])
    )
    if what == "peer":
        return dataclasses.replace(op, peer=random_.randrange(program.ranks))
    if what == "at":
        return dataclasses.replace(op, at=random_.randrange(CELLS))
    if what == "slot":
        return dataclasses.replace(op, at=random_.randrange(SLOTS))
    if what == "a":
        return dataclasses.replace(op, a=max(0, op.a + random_.choice([-1, 1])))
    if what == "b":
        return dataclasses.replace(op, b=op.b + random_.choice([-1, 1]))
    if what == "order":
        return dataclasses.replace(op, order=random_.choice(ORDERS[op.kind]))
    if what == "via":
        return dataclasses.replace(op, via=random_.randrange(-1, CONTEXTS))
    if what == "counter":
        return dataclasses.replace(op, counter=random_.randrange(-1, CELLS))
    if what == "scope":
        return dataclasses.replace(op, scope="gpu" if op.scope == "sys" else "sys")
    if op.via >= 0:
        return dataclasses.replace(op, how=random_.choice(["inc", "add"]))
    ways = {"signal": ["inc", "set", "add"], "wait": ["ge", "eq"], "barrier": ["block", "grid"]}
    return dataclasses.replace(op, how=random_.choice(ways[op.kind]))
