//===- accuracy.cpp - The error of functions, in ulp ----------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// function-accuracy [--all] [FUNCTION...]
//
// Compiles every function of the math dialect for the CPU world, compares it
// with libm in f64, and prints the worst error of each in units in the last
// place of f32. Without --all, functions of one argument get a sample of 2^20
// numbers and the neighborhoods of special values; with it, all 2^32 numbers.
// Functions of two arguments get pairs of special values and random ones. Ends
// with status 1 if an error exceeds the bound of docs/Spec.md ("Functions"), or
// a zero, an infinity or a NaN is wrong.
//
//===----------------------------------------------------------------------===//

#include "lowering/Register.h"
#include "runtime/cpu/World.h"
#include "runtime/jit/Compile.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <bit>
#include <cmath>
#include <limits>
#include <random>

using namespace commsir;

namespace {

constexpr int64_t chunk = 1 << 16;
using Floats = std::vector<float>;
using Doubles = std::vector<double>;

/// What f(-x) is: f(x), -f(x), or to be computed.
enum class Symmetry { None, Even, Odd };

/// A function, what it should be, and how many units it may be wrong by.
struct Function {
  llvm::StringRef name;
  unsigned arity;
  double allowed;
  /// Of all elements of the arguments.
  void (*compute)(llvm::ArrayRef<Floats> arguments, Doubles &results);
  Symmetry symmetry = Symmetry::None;
};

template <auto function>
void of1(llvm::ArrayRef<Floats> arguments, Doubles &results) {
  const float *x = arguments[0].data();
  double *y = results.data();
  for (int64_t i = 0; i < chunk; ++i)
    y[i] = function(double(x[i]));
}

template <auto function>
void of2(llvm::ArrayRef<Floats> arguments, Doubles &results) {
  for (int64_t i = 0; i < chunk; ++i)
    results[i] = function(double(arguments[0][i]), double(arguments[1][i]));
}

/// Rounded once, as f32 has it.
void fusedMultiplyAdd(llvm::ArrayRef<Floats> a, Doubles &results) {
  for (int64_t i = 0; i < chunk; ++i)
    results[i] = std::fma(a[0][i], a[1][i], a[2][i]);
}

#define OF1(expression) of1<[](double x) { return expression; }>
#define OF2(expression) of2<[](double x, double y) { return expression; }>

const Function functions[] = {
    {"absf", 1, 0, OF1(std::fabs(x)), Symmetry::Even},
    {"acos", 1, 4, OF1(std::acos(x))},
    {"acosh", 1, 4, OF1(std::acosh(x))},
    {"asin", 1, 4, OF1(std::asin(x)), Symmetry::Odd},
    {"asinh", 1, 4, OF1(std::asinh(x)), Symmetry::Odd},
    {"atan", 1, 4, OF1(std::atan(x)), Symmetry::Odd},
    {"atan2", 2, 4, OF2(std::atan2(x, y))},
    {"atanh", 1, 4, OF1(std::atanh(x)), Symmetry::Odd},
    {"cbrt", 1, 4, OF1(std::cbrt(x)), Symmetry::Odd},
    {"ceil", 1, 0, OF1(std::ceil(x))},
    {"copysign", 2, 0, OF2(std::copysign(x, y))},
    {"cos", 1, 4, OF1(std::cos(x)), Symmetry::Even},
    {"cosh", 1, 4, OF1(std::cosh(x)), Symmetry::Even},
    {"erf", 1, 4, OF1(std::erf(x)), Symmetry::Odd},
    {"erfc", 1, 4, OF1(std::erfc(x))},
    {"exp", 1, 4, OF1(std::exp(x))},
    {"exp2", 1, 4, OF1(std::exp2(x))},
    {"expm1", 1, 4, OF1(std::expm1(x))},
    {"floor", 1, 0, OF1(std::floor(x))},
    {"fma", 3, 0, fusedMultiplyAdd},
    {"log", 1, 4, OF1(std::log(x))},
    {"log1p", 1, 4, OF1(std::log1p(x))},
    {"log2", 1, 4, OF1(std::log2(x))},
    {"powf", 2, 4, OF2(std::pow(x, y))},
    {"round", 1, 0, OF1(std::round(x)), Symmetry::Odd},
    {"roundeven", 1, 0, OF1(std::nearbyint(x)), Symmetry::Odd},
    {"rsqrt", 1, 4, OF1(1 / std::sqrt(x))},
    {"sin", 1, 4, OF1(std::sin(x)), Symmetry::Odd},
    {"sinh", 1, 4, OF1(std::sinh(x)), Symmetry::Odd},
    {"sqrt", 1, 0.5, OF1(std::sqrt(x))},
    {"tan", 1, 4, OF1(std::tan(x)), Symmetry::Odd},
    {"tanh", 1, 4, OF1(std::tanh(x)), Symmetry::Odd},
    {"trunc", 1, 0, OF1(std::trunc(x)), Symmetry::Odd},
};

//===----------------------------------------------------------------------===//
// The compiled function
//===----------------------------------------------------------------------===//

std::string getText(const Function &function) {
  static constexpr llvm::StringRef names[] = {"a", "b", "c"};
  std::string arguments, loads, operands;
  llvm::raw_string_ostream argument(arguments), load(loads), operand(operands);
  for (llvm::StringRef name :
       llvm::ArrayRef(names).take_front(function.arity)) {
    argument << "%" << name << ": memref<65536xf32>, ";
    load << "    %t" << name << " = comms.tile_load %" << name
         << "[%i] : memref<65536xf32> -> tensor<1024xf32>\n";
    operand << (name == "a" ? "" : ", ") << "%t" << name;
  }
  return ("comms.kernel @f(" + arguments +
          "%y: memref<65536xf32>) {\n"
          "  %c0 = arith.constant 0 : index\n"
          "  %step = arith.constant 1024 : index\n"
          "  %end = arith.constant 65536 : index\n"
          "  scf.for %i = %c0 to %end step %step {\n" +
          loads + "    %r = math." + function.name + " " + operands +
          " : tensor<1024xf32>\n"
          "    comms.tile_store %r, %y[%i]"
          " : tensor<1024xf32>, memref<65536xf32>\n"
          "  }\n"
          "  comms.return\n"
          "}\n")
      .str();
}

/// Ends the program: what the compiler or the world says is no accuracy.
[[noreturn]] void fail(const llvm::Twine &message) {
  llvm::errs() << "function-accuracy: " << message << "\n";
  std::exit(2);
}

template <typename T>
T require(llvm::Expected<T> value) {
  if (!value)
    fail(toString(value.takeError()));
  return std::move(*value);
}

/// The function as kernels have it.
class Compiled {
public:
  explicit Compiled(const Function &function)
      : kernel(compile(function)),
        world(require(cpu::World::create(*kernel, {}))), arity(function.arity) {
  }

  llvm::ArrayRef<float> run(llvm::ArrayRef<Floats> arguments) {
    for (unsigned i = 0; i < arity; ++i)
      llvm::copy(arguments[i], get(i).begin());
    auto result = world->run();
    if (auto *error = std::get_if<cpu::RunError>(&result))
      fail(error->render());
    return get(arity);
  }

private:
  static std::unique_ptr<jit::Kernel> compile(const Function &function) {
    mlir::DialectRegistry registry;
    mlir::comms::registerAllDialects(registry);
    mlir::MLIRContext context(registry);
    jit::CompileOptions options;
    options.check = false;
    options.ranks = 1;
    auto module = mlir::parseSourceString<mlir::ModuleOp>(getText(function),
                                                          &context, "f.mlir");
    return require(jit::compile(std::move(module), "", options));
  }
  llvm::MutableArrayRef<float> get(unsigned argument) {
    auto bytes = world->memory(argument, 0);
    return {reinterpret_cast<float *>(bytes.data()),
            bytes.size() / sizeof(float)};
  }

  std::unique_ptr<jit::Kernel> kernel;
  std::unique_ptr<cpu::World> world;
  unsigned arity;
};

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

constexpr double wrong = std::numeric_limits<double>::infinity();

/// In units in the last place that f32 has at `right`. Beyond the greatest f32,
/// infinity counts as the next number, and all that is greater as that.
double getError(float result, double right) {
  constexpr double beyond = 0x1p128;
  if (std::isnan(right) || std::isnan(result))
    return std::isnan(right) && std::isnan(result) ? 0 : wrong;
  if (std::signbit(result) != std::signbit(right))
    return wrong;
  if (std::isinf(right) || right == 0)
    return result == right ? 0 : wrong;
  double size = std::min(std::fabs(right), beyond);
  double got = std::isinf(result) ? beyond : std::fabs(double(result));
  int exponent = std::clamp(std::ilogb(size), -126, 127);
  return std::fabs(got - size) * std::ldexp(1., 23 - exponent);
}

/// The worst error so far, and where it is.
struct Worst {
  double error = -1;
  std::vector<float> arguments;
  float result = 0;
  double right = 0;
};

void look(llvm::ArrayRef<Floats> arguments, llvm::ArrayRef<float> results,
          const Doubles &right, Worst &worst) {
  for (int64_t i = 0; i < chunk; ++i) {
    double error = getError(results[i], right[i]);
    if (error <= worst.error)
      continue;
    worst = {error, {}, results[i], right[i]};
    for (const Floats &argument : arguments)
      worst.arguments.push_back(argument[i]);
  }
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

float fromBits(uint32_t bits) { return std::bit_cast<float>(bits); }
uint32_t toBits(float number) { return std::bit_cast<uint32_t>(number); }

/// Where functions change, in themselves or in how they are computed.
Floats getSpecialValues() {
  Floats all;
  for (uint32_t exponent = 0; exponent < 256; ++exponent)
    all.push_back(fromBits(exponent << 23));
  for (float value :
       {0.3F,     1.F / 3,   0.4F,      0.6F,     2.F / 3, 0.7F,  0.75F,
        4.F / 3,  1.5F,      2.5F,      3.F,      3.9F,    9.F,   9.2F,
        10.F,     10.1F,     10.5F,     17.F,     20.F,    85.F,  87.3365F,
        88.F,     88.7228F,  89.F,      89.4159F, 91.F,    97.4F, 103.2789F,
        103.972F, 104.F,     105.F,     126.F,    127.F,   149.F, 150.F,
        151.F,    8388607.F, 16777215.F})
    all.push_back(value);
  for (int i = 1; i < 2000; ++i)
    all.push_back(float(i * 0x1.921fb54442d18p-1));
  return all;
}

/// Calls `look` with chunks of all that was added, filled up with zeros.
class Batches {
public:
  Batches(unsigned arity, llvm::function_ref<void(llvm::ArrayRef<Floats>)> look)
      : arguments(arity, Floats(chunk)), look(look) {}
  ~Batches() {
    if (count)
      flush();
  }

  void add(llvm::ArrayRef<float> numbers) {
    for (auto [argument, number] : llvm::zip_equal(arguments, numbers))
      argument[count] = number;
    if (++count == chunk)
      flush();
  }

private:
  void flush() {
    look(arguments);
    count = 0;
    for (Floats &argument : arguments)
      llvm::fill(argument, 0);
  }

  std::vector<Floats> arguments;
  llvm::function_ref<void(llvm::ArrayRef<Floats>)> look;
  int64_t count = 0;
};

/// With `signs`, negative numbers, too.
void addSingles(Batches &batches, bool signs, bool all) {
  constexpr uint64_t stride = 4099, sign = 1ULL << 31; // A prime.
  uint64_t end = signs ? 2 * sign : sign;
  for (uint64_t bits = 0; bits < end; bits += all ? 1 : stride)
    batches.add(fromBits(uint32_t(bits)));
  if (all)
    return;
  for (float special : getSpecialValues())
    for (int32_t near = -50; near <= 50; ++near) {
      uint32_t bits = toBits(special) + near;
      batches.add(fromBits(bits));
      if (signs)
        batches.add(fromBits(bits ^ uint32_t(sign)));
    }
}

/// Pairs and triples.
void addTuples(Batches &batches, unsigned arity, bool all) {
  Floats special = {0,
                    0x1p-149F,
                    0x1p-126F,
                    0x1p-40F,
                    0.3F,
                    0.5F,
                    0.9999999F,
                    1,
                    1.0000001F,
                    1.5F,
                    2,
                    3,
                    4,
                    5,
                    16777215,
                    33554432,
                    1e30F,
                    std::numeric_limits<float>::max(),
                    std::numeric_limits<float>::infinity(),
                    std::numeric_limits<float>::quiet_NaN()};
  for (size_t i = 0, e = special.size(); i < e; ++i)
    special.push_back(-special[i]);
  std::mt19937_64 random(1);
  auto pick = [&] { return special[random() % special.size()]; };
  for (float a : special)
    for (float b : special)
      batches.add(llvm::ArrayRef<float>({a, b, pick()}).take_front(arity));
  std::uniform_real_distribution<float> power(-150, 128);
  for (int64_t i = 0; i < (all ? int64_t(1) << 28 : int64_t(1) << 20); ++i) {
    float a = fromBits(uint32_t(random())), b = fromBits(uint32_t(random()));
    // Of most random pairs a power is 0 or infinite; here it is about 2^power.
    if (i % 2)
      b = power(random) / std::log2(std::fabs(a));
    // And sums of most random products are one of the two.
    float c = i % 4 < 2 ? fromBits(uint32_t(random())) : -a * b;
    if (i % 8 == 0)
      b = a * fromBits(0x3F800000 + uint32_t(random() % 0x1000000) - 0x800000);
    batches.add(llvm::ArrayRef<float>({a, b, c}).take_front(arity));
  }
}

/// Whether `function` is right where it was looked at.
bool check(const Function &function, bool all) {
  Compiled compiled(function);
  Worst worst;
  Doubles right(chunk);
  bool isSymmetric = function.symmetry != Symmetry::None;
  auto lookAt = [&](llvm::ArrayRef<Floats> arguments) {
    function.compute(arguments, right);
    look(arguments, compiled.run(arguments), right, worst);
    if (!isSymmetric)
      return;
    Floats negative = arguments[0];
    for (float &number : negative)
      number = -number;
    if (function.symmetry == Symmetry::Odd)
      for (double &number : right)
        number = -number;
    look(negative, compiled.run(negative), right, worst);
  };
  {
    Batches batches(function.arity, lookAt);
    if (function.arity == 1)
      addSingles(batches, !isSymmetric, all);
    else
      addTuples(batches, function.arity, all);
  }
  bool isRight = worst.error <= function.allowed;
  std::string at;
  llvm::raw_string_ostream stream(at);
  llvm::interleaveComma(worst.arguments, stream, [&](float number) {
    stream << llvm::format("%a", number);
  });
  llvm::outs() << llvm::format("%-10s %6.3f ulp at ", function.name.data(),
                               worst.error)
               << at
               << llvm::format(": %.9g for %.12g", worst.result, worst.right)
               << (isRight ? "" : "  WRONG") << "\n";
  llvm::outs().flush();
  return isRight;
}

} // namespace

int main(int count, char **words) {
  bool all = false, isRight = true;
  std::vector<llvm::StringRef> chosen;
  for (llvm::StringRef word : llvm::ArrayRef(words + 1, count - 1))
    if (word == "--all")
      all = true;
    else
      chosen.push_back(word);
  for (llvm::StringRef name : chosen)
    if (llvm::none_of(functions,
                      [&](const Function &f) { return f.name == name; }))
      fail("there is no function '" + name + "'");
  for (const Function &function : functions)
    if (chosen.empty() || llvm::is_contained(chosen, function.name))
      isRight &= check(function, all);
  return isRight ? 0 : 1;
}
