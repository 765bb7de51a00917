//===- PtxasFaults.cpp - PTX that ptxas gets right ------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/nvvm/PtxasFaults.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

#include <array>

using namespace llvm;

namespace {

/// `@%p1 op.type operands;`, one instruction on a line, as LLVM writes them.
struct PtxInstruction {
  StringRef predicate; // With what follows it.
  StringRef op;
  StringRef operands;
};

/// The lines of one function.
class FunctionText {
public:
  explicit FunctionText(ArrayRef<StringRef> lines) : lines(lines) {}

  std::string rewrite();

private:
  void scan();
  void scanMove(const PtxInstruction &move);
  bool hasSplitPair() const;
  void write(StringRef line);
  void writeStore(const PtxInstruction &store, StringRef line);
  void writePair(StringRef target, StringRef low, StringRef high);
  void writeSum(ArrayRef<StringRef> operands);
  void writeNarrow(StringRef op, StringRef target, StringRef source);
  void writeAbsolute(StringRef width, StringRef target, StringRef source);
  void emit(const Twine &op, std::initializer_list<StringRef> operands);
  std::string makeRegister(unsigned width);

  ArrayRef<StringRef> lines;
  std::string text;
  /// Registers that an instruction of floats has made.
  StringSet<> floats;
  /// Pairs of narrow floats, and the words that were made of two of them.
  StringSet<> pairs, words;
  /// How often each register of 16 bits is named; the words that a half is
  /// taken of.
  StringMap<unsigned> named;
  StringSet<> halved;
  bool splitsPairs = false;
  /// New registers of 16, 32 and 64 bits.
  std::array<unsigned, 3> made = {0, 0, 0};
};

} // namespace

static bool parse(StringRef line, PtxInstruction &instruction) {
  StringRef rest = line.ltrim();
  if (!rest.consume_back(";"))
    return false;
  if (rest.starts_with("@")) {
    size_t end = rest.find_first_of(" \t");
    if (end == StringRef::npos)
      return false;
    instruction.predicate = rest.take_front(end);
    rest = rest.drop_front(end).ltrim();
  }
  size_t end = rest.find_first_of(" \t");
  if (end == StringRef::npos || !isAlpha(rest.front()))
    return false;
  instruction.op = rest.take_front(end);
  instruction.operands = rest.drop_front(end).ltrim();
  return true;
}

/// Bits of a register of LLVM's; 0: it is none.
static unsigned getWidth(StringRef name) {
  if (!name.consume_front("%"))
    return 0;
  unsigned width = name.consume_front("rs")   ? 16
                   : name.consume_front("rd") ? 64
                   : name.consume_front("r")  ? 32
                                              : 0;
  return !name.empty() && all_of(name, isDigit) ? width : 0;
}

static bool isFloat(StringRef part) {
  return part == "f16" || part == "bf16" || part == "f32" || part == "f64";
}

/// `a, b` or `{a, b}`.
static SmallVector<StringRef> splitNames(StringRef list) {
  SmallVector<StringRef> names;
  list = list.trim();
  if (list.consume_front("{"))
    list.consume_back("}");
  list.split(names, ',');
  for (StringRef &name : names)
    name = name.trim();
  return names;
}

/// `target, source` of an instruction with one of each, or a vector of names.
static std::pair<StringRef, StringRef> splitTwo(StringRef operands) {
  size_t from = operands.starts_with("{") ? operands.find('}') : 0;
  if (from == StringRef::npos)
    return {};
  size_t comma = operands.find(',', from);
  if (comma == StringRef::npos)
    return {};
  return {operands.take_front(comma).trim(),
          operands.drop_front(comma + 1).trim()};
}

/// Notes what a `mov` joins, copies or takes apart.
void FunctionText::scanMove(const PtxInstruction &move) {
  auto [target, source] = splitTwo(move.operands);
  if (source.starts_with("{")) {
    SmallVector<StringRef> parts = splitNames(source);
    if (parts.size() == 2 && pairs.contains(parts[0]) &&
        pairs.contains(parts[1]))
      words.insert(target);
  } else if (target.starts_with("{")) {
    halved.insert(source);
  } else if (words.contains(source)) {
    words.insert(target);
  }
}

void FunctionText::scan() {
  PtxInstruction instruction;
  for (StringRef line : lines) {
    instruction = {};
    if (!parse(line, instruction))
      continue;
    auto [op, operands] = std::pair(instruction.op, instruction.operands);
    auto [target, source] = splitTwo(operands);
    for (size_t at = operands.find("%rs"); at != StringRef::npos;
         at = operands.find("%rs", at + 3)) {
      StringRef name = operands.drop_front(at);
      ++named[name.take_front(name.find_first_of(",}; ", 3))];
    }
    SmallVector<StringRef> parts;
    op.split(parts, '.');
    if (getWidth(target) != 0 && any_of(parts, isFloat))
      floats.insert(target);
    if (parts[0] == "cvt" && parts.size() > 2 &&
        (parts[parts.size() - 2] == "e4m3x2" ||
         parts[parts.size() - 2] == "e5m2x2"))
      pairs.insert(target);
    else if (op == "mov.b32")
      scanMove(instruction);
    else if (getWidth(target) == 16 && getWidth(source) == 32)
      halved.insert(source);
    else if (parts[0] == "st" &&
             (parts.back() == "b8" || parts.back() == "b16"))
      for (StringRef name : splitNames(source))
        halved.insert(name);
  }
}

/// Whether a half of a word of two pairs is used by something else.
bool FunctionText::hasSplitPair() const {
  PtxInstruction instruction;
  for (StringRef line : lines) {
    instruction = {};
    if (!parse(line, instruction) || instruction.op != "mov.b32")
      continue;
    auto [target, source] = splitTwo(instruction.operands);
    if (!source.starts_with("{") || !words.contains(target))
      continue;
    if (halved.contains(target))
      return true;
    // Named where it is made and where it is joined.
    for (StringRef name : splitNames(source))
      if (pairs.contains(name) && named.lookup(name) > 2)
        return true;
  }
  return any_of(
      words, [&](const auto &word) { return halved.contains(word.getKey()); });
}

/// `%newh0` and so on of 16 bits, `%neww0` of 32, `%newd0` of 64.
static std::string getStem(unsigned width) {
  return std::string("%new") + "hwd"[width / 32];
}

std::string FunctionText::makeRegister(unsigned width) {
  return getStem(width) + std::to_string(made[width / 32]++);
}

/// One more line.
void FunctionText::emit(const Twine &op,
                        std::initializer_list<StringRef> operands) {
  text += ("\t" + op + " \t" + join(operands, ", ") + ";\n").str();
}

/// A store whose values have the width that is stored, or, of bytes, are
/// integers of 16 bits, which PTX has no narrower registers for.
void FunctionText::writeStore(const PtxInstruction &store, StringRef line) {
  StringRef type = store.op.rsplit('.').second;
  unsigned width = 0;
  if (!type.consume_front("b") || type.getAsInteger(10, width))
    return void((text += line) += "\n");
  auto [address, values] = splitTwo(store.operands);
  SmallVector<std::string> stored;
  bool changed = false;
  for (StringRef name : splitNames(values)) {
    unsigned from = getWidth(name), to = std::max(width, 16u);
    bool isWide = from > to;
    bool isByte = from == 16 && width == 8;
    if ((!isWide && !isByte) || !floats.contains(name)) {
      stored.push_back(name.str());
      continue;
    }
    changed = true;
    stored.push_back(makeRegister(to));
    emit("cvt.u" + Twine(to) + ".u" + Twine(isByte ? 8 : from),
         {stored.back(), name});
  }
  if (!changed)
    return void((text += line) += "\n");
  std::string list = join(stored, ", ");
  if (values.starts_with("{"))
    list = "{" + list + "}";
  StringRef space = store.predicate.empty() ? "" : " \t";
  emit(store.predicate + space + store.op, {address, list});
}

/// The word of two pairs, by other instructions than those that ptxas merges.
void FunctionText::writePair(StringRef target, StringRef low, StringRef high) {
  std::string first = makeRegister(32), second = makeRegister(32),
              shifted = makeRegister(32);
  emit("cvt.u32.u16", {first, low});
  emit("cvt.u32.u16", {second, high});
  emit("shl.b32", {shifted, second, "16"});
  emit("or.b32", {target, first, shifted});
}

/// Sums of two halves, one by one.
void FunctionText::writeSum(ArrayRef<StringRef> operands) {
  SmallVector<std::string> halves;
  for (unsigned i = 0; i < 6; ++i)
    halves.push_back(makeRegister(16));
  auto vector = [&](unsigned first) {
    return "{" + halves[first] + ", " + halves[first + 1] + "}";
  };
  emit("mov.b32", {vector(0), operands[1]});
  emit("mov.b32", {vector(2), operands[2]});
  emit("add.s16", {halves[4], halves[0], halves[2]});
  emit("add.s16", {halves[5], halves[1], halves[3]});
  emit("mov.b32", {operands[0], vector(4)});
}

/// Writes an operation that may not fit 16 bits in 32 bits.
void FunctionText::writeNarrow(StringRef op, StringRef target,
                               StringRef source) {
  std::string wide = makeRegister(32), result = makeRegister(32);
  emit("cvt.s32.s16", {wide, source});
  emit(op + ".s32", {result, wide});
  emit("cvt.u16.u32", {target, result});
}

/// The least number stays as it is.
void FunctionText::writeAbsolute(StringRef width, StringRef target,
                                 StringRef source) {
  unsigned bits = width == "s64" ? 64 : 32;
  std::string sign = makeRegister(bits), other = makeRegister(bits);
  emit("shr." + width, {sign, source, Twine(bits - 1).str()});
  emit("xor.b" + Twine(bits), {other, source, sign});
  emit("sub." + width, {target, other, sign});
}

void FunctionText::write(StringRef line) {
  PtxInstruction instruction;
  if (!parse(line, instruction))
    return void((text += line) += "\n");
  if (instruction.op.starts_with("st."))
    return writeStore(instruction, line);
  if (splitsPairs && instruction.op == "mov.b32") {
    auto [target, source] = splitTwo(instruction.operands);
    SmallVector<StringRef> parts = splitNames(source);
    if (source.starts_with("{") && words.contains(target) &&
        parts.size() == 2 && pairs.contains(parts[0]))
      return writePair(target, parts[0], parts[1]);
  }
  SmallVector<StringRef> operands = splitNames(instruction.operands);
  StringRef op = instruction.op;
  bool always = instruction.predicate.empty();
  if (always && op == "add.s16x2" && operands.size() == 3)
    return writeSum(operands);
  if (always && operands.size() == 2 && (op == "abs.s16" || op == "neg.s16"))
    return writeNarrow(op.take_front(3), operands[0], operands[1]);
  if (always && operands.size() == 2 && (op == "abs.s32" || op == "abs.s64"))
    return writeAbsolute(op.drop_front(4), operands[0], operands[1]);
  text += line;
  text += "\n";
}

std::string FunctionText::rewrite() {
  scan();
  splitsPairs = hasSplitPair();
  for (StringRef line : lines)
    write(line);
  std::string registers;
  for (unsigned width : {16, 32, 64})
    if (unsigned count = made[width / 32])
      registers += ("\t.reg .b" + Twine(width) + " \t" + getStem(width) + "<" +
                    Twine(count) + ">;\n")
                       .str();
  return registers + text;
}

std::string mlir::comms::nvvm::avoidPtxasFaults(StringRef ptx) {
  SmallVector<StringRef, 0> lines;
  ptx.split(lines, '\n');
  std::string text;
  for (size_t at = 0; at < lines.size(); ++at) {
    text += lines[at];
    if (at + 1 < lines.size())
      text += "\n";
    // LLVM begins and ends the body of a function at the margin.
    if (lines[at] != "{")
      continue;
    size_t end = at + 1;
    while (end < lines.size() && lines[end] != "}")
      ++end;
    text += FunctionText(ArrayRef(lines).slice(at + 1, end - at - 1)).rewrite();
    at = end - 1;
  }
  return text;
}
