"""A function of PTX as the text of a Python generator. It yields where a thread may wait for others."""

import re

from memory import LEVELS, ORDERED, RELAXED, SYS, WEAK
from registers import FLOATS, INTEGRAL, NARROW, WIDTHS


def split_operands(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        depth += (char in "{[(") - (char in "}])")
        if char == "," and not depth:
            parts.append(text[start:at].strip())
            start = at + 1
    parts.append(text[start:].strip())
    return [part for part in parts if part]


SPECIAL = {
    "%tid.x": "c.thread",
    "%ntid.x": "c.threads",
    "%ctaid.x": "c.cta",
    "%nctaid.x": "c.ctas",
    "%laneid": "(c.thread & 31)",
    "%cluster_ctarank": "(c.cta % c.cluster)",
    "%cluster_ctaid.x": "(c.cta % c.cluster)",
    "%cluster_nctarank": "c.cluster",
    "%globaltimer": "0",
    "%globaltimer_lo": "0",
    "%clock64": "0",
}


def meaning(parts: list[str]) -> str:
    """Order and scope of an access, as the memory's functions take them."""
    if "volatile" in parts:
        return f"{RELAXED}, {SYS}"
    order = ORDERED if {"acquire", "release", "acq_rel"} & set(parts) else RELAXED if "relaxed" in parts else WEAK
    return f"{order}, {next((LEVELS.index(part) for part in parts if part in LEVELS), SYS)}"


class Translator:
    """One function."""

    def __init__(self, name: str, arguments: list[str], is_entry: bool, shared: dict[str, int]) -> None:
        self.name, self.arguments, self.is_entry, self.shared = name, arguments, is_entry, shared
        self.blocks: list[tuple[list[str], list[tuple[int, str]]]] = []
        self.local: dict[str, int] = {}
        self.barriers = self.groups = 0
        self.tables: dict[int, list[str]] = {}

    def operand(self, text: str) -> str:
        text = text.strip()
        if text in SPECIAL:
            return SPECIAL[text]
        if text.startswith("%SP"):
            return text[1:]
        if re.fullmatch(r"%[a-z]+\d+", text):
            return text[1:]
        if re.fullmatch(r"0f[0-9A-Fa-f]{8}|0d[0-9A-Fa-f]{16}", text):
            return str(int(text[2:], 16))
        if number := re.fullmatch(r"(-?(0x[0-9a-fA-F]+|\d+))U?", text):
            return number[1]
        if self.is_entry and text in self.arguments:
            return "c.params"
        if text in self.shared or text in self.local:
            return f"c.symbols['{text}']"
        if re.fullmatch(r"[a-z]\w*", text):  # A register of inline assembly.
            return "x_" + text
        raise NotImplementedError(f"operand {text}")

    def vector(self, text: str) -> list[str]:
        return [self.operand(part) for part in split_operands(text[1:-1])] if text[0] == "{" else [self.operand(text)]

    def address(self, text: str) -> str:
        inner = text.strip()[1:-1]
        match = re.fullmatch(r"([%\w.$]+)\s*(?:\+\s*(-?\w+))?", inner)
        if not match:
            raise NotImplementedError(f"address {text}")
        base = self.operand(match[1])
        return f"({base} + {match[2]})" if match[2] else base

    def instruction(self, op: str, operands: list[str]) -> list[str]:
        parts = op.split(".")
        head, kind = parts[0], parts[-1]
        width = WIDTHS.get(kind, 0)
        if head == "fence" and parts[1] == "acq_rel":
            return [f"c.memory.fence(c.who, {LEVELS.index(parts[2])})"]
        if head == "fence" and "tensormap" in op and "acquire" in parts:
            return [f"c.maps.acquire(c.memory, {self.address(operands[0])})"]
        if op.startswith("fence.mbarrier_init"):
            return ["c.memory.fence_barriers(c.who)"]
        if op.startswith("fence.proxy.async"):
            return ["c.memory.proxies.fence(c.who)"]
        if head in ("griddepcontrol", "fence", "prefetch", "isspacep", "pragma"):
            return []
        if head == "tensormap":
            return self.map(parts, operands)
        if head == "wgmma":
            return self.group(parts, operands)
        if head == "elect":
            word, leads = operands[0].split("|")
            return [f"{self.operand(word)} = 0", f"{self.operand(leads)} = c.thread & 31 == 0"]
        if head == "multimem":
            return self.multimem(parts, operands)
        if head == "cp" and "prefetch" in parts:
            return []
        if head == "cp":
            return self.copy(parts, operands)
        if head in ("ldmatrix", "mma"):
            return self.together(parts, operands)
        if head == "mbarrier":
            return self.shared_barrier(parts, operands)
        if head == "st" and "async" in parts:
            values, at = ", ".join(self.vector(operands[1])), self.address(operands[2])
            size = width // 8 * len(self.vector(operands[1]))
            return [
                f"c.memory.store({self.address(operands[0])}, {width // 8}, [{values}])",
                f"c.memory.expect(None, {at}, 0, -{size})",
            ]
        if head == "bar" or head == "barrier":
            return self.barrier(parts, operands)
        if head == "st" and parts[1] == "param":
            name = re.match(r"\[(\w+)", operands[0])
            assert name
            return [f"P_{name[1]} = {self.operand(operands[1])}"]
        if head == "ld" and parts[1] == "param":
            name = re.match(r"\[(\w+)\]", operands[1])
            if name and (name[1].startswith("retval") or not self.is_entry):
                source = f"P_{name[1]}"
                return [f"{self.operand(operands[0])} = {source}"]
        if head == "ld":
            count = int(parts[-2][1:]) if re.fullmatch(r"v\d", parts[-2]) else 1
            lines = ["yield ('look',)"] if {"relaxed", "acquire", "volatile"} & set(parts) else []
            targets = ", ".join(self.vector(operands[0]))
            lines.append(
                f"{targets}{',' if count == 1 else ''} = "
                f"load(c.who, {self.address(operands[1])}, {width // 8}, {count}, {meaning(parts)})"
            )
            if kind[0] == "s" and (width < 32 or (width == 32 and targets.startswith("rd"))):
                lines.append(f"{targets} = signed({targets}, {width})")
            return lines
        if head == "st":
            values = ", ".join(self.vector(operands[1]))
            return [f"store(c.who, {self.address(operands[0])}, {width // 8}, [{values}], {meaning(parts)})"]
        if head in ("atom", "red"):
            return self.atomic(head, parts, operands, width)
        if head == "shfl":
            return self.shuffle(parts, operands)
        if head == "redux":
            value, members = (self.operand(operand) for operand in operands[1:3])
            line = f"{self.operand(operands[0])} = yield ('redux', {parts[2]!r}, {parts[3]!r}, {value}, {members})"
            return [line]
        if head == "vote":
            return [
                f"{self.operand(operands[0])} = yield ('vote', {parts[2]!r}, {self.vote(operands[1])}, {operands[2]})"
            ]
        if head == "activemask":
            return [f"{self.operand(operands[0])} = 0xffffffff"]
        if head == "nanosleep":
            return ["yield ('look',)"]
        if head == "call":
            return self.call(operands)
        if head in ("mov", "cvta") and operands[1][0] == "{":
            pieces = self.vector(operands[1])
            each = width // len(pieces)
            joined = " | ".join(f"({p} & {hex((1 << each) - 1)}) << {i * each}" for i, p in enumerate(pieces))
            return [f"{self.operand(operands[0])} = {joined}"]
        if head == "mov" and operands[0][0] == "{":
            pieces = self.vector(operands[0].replace("_", "%unused0"))
            each = width // len(pieces)
            source = self.operand(operands[1])
            return [f"{p} = {source} >> {i * each} & {hex((1 << each) - 1)}" for i, p in enumerate(pieces)]
        if head == "cvta":
            return [f"{self.operand(operands[0])} = {self.operand(operands[1])}"]
        if head == "mapa":
            rank = self.operand(operands[2])
            made = f"yield ('mapa', {self.operand(operands[1])}, {rank})"
            return [f"{self.operand(operands[0])} = {made}"]
        if head == "setp" and kind in ("f16x2", "bf16x2"):
            of = "from_f16" if kind[0] == "f" else "from_bf16"
            a, b = (self.operand(operand) for operand in operands[1:])
            return [
                f"{self.operand(target)} = compare({parts[1]!r}, f32({of}({a} >> {by})), f32({of}({b} >> {by})))"
                for target, by in zip(operands[0].split("|"), (0, 16), strict=True)
            ]
        target, *sources = [self.operand(operand) for operand in operands]
        value = self.value(parts, kind, width, sources)
        if head == "setp" or kind == "pred":
            return [f"{target} = bool({value})"]
        if head == "cvt" and parts[-2] == "s8":  # The register is wider, and has the sign.
            return [f"{target} = ({value}) & 0xffffffff"]
        is_mixed = parts[-2] == "f32" and kind in ("f16", "bf16")
        to = 32 if is_mixed else width
        to = WIDTHS[parts[-2]] if head == "cvt" else 2 * width if "wide" in parts else to
        if head in ("popc", "clz", "bfind"):
            to = 32
        return [f"{target} = ({value}) & {hex((1 << to) - 1)}"] if to != 1 else [f"{target} = {value}"]

    def vote(self, text: str) -> str:
        return f"not {self.operand(text[1:])}" if text[0] == "!" else self.operand(text)

    def value(self, parts: list[str], kind: str, width: int, s: list[str]) -> str:
        head = parts[0]
        if head == "cvt":
            return self.convert(parts, s)
        if kind in ("f32", "f64") and head not in ("selp", "mov"):
            return self.floats(parts, kind, s)
        if kind == "f32x2" and head in ("add", "sub", "mul"):
            sign = {"add": "+", "sub": "-", "mul": "*"}[head]
            low, high = (f"b32(f32({s[0]} >> {n}) {sign} f32({s[1]} >> {n}))" for n in (0, 32))
            return f"{low} | {high} << 32"
        if kind == "f32x2" and head == "fma":
            low, high = (f"b32(fma({', '.join(f'f32({x} >> {by})' for x in s)}))" for by in (0, 32))
            return f"{low} | {high} << 32"
        if kind in ("s16x2", "u16x2") or kind in ("f16", "bf16", "f16x2", "bf16x2"):
            return self.halves(parts, kind, s)
        signs = kind[0] == "s"
        n = [f"signed({x}, {width})" if signs else f"({x} & {hex((1 << width) - 1)})" for x in s] if width > 1 else s
        if head in ("mov", "selp"):
            return s[0] if head == "mov" else f"{s[0]} if {s[2]} else {s[1]}"
        if head == "setp":
            how = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}.get(parts[1], parts[1])
            sign = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}[how]
            return f"{n[0]} {sign} {n[1]}"
        if head in ("add", "sub", "and", "or", "xor"):
            sign = {"add": "+", "sub": "-", "and": "&", "or": "|", "xor": "^"}[head]
            return f"{s[0]} {sign} {s[1]}"
        if head in ("mul", "mad"):
            product = f"{n[0]} * {n[1]}"
            if "hi" in parts:
                product = f"({product} >> {width})"
            return product if head == "mul" else f"{product} + {s[2]}"
        if head in ("div", "rem"):
            quotient = f"divide_int({n[0]}, {n[1]})"
            return quotient if head == "div" else f"{n[0]} - {quotient} * {n[1]}"
        if head in ("min", "max"):
            return f"{head}({n[0]}, {n[1]})"
        if head == "shl":
            return f"{s[0]} << min({s[1]} & 0xffffffff, {width})"
        if head == "shr":
            return f"{n[0]} >> min({s[1]} & 0xffffffff, {width})"
        if head == "not":
            return f"not {s[0]}" if kind == "pred" else f"~{s[0]}"
        if head == "neg":
            return f"-{s[0]}"
        if head == "abs":
            return f"abs({n[0]})"
        if head == "bfe":
            field = f"({n[0]} >> {s[1]}) & ((1 << {s[2]}) - 1)"
            return f"signed({field}, {s[2]})" if signs else field
        if head == "bfi":
            field = f"((1 << {s[3]}) - 1)"
            return f"{s[1]} & ~({field} << {s[2]}) | ({s[0]} & {field}) << {s[2]}"
        if head == "lop3":
            a, b, c = s[:3]
            terms = [
                f"({a if n & 4 else f'~{a}'} & {b if n & 2 else f'~{b}'} & {c if n & 1 else f'~{c}'})" for n in range(8)
            ]
            return " | ".join(term for n, term in enumerate(terms) if int(s[3], 0) >> n & 1) or "0"
        if head == "prmt":
            return f"permute({s[0]}, {s[1]}, {s[2]})"
        if head == "popc":
            return f"({n[0]}).bit_count()"
        if head == "clz":
            return f"{width} - ({n[0]}).bit_length()"
        if head == "shf":
            joined = f"(({s[1]} & 0xffffffff) << 32 | {s[0]} & 0xffffffff)"
            by = f"({s[2]} & 31)" if "wrap" in parts else f"min({s[2]}, 32)"
            return f"({joined} << {by}) >> 32" if parts[1] == "l" else f"{joined} >> {by}"
        raise NotImplementedError(".".join(parts))

    def floats(self, parts: list[str], kind: str, s: list[str]) -> str:
        head, of, to = parts[0], kind, "b" + kind[1:]
        n = [f"{of}({x})" for x in s]
        if head in ("abs", "neg"):
            sign = 1 << int(kind[1:]) - 1
            return f"{s[0]} & {hex(sign - 1)}" if head == "abs" else f"{s[0]} ^ {hex(sign)}"
        if head == "copysign":
            sign = 1 << int(kind[1:]) - 1
            return f"{s[0]} & {hex(sign)} | {s[1]} & {hex(sign - 1)}"
        if head == "setp":
            return f"compare({parts[1]!r}, {n[0]}, {n[1]})"
        if head in ("add", "sub", "mul"):
            return f"{to}({n[0]} {dict(add='+', sub='-', mul='*')[head]} {n[1]})"
        if head == "fma":
            return f"{to}({'fma' if kind == 'f32' else 'fma_of_f64'}({', '.join(n)}))"
        if head == "div":
            return f"{to}(divide({n[0]}, {n[1]}))"
        # An approximation is as good as it can be; GPUs show whether theirs do.
        if head in ("sqrt", "rcp", "rsqrt"):
            root = f"root({n[0]})"
            return f"{to}({root})" if head == "sqrt" else f"{to}(divide(1.0, {n[0] if head == 'rcp' else root}))"
        if head in ("min", "max"):
            return f"{head}imum({s[0]}, {s[1]}, {'NaN' in parts}, {of}, {to})"
        raise NotImplementedError(".".join(parts))

    def halves(self, parts: list[str], kind: str, s: list[str]) -> str:
        head = parts[0]
        if head == "mov":
            return s[0]
        if parts[-2] == "f32" and head in ("add", "sub"):  # A half and an f32.
            of = "from_f16" if kind == "f16" else "from_bf16"
            return f"b32(f32({of}({s[0]})) {'+' if head == 'add' else '-'} f32({s[1]}))"
        if parts[-2] == "f32" and head == "fma":
            of = "from_f16" if kind == "f16" else "from_bf16"
            return f"b32(fma(f32({of}({s[0]})), f32({of}({s[1]})), f32({s[2]})))"
        if kind in ("s16x2", "u16x2") and head == "add":
            return f"({s[0]} + {s[1]} & 0xffff) | ({s[0]} >> 16) + ({s[1]} >> 16) << 16"
        if kind in ("s16x2", "u16x2") and head in ("min", "max"):
            cut = "signed({}, 16)" if kind[0] == "s" else "({} & 0xffff)"
            low = f"{head}({cut.format(s[0])}, {cut.format(s[1])}) & 0xffff"
            high = f"{head}({cut.format(s[0] + ' >> 16')}, {cut.format(s[1] + ' >> 16')}) & 0xffff"
            return f"({low}) | ({high}) << 16"
        if kind in ("f16", "f16x2", "bf16x2") and head in ("add", "sub", "mul", "fma"):
            wide = "f32(from_f16({} >> {}))" if kind[0] == "f" else "f32(from_bf16({} >> {}))"
            sign = {"add": "+", "sub": "-", "mul": "*", "fma": "*"}[head]
            made = []
            for by in (0, 16) if kind.endswith("x2") else (0,):
                a, b, *c = (wide.format(x, by) for x in s)
                made.append(
                    f"{'f16' if kind[0] == 'f' else 'bf16'}(b32({a} {sign} {b}{' + ' + c[0] if c else ''})) << {by}"
                )
            return " | ".join(made)
        if head in ("min", "max") and kind[0] in "fb":
            of, to = ("from_f16", "f16") if kind[0] == "f" else ("from_bf16", "bf16")
            made = []
            for by in (0, 16) if kind.endswith("x2") else (0,):
                a, b = (f"{of}({x} >> {by})" for x in s)
                made.append(f"{to}({head}imum({a}, {b}, {'NaN' in parts}, f32, b32)) << {by}")
            return " | ".join(made)
        if head in ("abs", "neg"):
            signs = 0x80008000 if kind.endswith("x2") else 0x8000
            return f"{s[0]} & {0x7FFF7FFF & ~signs}" if head == "abs" else f"{s[0]} ^ {signs}"
        if kind == "f16" and head == "setp":
            return f"compare({parts[1]!r}, f32(from_f16({s[0]})), f32(from_f16({s[1]})))"
        if kind == "bf16" and head == "setp":
            return f"compare({parts[1]!r}, f32({s[0]} << 16), f32({s[1]} << 16))"
        raise NotImplementedError(".".join(parts))

    def convert(self, parts: list[str], s: list[str]) -> str:
        to, of = parts[-2], parts[-1]
        if to[:-2] in NARROW and of == "f32":
            return f"to_narrow({s[0]}, {to[:-2]!r}) << 8 | to_narrow({s[1]}, {to[:-2]!r})"
        if of[:-2] in NARROW and to == "f16x2":
            return f"from_narrow({s[0]} >> 8, {of[:-2]!r}) << 16 | from_narrow({s[0]}, {of[:-2]!r})"
        if to in ("bf16x2", "f16x2"):
            name = to[:-2]
            return f"{name}({s[0]}) << 16 | {name}({s[1]})"
        if to in ("bf16", "f16") and of == "f32":
            return f"{to}({s[0]})"
        if to == "f32" and of in ("bf16", "f16") and len(parts) == 3:
            return f"{s[0]} << 16" if of == "bf16" else f"from_f16({s[0]})"
        if to[0] in "sub" and of[0] in "sub" and "f" not in to + of:
            width = WIDTHS[of]
            number = f"signed({s[0]}, {width})" if of[0] == "s" else f"({s[0]} & {hex((1 << width) - 1)})"
            return f"signed({number}, 8)" if to == "s8" else number
        if to in ("f32", "f64") and of[0] in "su":
            width = WIDTHS[of]
            number = f"signed({s[0]}, {width})" if of[0] == "s" else f"({s[0]} & {hex((1 << width) - 1)})"
            return f"from_integer({number})" if to == "f32" else f"b64(float({number}))"
        # By way of f32, which has what is in f16's range, and all of 16 bits.
        if of[0] in "su" and (to == "f16" or (to == "bf16" and WIDTHS[of] <= 16)):
            number = f"signed({s[0]}, {WIDTHS[of]})" if of[0] == "s" else f"({s[0]} & {hex((1 << WIDTHS[of]) - 1)})"
            return f"{to}(from_integer({number}))"
        if of in FLOATS:
            number = FLOATS[of].format(s[0])
            if mode := next((part for part in parts if part in INTEGRAL), ""):
                number = f"integral({number}, {mode!r})"
            if to[0] in "su":
                return f"to_integer({number}, {WIDTHS[to]}, {to[0] == 's'})"
            if to in ("f32", "f64"):
                return f"b{to[1:]}({number})"
            if of != "f64":
                return f"{to}(b32({number}))"
        raise NotImplementedError(".".join(parts))

    def shared_barrier(self, parts: list[str], operands: list[str]) -> list[str]:
        if parts[1] == "init":
            return [f"c.memory.open_barrier(c.who, {self.address(operands[0])}, {self.operand(operands[1])})"]
        if "expect_tx" in parts:
            return [f"c.memory.expect(c.who, {self.address(operands[1])}, 1, {self.operand(operands[2])})"]
        if parts[1] == "arrive":
            return [f"c.memory.expect(c.who, {self.address(operands[1])}, 1, 0)"]
        if "try_wait" in parts:
            passed = f"c.memory.has_passed(c.who, {self.address(operands[1])}, {self.operand(operands[2])})"
            return ["yield ('look',)", f"{self.operand(operands[0])} = {passed}"]
        raise NotImplementedError(".".join(parts))

    def barrier(self, parts: list[str], operands: list[str]) -> list[str]:
        if "warp" in parts:
            return [f"yield ('warp', {self.operand(operands[0])})"]
        if "cluster" in parts:
            if "arrive" in parts:
                return [f"c.memory.arrive(c.who, {'relaxed' not in parts})", "yield ('arrive',)"]
            return ["yield ('cluster',)"]
        self.barriers += 1
        count = self.operand(operands[1]) if len(operands) > 1 else "0"
        return [f"yield ('bar', {self.operand(operands[0])}, {self.barriers}, {count})"]

    def map(self, parts: list[str], operands: list[str]) -> list[str]:
        """Fields of a map in shared memory, and the copy of the whole to global memory."""
        if parts[1] == "replace":
            number = operands[1] if len(operands) > 2 else "0"
            value, at = self.operand(operands[-1]), self.address(operands[0])
            return [f"c.maps.replace(c.memory, {at}, {parts[3]!r}, {number}, {value})"]
        dest, source = (self.address(operand) for operand in operands[:2])
        return [f"c.memory.store({dest}, 4, c.memory.load({source}, 4, 32))"]

    def group(self, parts: list[str], operands: list[str]) -> list[str]:
        """What four warps do together. Its operands may change as soon as all have come."""
        if parts[1] == "wait_group":
            return [f"c.groups.wait({operands[0]})"]
        if parts[1] != "mma_async":
            return [f"c.groups.{'fence' if parts[1] == 'fence' else 'commit'}()"]
        targets = ", ".join(self.vector(operands[0]))
        left, right, keeps = (self.operand(operand) for operand in operands[1:4])
        turns = f"({', '.join(operands[6:8]) or '0, 0'})"
        given = f"({left}, {right}, {keeps}, {turns}, [{targets}])"
        kinds = (parts[-2], parts[-1])
        return [f"{targets} = yield ('group', {self.next_group()}, {parts[4]!r}, {kinds}, {given})"]

    def next_group(self) -> int:
        self.groups += 1
        return self.groups

    def atomic(self, head: str, parts: list[str], operands: list[str], width: int) -> list[str]:
        result = self.operand(operands.pop(0)) + " = " if head == "atom" else ""
        what = next(part for part in parts if part in ("add", "exch", "cas", "or", "and", "max", "min"))
        value = self.operand(operands[1])
        new = {"add": f"old + {value}", "exch": value, "or": f"old | {value}", "and": f"old & {value}"}
        new["cas"] = f"{self.operand(operands[2])} if old == {value} else old" if len(operands) > 2 else ""
        releases = "release" in parts or "acq_rel" in parts
        call = f"atomic(c.who, {self.address(operands[0])}, {width // 8}, lambda old: {new[what]}, "
        call += f"{meaning(parts)}, {releases})"
        return ["yield ('look',)", result + call]

    def multimem(self, parts: list[str], operands: list[str]) -> list[str]:
        """Each instruction is those of all ranks, in their order; sums of halves are rounded once (.acc::f32)."""
        kind = parts[-1]
        if parts[1] == "ld_reduce":
            what = next(part for part in parts if part in ("add", "min", "max", "and", "or", "xor"))
            targets = ", ".join(self.vector(operands[0]))
            count = len(self.vector(operands[0]))
            read = f"multimem_read(c, {self.address(operands[1])}, {what!r}, {kind!r}, {count})"
            return ["yield ('look',)", f"{targets}{',' if count == 1 else ''} = {read}"]
        values, at = ", ".join(self.vector(operands[1])), self.address(operands[0])
        if parts[1] == "st":
            return [f"multimem_write(c, {at}, {WIDTHS[kind] // 8}, [{values}])"]
        what = next(part for part in parts if part in ("add", "min", "max", "and", "or", "xor"))
        return ["yield ('look',)", f"multimem_update(c, {at}, {what!r}, {kind!r}, [{values}])"]

    def copy(self, parts: list[str], operands: list[str]) -> list[str]:
        """cp.async, which is seen in shared memory once its group has been waited for."""
        if "tensor" in parts:
            address, column, row = re.findall(r"%\w+", operands[1])
            tile = ", ".join(map(self.operand, (address, column, row)))
            return [
                f"c.maps.copy(c.memory, c.who, {self.address(operands[0])}, {tile}, {self.address(operands[2])})",
                "yield ('look',)",
            ]
        if parts[2] == "commit_group":
            return ["c.copies.commit()"]
        if parts[2] == "wait_group":
            return [f"c.copies.wait(c.memory, c.who, {operands[0]})"]
        if parts[2] != "cg" or operands[2] != "16":
            raise NotImplementedError(".".join(parts))
        dest, source = (self.address(operand) for operand in operands[:2])
        size = self.operand(operands[3]) if len(operands) > 3 else "16"
        return [f"c.copies.start(c.memory, c.who, {dest}, {source}, {size})"]

    def together(self, parts: list[str], operands: list[str]) -> list[str]:
        """What all lanes of a warp do with matrices."""
        targets = ", ".join(self.vector(operands[0]))
        if parts[0] == "ldmatrix":
            given = f"{'trans' in parts}, {self.address(operands[1])}"
        else:
            given = ", ".join([repr(parts[-2]), *(value for operand in operands[1:] for value in self.vector(operand))])
        return [f"{targets} = yield ('together', {parts[0]!r}, ({given}), 0xffffffff)"]

    def shuffle(self, parts: list[str], operands: list[str]) -> list[str]:
        targets = operands[0].split("|")
        value, lane, control, members = (self.operand(operand) for operand in operands[1:5])
        line = f"got = yield ('shfl', {parts[2]!r}, {value}, {lane}, {control}, {members})"
        lines = [line, f"{self.operand(targets[0])} = got[0]"]
        return lines + [f"{self.operand(targets[1])} = got[1]"] if len(targets) > 1 else lines

    def call(self, operands: list[str]) -> list[str]:
        result = operands[0][1:-1].strip() if operands[0][0] == "(" else ""
        name = operands[1] if result else operands[0]
        given = operands[-1][1:-1] if operands[-1][0] == "(" and operands[-1] != operands[0] else ""
        arguments = ", ".join("P_" + argument for argument in split_operands(given))
        call = f"yield from F['{name}'](c, F, {arguments})"
        return [f"P_{result} = {call}" if result else call]

    # Lines ---------------------------------------------------------------------------------------------------------

    def translate(self, body: list[str]) -> str:
        labels: dict[str, int] = {}
        blocks: list[list[str]] = [[]]
        for line in body:
            if line.startswith(".branchtargets"):
                self.tables[len(blocks) - 1] = split_operands(line.split(None, 1)[1])
                continue
            if label := re.fullmatch(r"(\$\w+):", line):
                blocks.append([])
                labels[label[1]] = len(blocks) - 1
                continue
            blocks[-1].append(line)
            if re.match(r"(@!?%\w+\s+)?(bra|brx|ret|exit|trap)\b", line):
                blocks.append([])
        text = [f"def run(c, F{''.join(', P_' + a for a in self.arguments) if not self.is_entry else ''}):"]
        # What is read before it is written is anything.
        registers = sorted({name for line in body for name in re.findall(r"%(\w+\d)", line)})
        text += [f"  {' = '.join(registers)} = 0xBADBADBADBADBAD"] if registers else []
        text += ["  load, store, atomic = c.memory.read, c.memory.write, c.memory.update", "  pc = 0", "  while True:"]
        for number, block in enumerate(blocks):
            text.append(f"    if pc == {number}:")
            for line in block:
                text += ["      " + made for made in self.line(line, labels)]
            text.append(f"      pc = {number + 1}")
        text.append("    raise Fault('ran off the end')")
        return "\n".join(text)

    def line(self, line: str, labels: dict[str, int]) -> list[str]:
        guard = ""
        if match := re.match(r"@(!?)([%\w]+)\s+(.*)", line):
            guard, line = f"if {'not ' if match[1] else ''}{self.operand(match[2])}: ", match[3]
        op, _, rest = line.partition(" ")
        operands = split_operands(rest.strip())
        if op == "brx.idx":
            table = [labels[label] for label in self.tables[labels[operands[1]]]]
            made = [f"pc = {table}[{self.operand(operands[0])}]", "continue"]
        elif op.startswith("bra"):
            made = [f"pc = {labels[operands[0]]}", "continue"]
        elif op == "ret" or op == "exit":
            made = ["return locals().get('P_func_retval0')" if not self.is_entry else "return"]
        elif op == "trap":
            made = ["raise Fault('trap')"]
        else:
            made = self.instruction(op, operands)
        if not guard:
            return made
        return [guard.rstrip(), *("  " + each for each in made)] if made else []
