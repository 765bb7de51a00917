"""Random kernels whose accesses may leave their arrays, and the same as steps of a model."""

from collections.abc import Callable

from index_arithmetic import signed
from index_programs import CONSTANTS, DATA, INPUTS, SIZE, Indices, LeftBoundsError, Step, TooLongError, Values


class Program(Indices):
    """A kernel's text, and the same as steps of the model."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.sites = 0
        self.reached: set[int] = set()
        self.inputs = [self.rnd.choice([*INPUTS, self.rnd.getrandbits(62)]) for _ in range(4)]
        self.check = self.ranks == 1 and self.rnd.random() < 0.3
        self.has_blocks = self.rnd.random() < 0.15
        lines: list[str] = []
        body: list[Step] = []
        for value in [0, 1, 2, 3, SIZE]:
            self.constant(lines, body, f"%k{value}", value)
        self.draw(lines, body)
        self.body = body
        self.source = self.frame(lines)

    def draw(self, lines: list[str], body: list[Step]) -> None:
        """Random steps, and an access."""
        names: list[str] = []
        for k in range(4):
            a = self.name()
            lines.append(f"{a}l = memref.load %in[%k{k}] : memref<4xi64>")
            lines.append(f"{a} = arith.index_cast {a}l : i64 to index")
            body.append(lambda v, n=a, x=self.inputs[k]: v.__setitem__(n, x))
            names.append(a)
        for _ in range(6):
            names.append(self.name())
            self.constant(lines, body, names[-1], self.rnd.choice(CONSTANTS))
        for _ in range(self.rnd.randint(2, 9)):
            self.step(lines, body, names, 0)
        self.access(lines, body, names)

    def frame(self, lines: list[str]) -> str:
        arguments = (
            "%in: memref<4xi64>, %x: memref<16xi64>, %m: memref<16x2xi64>, %f: memref<16xf32>, %y: memref<2xi64>, "
            "%w: !comms.window<16xi64>, %s: !comms.signal<16>, %c: !comms.counter<16>"
        )
        head = [
            "%team = comms.team world",
            "%near = comms.team lsa",
            f"%data = arith.constant {DATA} : i64",
            f"%single = arith.constant {DATA}.0 : f32",
            f"%vector = arith.constant dense<{DATA}> : vector<4xi64>",
            "%open = memref.cast %x : memref<16xi64> to memref<?xi64>",
            "%own = comms.local %w : !comms.window<16xi64> -> memref<16xi64>",
        ]
        text = "\n  ".join(head + lines)
        return (
            f"comms.kernel @k({arguments}) attributes {{ranks = {self.ranks}, blocks = 1}} {{\n  {text}\n"
            "  comms.return\n}\n"
        )

    # --- Accesses

    Checked = tuple[list[str], Callable[[Values], list[tuple[int, int, int]]]]
    #: An access from its offset, count and peer.
    Access = Callable[[str, str, str], Checked]

    def access(self, lines: list[str], body: list[Step], names: list[str]) -> None:
        at = self.rnd.choice(names[-3:])
        count = self.rnd.choice([*names[-4:], "%k1", "%k2", "%k3"])
        peer = self.rnd.choice([*names[-4:], "%k0", "%k0", "%k1"])
        self.write(lines, body, self.rnd.choice(self.accesses()), (at, count, peer))

    def accesses(self) -> list[Access]:
        choices: list[Program.Access] = [
            self.element,
            self.view,
            self.of_rows,
            self.of_vector,
            self.transfer,
            self.cell,
            self.copy,
            self.bounds,
        ]
        if not self.has_blocks:
            choices += [self.of_tile, self.of_tile, self.of_scratch, self.of_peer, self.of_packets, self.of_product]
        return choices

    def write(self, lines: list[str], body: list[Step], access: Access, operands: tuple[str, str, str]) -> None:
        site = self.sites
        self.sites += 1
        text, limits = access(*operands)
        # Tiles do not pass from one basic block to another.
        tiles = [f"%tile{site} = arith.constant dense<{DATA}> : tensor<4xi64>"]
        tiles += [f"%floats{site} = arith.constant dense<{DATA}.0> : tensor<4xf32>"]
        lines += tiles + [
            line.replace("%tile,", f"%tile{site},").replace("%floats,", f"%floats{site},") for line in text
        ]

        def run(v: Values) -> None:
            self.reached.add(site)
            for offset, length, limit in limits(v):
                if not (length >= 0 and offset >= 0 and offset + length <= limit):
                    raise LeftBoundsError(f"site {site}: [{offset}, + {length}) of {limit}")

        body.append(run)

    def element(self, at: str, count: str, peer: str) -> Checked:
        a, memory, kind = self.name(), self.rnd.choice(["%x", "%open", "%own"]), "memref<16xi64>"
        kind = "memref<?xi64>" if memory == "%open" else kind
        hint = self.rnd.choice(["", " {alignment = 64 : i64}", " {nontemporal = true}"])
        text = [f"{a} = memref.load {memory}[{at}]{hint} : {kind}", f"memref.store {a}, %y[%k0] : memref<2xi64>"]
        if self.rnd.random() < 0.5:
            text = [f"memref.store %data, {memory}[{at}] : {kind}"]
        return text, lambda v: [(v[at], 1, SIZE)]

    def view(self, at: str, count: str, peer: str) -> Checked:
        """A view by constants, of memory whose size a cast may hide."""
        a = self.name()
        first, size, stride = (
            self.rnd.choice([0, 1, 8, 15, 16]),
            self.rnd.choice([0, 1, 4, 16]),
            self.rnd.choice([1, 2]),
        )
        memory, kind = self.rnd.choice([("%x", "memref<16xi64>"), ("%open", "memref<?xi64>")])
        last = (size - 1) * stride + 1 if size else 0
        if memory == "%x" and first + last > SIZE:  # The parser refuses it.
            memory, kind = "%open", "memref<?xi64>"
        type_ = f"memref<{size}xi64, strided<[{stride}], offset: {first}>>"
        text = [
            f"{a} = memref.subview {memory}[{first}] [{size}] [{stride}] : {kind} to {type_}",
            f"{a}q = memref.load {a}[{at}] : {type_}",
            f"memref.store {a}q, %y[%k1] : memref<2xi64>",
            f"memref.store %data, {a}[{at}] : {type_}",
        ]
        return text, lambda v: [(first, last, SIZE), (v[at], 1, size)]

    def of_rows(self, at: str, count: str, peer: str) -> Checked:
        a = self.name()
        if self.rnd.random() < 0.5:
            text = [f"{a} = memref.load %m[{at}, {count}] : memref<16x2xi64>"]
            text.append(f"memref.store {a}, %y[%k0] : memref<2xi64>")
            text.append(f"memref.store %data, %m[{at}, {count}] : memref<16x2xi64>")
            return text, lambda v: [(v[at], 1, SIZE), (v[count], 1, 2)]
        if self.rnd.random() < 0.5:
            text = [f"{a} = memref.collapse_shape %m [[0, 1]] : memref<16x2xi64> into memref<32xi64>"]
            size, kind = 32, "memref<32xi64>"
        else:
            text = [
                f"{a}e = memref.expand_shape %x [[0, 1]] output_shape [4, 4] : memref<16xi64> into memref<4x4xi64>",
                f"{a} = memref.collapse_shape {a}e [[0, 1]] : memref<4x4xi64> into memref<16xi64>",
            ]
            size, kind = 16, "memref<16xi64>"
        text.append(f"memref.store %data, {a}[{at}] : {kind}")
        return text, lambda v: [(v[at], 1, size)]

    def of_vector(self, at: str, count: str, peer: str) -> Checked:
        a = self.name()
        hint = self.rnd.choice(["", " {alignment = 64 : i64}", " {nontemporal = true}"])
        if self.rnd.random() < 0.5:
            text = [
                f"{a} = vector.load %x[{at}]{hint} : memref<16xi64>, vector<4xi64>",
                f"vector.store {a}, %x[{at}]{hint} : memref<16xi64>, vector<4xi64>",
            ]
            return text, lambda v: [(v[at], 4, SIZE)]

        def limits(v: Values) -> list[tuple[int, int, int]]:
            if v[count] <= 0 and not 0 <= v[at] <= SIZE - 4:
                raise TooLongError  # Folders leave out what accesses nothing.
            return [(v[at], 4, SIZE)]

        mask = [f"{a}m = vector.create_mask {count} : vector<4xi1>"]
        mask += [
            f"{a} = vector.maskedload %x[{at}], {a}m, %vector "
            ": memref<16xi64>, vector<4xi1>, vector<4xi64> into vector<4xi64>"
        ]
        mask += [f"vector.maskedstore %x[{at}], {a}m, {a} : memref<16xi64>, vector<4xi1>, vector<4xi64>"]
        return mask, limits

    def of_tile(self, at: str, count: str, peer: str) -> Checked:
        a, valid = self.name(), self.rnd.choice(["", f" valid {count}"])
        memory, kind, size = self.rnd.choice(
            [("%x", "memref<16xi64>", 16), ("%m", "memref<16x2xi64>", 32), ("%own", "memref<16xi64>", 16)]
        )
        text = [
            f"{a} = comms.tile_load {memory}[{at}]{valid} : {kind} -> tensor<4xi64>",
            f"comms.tile_store %tile, {memory}[{at}]{valid} : tensor<4xi64>, {kind}",
        ]
        if not valid:
            return text, lambda v: [(v[at], 4, size)]
        return text, lambda v: [(0, v[count], 4), (v[at], v[count], size)]

    def of_scratch(self, at: str, count: str, peer: str) -> Checked:
        a = self.name()
        made = self.rnd.choice(["comms.scratch : memref<16xi64>", "memref.alloca() : memref<16xi64>"])
        text = [
            f"{a} = {made}",
            f"comms.tile_store %tile, {a}[{at}] : tensor<4xi64>, memref<16xi64>",
            f"{a}q = memref.load {a}[{at}] : memref<16xi64>",
        ]
        return text, lambda v: [(v[at], 4, SIZE)]

    def of_peer(self, at: str, count: str, peer: str) -> Checked:
        a = self.name()
        text = [
            f"{a} = comms.peer %w at {peer} of %team : !comms.window<16xi64> -> memref<16xi64>",
            f"{a}q = comms.tile_load {a}[{at}] : memref<16xi64> -> tensor<4xi64>",
            f"comms.tile_store %tile, {a}[{at}] : tensor<4xi64>, memref<16xi64>",
        ]
        return text, lambda v: [(v[peer], 1, self.ranks), (v[at], 4, SIZE)]

    def transfer(self, at: str, count: str, peer: str) -> Checked:
        a, kind = self.name(), self.rnd.choice(["put", "get", "put_signal", "engine_copy", "bulk_copy"])
        if kind == "engine_copy" and self.depth:  # A step of the host.
            kind = "put"
        there = self.rnd.choice([at, "%k0", "%k3"])
        sides = "memref<16xi64>, !comms.window<16xi64>"
        end = f"count {count} at {peer} of %team"
        texts = {
            "put": f"comms.put %x[{at}] to %w[{there}] {end} : {sides}",
            "get": f"comms.get %w[{there}] to %x[{at}] {end} : !comms.window<16xi64>, memref<16xi64>",
            "put_signal": f"comms.put_signal %x[{at}] to %w[{there}] {end} then inc %s[%k1] "
            f": {sides}, !comms.signal<16>",
            "engine_copy": f"comms.engine_copy %x[{at}] to %w[{there}] {end} : {sides}",
            "bulk_copy": "",
        }
        text = [texts[kind]]
        if kind == "bulk_copy":
            # Of 16 bytes, where offset and count are whole multiples.
            text = [
                f"{a}{end} = arith.muli {name}, %k2 : index"
                for end, name in zip("atc", (at, there, count), strict=True)
            ]
            text.append(
                f"{a} = comms.bulk_copy %x[{a}a] to %own[{a}t] count {a}c : memref<16xi64>, memref<16xi64>",
            )
            text.append(f"{a}w = comms.bulk_wait {a}")
            return text, lambda v: [
                (signed(2 * v[at]), signed(2 * v[count]), SIZE),
                (signed(2 * v[there]), signed(2 * v[count]), SIZE),
            ]
        return text, lambda v: [(v[at], v[count], SIZE), (v[there], v[count], SIZE), (v[peer], 1, self.ranks)]

    def cell(self, at: str, count: str, peer: str) -> Checked:
        kinds = ["read", "reset", "signal", "counter", "wait", "wait_from", "wait_counter", "reset_counter"]
        a, kind = self.name(), self.rnd.choice(kinds)
        zero = f"{a}z = arith.constant 0 : i64"
        texts = {
            "read": [f"{a} = comms.read_signal %s[{at}] : !comms.signal<16>"],
            "reset": [f"comms.reset_signal %s[{at}] : !comms.signal<16>"],
            "signal": [f"comms.signal inc %s[{at}] at {peer} of %team : !comms.signal<16>"],
            "counter": [f"{a} = comms.read_counter %c[{at}] : !comms.counter<16>"],
            "wait": [zero, f"{a} = comms.wait_signal %s[{at}] ge {a}z : !comms.signal<16>"],
            "wait_from": [
                zero,
                f"{a} = comms.wait_signal_from %s[{at}] ge {a}z from %k0 of %team : !comms.signal<16>",
            ],
            "wait_counter": [zero, f"{a} = comms.wait_counter %c[{at}] ge {a}z : !comms.counter<16>"],
            "reset_counter": [f"comms.reset_counter %c[{at}] : !comms.counter<16>"],
        }
        # The peer of `wait_from` is only named in reports, and refused where it is a constant and no rank.
        if kind == "signal":
            return texts[kind], lambda v: [(v[at], 1, SIZE), (v[peer], 1, self.ranks)]
        return texts[kind], lambda v: [(v[at], 1, SIZE)]

    def copy(self, at: str, count: str, peer: str) -> Checked:
        """A copy between arrays whose sizes casts hide."""
        a, size = self.name(), self.rnd.choice([8, 16, 32])
        text = [
            f"{a} = memref.alloca() : memref<{size}xi64>",
            f"{a}c = memref.cast {a} : memref<{size}xi64> to memref<?xi64>",
            f"memref.copy %open, {a}c : memref<?xi64> to memref<?xi64>",
        ]
        return text, lambda v: [(0, SIZE, size), (0, size, SIZE)]

    def bounds(self, at: str, count: str, peer: str) -> Checked:
        text = [f'comms.check_bounds "a check" {at}, {count} in %k16']
        return text, lambda v: [(v[at], v[count], SIZE)]

    def of_packets(self, at: str, count: str, peer: str) -> Checked:
        a, valid = self.name(), self.rnd.choice(["", f" valid {count}"])
        text = [f"{a}s = comms.scratch : memref<16xi64>", f"{a}f = arith.constant 7 : i32"]
        kind = self.rnd.choice(["packet", "poison", "fill"])
        if kind == "fill":
            text = [f"{a}s = comms.scratch : memref<16xf32>"]
            text += [f"comms.poison_fill {a}s[{at}] count {count} : memref<16xf32>"]
            return text, lambda v: [(v[at], v[count], SIZE)]
        if kind == "poison":
            text = [f"comms.poison_store %floats, %f[{at}]{valid} : tensor<4xf32>, memref<16xf32>"]
            text += [f"{a} = comms.poison_load %f[{at}]{valid} : memref<16xf32> -> tensor<4xf32>"]
        else:
            text += [f"comms.packet_store %floats, {a}s[{at}] flag {a}f{valid} : tensor<4xf32>, memref<16xi64>"]
            text += [f"{a} = comms.packet_load {a}s[{at}] flag {a}f{valid} : memref<16xi64> -> tensor<4xf32>"]
        if not valid:
            return text, lambda v: [(v[at], 4, SIZE)]
        return text, lambda v: [(0, v[count], 4), (v[at], v[count], SIZE)]

    def of_product(self, at: str, count: str, peer: str) -> Checked:
        """A product of parts of two matrices."""
        a = self.name()
        row, column = at, self.rnd.choice([peer, "%k0", "%k3"])
        depth, rows = self.rnd.choice([(count, "%k2"), ("%k2", count), (count, "")])
        text = [f"{a}{end} = comms.scratch : memref<16x16xbf16>" for end in "lr"]
        text += [
            f"{a} = comms.scratch : memref<16x16xf32>",
            f"comms.contract {a}l[{row}, %k0], {a}r[%k0, {column}] to {a}[{row}, {column}] tile [4, 4] depth {depth}"
            f"{' rows ' + rows if rows else ''} : memref<16x16xbf16>, memref<16x16xbf16>, memref<16x16xf32>",
        ]

        def limits(v: Values) -> list[tuple[int, int, int]]:
            high, deep = v[rows] if rows else 4, v[depth]
            places = [(0, high, 4), (v[row], high, 16), (v[column], 4, 16), (0, deep, 16)]
            if 0 in (high, deep) and not all(first >= 0 and first + size <= most for first, size, most in places):
                raise TooLongError  # Of nothing, a place may be anywhere.
            return places

        return text, limits

    # --- The verdict

    def predict(self) -> str:
        """ "good", "bounds" or "long"."""
        try:
            self.run_all(self.body, {})
        except LeftBoundsError:
            return "bounds"
        except TooLongError:
            return "long"
        return "good"
