"""Programs as kernels of the dialect."""

import dataclasses

from sync_program import CELLS, PLACES, SLOTS, WIDTH, Op, Program


class Writer:
    def __init__(self, name: str, program: Program) -> None:
        self.name, self.program, self.next = name, program, 0
        self.lines: list[str] = []
        elements = WIDTH * PLACES * program.stripes()
        self.data, self.mail = f"{elements}xf32", f"{elements}xi64"
        self.part = "memref<16xf32, strided<[1], offset: ?>>"
        self.signal = f"!comms.signal<{CELLS * program.stripes()}>"
        self.counter = f"!comms.counter<{CELLS * program.stripes()}>"
        self.all = f"memref<{self.data}, #comms.space<multimem>>"
        self.channel = f"!comms.channel<{program.protocol}, {WIDTH}xf32>"

    def add(self, text: str) -> str:
        self.next += 1
        self.lines.append(f"    %v{self.next} = {text}")
        return f"%v{self.next}"

    def value(self, op: Op, kind: str) -> str:
        product = self.add(f"arith.muli %launch, {self.add(f'arith.constant {op.a} : index')} : index")
        total = self.add(f"arith.addi {product}, {self.add(f'arith.constant {op.b} : index')} : index")
        return self.add(f"arith.index_cast {total} : index to {kind}")

    def index(self, value: int) -> str:
        return self.add(f"arith.constant {value} : index")

    def tile(self, op: Op) -> str:
        parity = self.add(f"arith.remui %launch, {self.index(2)} : index")
        moved = self.add(f"arith.muli {parity}, {self.index(op.a)} : index")
        place = self.add(f"arith.addi {moved}, {self.index(op.at)} : index")
        inside = self.add(f"arith.remui {place}, {self.index(PLACES)} : index")
        return self.times(self.moved(inside, op, PLACES), WIDTH)

    def slot(self, op: Op) -> str:
        moved = self.add(f"arith.addi %launch, {self.index(op.b % max(op.a, 1))} : index")
        buffer = self.add(f"arith.remui {moved}, {self.index(max(op.a, 1))} : index")
        place = self.add(f"arith.addi {buffer}, {self.index(op.at)} : index")
        inside = self.add(f"arith.remui {place}, {self.index(PLACES)} : index")
        return self.times(self.moved(inside, op, PLACES), WIDTH)

    def times(self, value: str, factor: int) -> str:
        return self.add(f"arith.muli {value}, {self.index(factor)} : index")

    def moved(self, value: str, op: Op, distance: int) -> str:
        """Moved to the places or cells of the block."""
        if op.stripe in ("", "first"):
            return value
        lane = "%block"
        if op.stripe == "next":
            above = self.add(f"arith.addi %block, {self.index(1)} : index")
            lane = self.add(f"arith.remui {above}, {self.index(self.program.blocks)} : index")
        elif op.stripe == "half":
            lane = self.add(f"arith.divui %block, {self.index(2)} : index")
        return self.add(f"arith.addi {value}, {self.times(lane, distance)} : index")

    def cell(self, op: Op) -> str:
        return self.moved(self.index(op.at), op, CELLS)

    def packets(self, op: Op) -> str:
        return self.times(self.cell(op), WIDTH)

    def open(self, op: Op) -> bool:
        """Begins the condition under which blocks perform the op."""
        if op.only is None:
            return False
        how, number = op.only
        value, other = "%block", number
        if how == "even":
            value, other = self.add(f"arith.remui %block, {self.index(2)} : index"), number % 2
        predicate = "ult" if how == "below" else "eq"
        self.lines.append(f"    scf.if {self.add(f'arith.cmpi {predicate}, {value}, {self.index(other)} : index')} {{")
        return True

    def window(self, op: Op, name: str, kind: str) -> str:
        at = self.index(op.peer)
        return self.add(f"comms.peer %{name} at {at} of %team : !comms.window<{kind}> -> memref<{kind}>")

    def subview(self, memory: str, at: str) -> str:
        return self.add(f"memref.subview {memory}[{at}] [16] [1] : memref<{self.data}> to {self.part}")

    def view(self, op: Op) -> tuple[str, str, str]:
        """The memory that an access goes to, the place there, and the type."""
        window, tile = self.window(op, "x", self.data), self.tile(op)
        if not op.viewed:
            return window, tile, f"memref<{self.data}>"
        return self.subview(window, tile), "%c0", self.part

    def write(self, op: Op) -> None:
        if op.often:
            self.lines.append("    scf.for %i = %c0 to %often step %c1 {")
            self.write(dataclasses.replace(op, often=False))
            self.lines.append("    }")
            return
        order = f" order {op.order}" if op.order else ""
        gin = f" gin <context_id = {op.via}>" if op.via > 0 else " gin <>" if op.via == 0 else ""
        if op.kind == "store":
            window, tile = self.window(op, "x", self.data), self.tile(op)
            self.lines.append(f"    comms.tile_store %one, {window}[{tile}] : tensor<16xf32>, memref<{self.data}>")
        elif op.kind == "load":
            window, tile = self.window(op, "x", self.data), self.tile(op)
            self.add(f"comms.tile_load {window}[{tile}] : memref<{self.data}> -> tensor<16xf32>")
        elif op.kind == "put":
            at, tile = self.index(op.peer), self.tile(op)
            source = self.times(self.moved(self.index(op.place), op, PLACES), WIDTH)
            counted = ""
            if op.counter >= 0 and op.via >= 0:
                counter = self.moved(self.index(op.counter), op, CELLS)
                counted = f" counted %n[{counter}] : {self.counter}"
            self.lines.append(
                f"    comms.put %own[{source}] to %x[{tile}] count %c16 at {at} of %team{counted}{gin}"
                f" : memref<{self.data}>, !comms.window<{self.data}>"
            )
        elif op.kind == "signal":
            value = "" if op.how == "inc" else f" value {self.value(op, 'i64')}"
            cell, at = self.cell(op), self.index(op.peer)
            text = f"comms.signal {op.how} %s[{cell}]{value} at {at} of %team{order}{gin} : {self.signal}"
            self.lines.append(f"    {text}")
        elif op.kind == "wait":
            value, cell = self.value(op, "i64"), self.cell(op)
            self.add(f"comms.wait_signal %s[{cell}] {op.how} {value}{order} : {self.signal}")
        elif op.kind == "reset":
            self.lines.append(f"    comms.reset_signal %s[{self.cell(op)}] : {self.signal}")
        elif op.kind == "flush":
            self.lines.append(f"    comms.flush %team{gin}")
        elif op.kind == "get":
            at, tile = self.index(op.peer), self.tile(op)
            target = self.times(self.moved(self.index(op.place), op, PLACES), WIDTH)
            self.lines.append(
                f"    comms.get %x[{tile}] to %own[{target}] count %c16 at {at} of %team{gin}"
                f" : !comms.window<{self.data}>, memref<{self.data}>"
            )
        elif op.kind == "read":
            memory, tile, kind = self.view(op)
            self.add(f"memref.load {memory}[{tile}] : {kind}")
        elif op.kind == "write":
            memory, tile, kind = self.view(op)
            self.lines.append(f"    memref.store %f1, {memory}[{tile}] : {kind}")
        elif op.kind == "copy":
            window, tile = self.window(op, "x", self.data), self.tile(op)
            target = self.times(self.moved(self.index(op.place), op, PLACES), WIDTH)
            part = "memref<16xf32, strided<[1], offset: ?>>"
            views = [
                self.add(f"memref.subview {of}[{at}] [16] [1] : memref<{self.data}> to {part}")
                for of, at in ((window, tile), ("%own", target))
            ]
            self.lines.append(f"    memref.copy {views[0]}, {views[1]} : {part} to {part}")
        elif op.kind == "count":
            value, cell = self.value(op, "i64"), self.cell(op)
            self.lines.append(f"    comms.wait_counter %n[{cell}] ge {value} : {self.counter}")
        elif op.kind == "fence":
            self.lines.append(f"    comms.fence {op.order} {op.scope}")
        elif op.kind == "alias":
            self.lines.append("    comms.fence acq_rel sys proxy alias")
        elif op.kind == "spread":
            self.lines.append(f"    comms.multimem_store %one, %all[{self.tile(op)}] : tensor<16xf32>, {self.all}")
        elif op.kind == "combine":
            self.add(f"comms.multimem_load_reduce sum %all[{self.tile(op)}] : {self.all} -> tensor<16xf32>")
        elif op.kind == "send":
            slot, peer = self.index(op.at), self.index(op.peer)
            self.lines.append(f"    comms.send %one on %ch[{slot}] to {peer} : tensor<16xf32>, {self.channel}")
        elif op.kind == "recv":
            slot, peer = self.index(op.at), self.index(op.peer)
            self.add(f"comms.recv %ch[{slot}] from {peer} : {self.channel} -> tensor<16xf32>")
        elif op.kind == "close":
            self.lines.append(f"    comms.channel_barrier %ch : {self.channel}")
        elif op.kind == "barrier":
            self.lines.append(f"    comms.barrier %team {op.how}{order}")
        elif op.kind == "packet":
            flag, window, at = self.value(op, "i32"), self.window(op, "box", self.mail), self.packets(op)
            types = f"tensor<16xf32>, memref<{self.mail}>"
            self.lines.append(f"    comms.packet_store %one, {window}[{at}] flag {flag} : {types}")
        elif op.kind in ("poison", "fill"):
            window, at = self.window(op, "pool", self.data), self.slot(op)
            self.lines.append(
                f"    comms.poison_store %one, {window}[{at}] : tensor<16xf32>, memref<{self.data}>"
                if op.kind == "poison"
                else f"    comms.poison_fill {window}[{at}] count %c16 : memref<{self.data}>"
            )
        elif op.kind == "take":
            self.add(f"comms.poison_load %basin[{self.slot(op)}] : memref<{self.data}> -> tensor<16xf32>")
        elif op.kind == "receive":
            flag, at = self.value(op, "i32"), self.packets(op)
            self.add(f"comms.packet_load %mail[{at}] flag {flag} : memref<{self.mail}> -> tensor<16xf32>")

    def text(self) -> str:
        striped = self.program.striped
        for (rank, block), ops in (self.program.ops if striped is None else striped).items():
            if not ops:
                continue
            here = self.add(f"arith.cmpi eq, %rank, {self.index(rank)} : index")
            if self.program.roles:
                self.lines.append(f'    comms.role "r{rank}b{block}" blocks {block} to {block + 1} {{')
            elif striped is None:
                there = self.add(f"arith.cmpi eq, %block, {self.index(block)} : index")
                here = self.add(f"arith.andi {here}, {there} : i1")
            self.lines.append(f"    scf.if {here} {{")
            for op in ops:
                is_open = self.open(op)
                self.write(op)
                self.lines += ["    }"] if is_open else []
            self.lines += ["    }"] * (1 + self.program.roles)
        arguments = f"%x: !comms.window<{self.data}>, %box: !comms.window<{self.mail}>, %s: {self.signal}"
        arguments += f", %n: {self.counter}, %counts: memref<1xi64>"
        arguments += f', %pool: !comms.window<{self.data}> {{comms.hidden, comms.init = "poison"}}'
        assumes = ', comms.assumes = ["packets_cumulative"]' if self.program.assumes else ""
        head = f"""comms.kernel @{self.name}({arguments})
    attributes {{ranks = {self.program.ranks}, blocks = {self.program.blocks}{assumes}}} {{
    %team = comms.team world
    %rank = comms.rank %team
    %block = comms.block_id
    %launch = comms.epoch
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : i64
    %c16 = arith.constant 16 : index
    %count = memref.load %counts[%c0] : memref<1xi64>
    %few = arith.minui %count, %c3 : i64
    %often = arith.index_cast %few : i64 to index
    %one = arith.constant dense<1.0> : tensor<16xf32>
    %f1 = arith.constant 1.0 : f32
    %own = comms.local %x : !comms.window<{self.data}> -> memref<{self.data}>
    %mail = comms.local %box : !comms.window<{self.mail}> -> memref<{self.mail}>
    %basin = comms.local %pool : !comms.window<{self.data}> -> memref<{self.data}>
"""
        if self.program.uses("spread", "combine"):
            head += f"    %all = comms.multimem %x of %team : !comms.window<{self.data}> -> {self.all}\n"
        if self.program.uses("send", "recv", "close"):
            head += f"    %ch = comms.channel 0 pairwise over %team slots {SLOTS} : {self.channel}\n"
        return head + "\n".join(self.lines) + "\n    comms.return\n}\n"
