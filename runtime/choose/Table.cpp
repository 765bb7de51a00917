//===- Table.cpp - Measured times of one machine --------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/choose/Table.h"

#include "lowering/channels/Protocol.h"
#include "lowering/collectives/Algorithm.h"
#include "runtime/choose/ChannelMemory.h"
#include "runtime/choose/Model.h"
#include "runtime/choose/Operation.h"
#include "runtime/support/Element.h"
#include "runtime/support/ForeignText.h"
#include "runtime/support/InputFile.h"
#include "runtime/support/Json.h"
#include "runtime/support/Size.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <cmath>
#include <list>
#include <mutex>
#include <optional>
#include <set>

using namespace commsir;
using namespace commsir::tune;
namespace json = llvm::json;

static llvm::Error bad(const llvm::Twine &text) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), text);
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

static constexpr llvm::StringLiteral kFormat = "commsir-table-1";

namespace {
/// Reads one file; the first fault stays.
class Reader {
public:
  explicit Reader(llvm::StringRef name) : name(name) {}

  llvm::Expected<Table> read(llvm::StringRef text) {
    llvm::Expected<json::Value> root = readJson(text);
    if (!root)
      return bad("'" + name +
                 "' is not JSON: " + llvm::toString(root.takeError()));
    const json::Object *object = root->getAsObject();
    if (!object || object->getString("format") != kFormat)
      return bad("'" + name +
                 "' is not a table of comms-bench --tune: its "
                 "\"format\" is not \"" +
                 kFormat + "\"");
    readHead(*object);
    for (const json::Value &one : readArray(*object, "recipes"))
      readRecipe(one);
    for (const json::Value &one : readArray(*object, "sections"))
      readSection(one);
    if (!fault.empty())
      return bad("'" + name + "' is not a valid table: " + fault);
    return std::move(table);
  }

private:
  void fail(const llvm::Twine &text) {
    if (fault.empty())
      fault = text.str();
  }

  std::string readText(const json::Object &object, llvm::StringRef key) {
    std::optional<llvm::StringRef> text = object.getString(key);
    if (!text)
      fail("a text \"" + key + "\" is missing");
    return text.value_or("").str();
  }

  llvm::ArrayRef<json::Value> readArray(const json::Object &object,
                                        llvm::StringRef key) {
    const json::Array *array = object.getArray(key);
    if (!array) {
      fail("an array \"" + key + "\" is missing");
      return {};
    }
    return {array->data(), array->size()};
  }

  void readHead(const json::Object &object) {
    table.name = llvm::sys::path::stem(name).str();
    table.device = readText(object, "device");
    table.chip = readText(object, "chip");
    table.date = readText(object, "date");
    table.note = object.getString("note").value_or("").str();
    table.ranks = object.getInteger("ranks").value_or(0);
    if (table.ranks < 1)
      fail("\"ranks\" is missing or less than 1");
  }

  void readRecipe(const json::Value &value) {
    const json::Array *row = value.getAsArray();
    Recipe recipe;
    if (!row || row->size() != 6 || !(*row)[0].getAsString() ||
        !(*row)[1].getAsString())
      return fail("a recipe is not [algorithm, protocol, threads, cluster, "
                  "spread, limit]");
    recipe.algorithm = (*row)[0].getAsString()->str();
    recipe.protocol = (*row)[1].getAsString()->str();
    int64_t *numbers[] = {&recipe.threads, &recipe.cluster, &recipe.spread,
                          &recipe.limit};
    for (auto [i, number] : llvm::enumerate(numbers)) {
      std::optional<int64_t> given = (*row)[2 + i].getAsInteger();
      if (!given || *given < (i ? 1 : 0) || *given > (1 << 20))
        return fail("a recipe has a number that is invalid or out of range");
      *number = *given;
    }
    checkRecipe(recipe);
    recipes.push_back(std::move(recipe));
  }

  /// A name that is misspelt would never be chosen, or end in an error far
  /// from here.
  void checkRecipe(const Recipe &recipe) {
    auto isNamed = [](llvm::StringRef name) {
      return [name](const auto *known) { return known->name == name; };
    };
    if (llvm::none_of(mlir::comms::getAlgorithms(), isNamed(recipe.algorithm)))
      return fail("there is no algorithm '" + showName(recipe.algorithm) + "'");
    if (llvm::none_of(mlir::comms::getProtocols(), isNamed(recipe.protocol)))
      return fail("there is no protocol '" + showName(recipe.protocol) + "'");
    if (recipe.threads % 32 || recipe.threads > 1024)
      return fail("a recipe has " + llvm::Twine(recipe.threads) +
                  " threads: blocks have whole warps of 32, up to 1024");
    if (recipe.cluster > 16 || !llvm::isPowerOf2_64(recipe.cluster))
      fail("a recipe has clusters of " + llvm::Twine(recipe.cluster) +
           " blocks: they have 1, 2, 4, 8 or 16");
  }

  void readSection(const json::Value &value) {
    const json::Object *object = value.getAsObject();
    if (!object)
      return fail("a section is not an object");
    Section section;
    section.op = readText(*object, "op");
    section.type = readText(*object, "type");
    section.columns = readColumns(*object);
    if (!fault.empty())
      return;
    if (llvm::Error error = parseOperation(section.op).takeError())
      return fail(llvm::toString(std::move(error)));
    if (!driver::parseElement(section.type))
      return fail("there is no type '" + showName(section.type) + "'");
    for (const json::Value &point : readArray(*object, "points"))
      readPoint(point, section);
    table.sections.push_back(std::move(section));
  }

  int64_t readColumns(const json::Object &object) {
    const json::Value *value = object.get("columns");
    if (!value)
      return 0;
    std::optional<int64_t> columns = value->getAsInteger();
    if (!columns || *columns < 0)
      fail("\"columns\" is not a number from 0");
    return columns.value_or(0);
  }

  void readPoint(const json::Value &value, Section &section) {
    const json::Array *row = value.getAsArray();
    if (!row || row->size() % 2 == 0 || !row->front().getAsInteger() ||
        *row->front().getAsInteger() < 1)
      return fail("a point is not [size, recipe, microseconds, ...]");
    int64_t size = *row->front().getAsInteger();
    auto [place, isNew] = section.points.try_emplace(size);
    if (!isNew)
      return fail("two points of " + section.op + " have the size " +
                  llvm::Twine(size));
    auto &times = place->second;
    for (size_t i = 1; i < row->size(); i += 2) {
      std::optional<int64_t> number = (*row)[i].getAsInteger();
      std::optional<double> time = (*row)[i + 1].getAsNumber();
      if (!number || *number < 0 || size_t(*number) >= recipes.size() ||
          !time || !(*time > 0) || !std::isfinite(*time))
        return fail("a point names a recipe that is not there, or has a time "
                    "that is not positive");
      times[recipes[*number]] = *time;
    }
  }

  llvm::StringRef name;
  std::string fault;
  std::vector<Recipe> recipes;
  Table table;
};
} // namespace

llvm::Expected<Table> commsir::tune::parseTable(llvm::StringRef text,
                                                llvm::StringRef name) {
  return Reader(name).read(text);
}

void commsir::tune::printTable(const Table &table, llvm::raw_ostream &os) {
  auto quote = [](llvm::StringRef text) {
    std::string out;
    llvm::raw_string_ostream(out) << json::Value(text);
    return out;
  };
  std::map<Recipe, int64_t> numbers;
  for (const Section &section : table.sections)
    for (const auto &[size, times] : section.points)
      for (const auto &[recipe, time] : times)
        numbers.emplace(recipe, 0);
  os << "{\"format\": \"" << kFormat
     << "\",\n \"device\": " << quote(table.device)
     << ", \"chip\": " << quote(table.chip) << ", \"ranks\": " << table.ranks
     << ",\n \"date\": " << quote(table.date)
     << ", \"note\": " << quote(table.note) << ",\n \"recipes\": [";
  int64_t count = 0;
  for (auto &[recipe, number] : numbers) {
    os << (count ? ",\n  " : "\n  ") << "[" << quote(recipe.algorithm) << ", "
       << quote(recipe.protocol) << ", " << recipe.threads << ", "
       << recipe.cluster << ", " << recipe.spread << ", " << recipe.limit
       << "]";
    number = count++;
  }
  os << "],\n \"sections\": [";
  for (auto [i, section] : llvm::enumerate(table.sections)) {
    os << (i ? ",\n  " : "\n  ") << "{\"op\": " << quote(section.op)
       << ", \"type\": " << quote(section.type)
       << ", \"columns\": " << section.columns << ", \"points\": [";
    bool first = true;
    for (const auto &[size, times] : section.points) {
      os << (first ? "\n    [" : ",\n    [") << size;
      for (const auto &[recipe, time] : times)
        os << ", " << numbers[recipe] << ", " << llvm::format("%.4g", time);
      os << "]";
      first = false;
    }
    os << "]}";
  }
  os << "]}\n";
}

void commsir::tune::prune(Table &table, double factor) {
  for (Section &section : table.sections) {
    // A recipe that is kept at one size is kept at its neighbors as well, so
    // that there is something to interpolate.
    std::map<int64_t, std::set<Recipe>> kept;
    for (const auto &[size, times] : section.points) {
      double best = INFINITY;
      std::map<std::pair<std::string, std::string>, std::pair<double, Recipe>>
          pairs;
      for (const auto &[recipe, time] : times) {
        best = std::min(best, time);
        auto [place, made] = pairs.try_emplace(
            {recipe.algorithm, recipe.protocol}, time, recipe);
        if (!made && time < place->second.first)
          place->second = {time, recipe};
      }
      for (const auto &[recipe, time] : times)
        if (time <= best * factor)
          kept[size].insert(recipe);
      for (const auto &[pair, fastest] : pairs)
        kept[size].insert(fastest.second);
    }
    for (auto point = section.points.begin(); point != section.points.end();
         ++point) {
      std::set<Recipe> wanted = kept[point->first];
      if (point != section.points.begin()) {
        const auto &before = kept[std::prev(point)->first];
        wanted.insert(before.begin(), before.end());
      }
      if (std::next(point) != section.points.end()) {
        const auto &after = kept[std::next(point)->first];
        wanted.insert(after.begin(), after.end());
      }
      std::erase_if(point->second, [&](const auto &item) {
        return !wanted.count(item.first);
      });
    }
  }
}

//===----------------------------------------------------------------------===//
// Between measured sizes
//===----------------------------------------------------------------------===//

/// Log-log between (x0, y0) and (x1, y1).
static double between(double x, double x0, double y0, double x1, double y1) {
  if (x0 == x1)
    return y0;
  double share = std::log(x / x0) / std::log(x1 / x0);
  return y0 * std::pow(y1 / y0, share);
}

static double leastTime(const std::map<Recipe, double> &times) {
  double least = times.begin()->second;
  for (const auto &[recipe, time] : times)
    least = std::min(least, time);
  return least;
}

/// Times beyond the last size. All grow as the best did last, at most with the
/// bytes: what was slow before the last size did not grow less for being good.
static std::map<Recipe, double> timesBeyond(const Section &section,
                                            int64_t size) {
  const auto &[lastSize, last] = *section.points.rbegin();
  double slope = 1;
  if (section.points.size() > 1) {
    const auto &[lowSize, low] = *std::next(section.points.rbegin());
    slope = std::log(leastTime(last) / leastTime(low)) /
            std::log(double(lastSize) / double(lowSize));
  }
  double growth =
      std::pow(double(size) / double(lastSize), std::clamp(slope, 0.0, 1.0));
  std::map<Recipe, double> times = last;
  for (auto &[recipe, time] : times)
    time *= growth;
  return times;
}

/// Times of recipes at `size`. Recipes that were measured at one side alone are
/// left out between two sizes: nothing is known of them at the other.
static std::map<Recipe, double> timesAt(const Section &section, int64_t size) {
  const auto &points = section.points;
  auto above = points.lower_bound(size);
  if (above == points.end())
    return timesBeyond(section, size);
  if (above == points.begin() || above->first == size)
    return above->second; // Latency does not shrink.
  auto below = std::prev(above);
  std::map<Recipe, double> times;
  for (const auto &[recipe, high] : above->second)
    if (auto low = below->second.find(recipe); low != below->second.end())
      times[recipe] = between(double(size), double(below->first), low->second,
                              double(above->first), high);
  // Two sizes that share nothing: what is nearer.
  return times.empty() ? above->second : times;
}

/// Rates how well measurements of one type predict another: 2 for the same
/// type, 1 if the same configurations support both, otherwise 0.
static int getFit(const std::string &type, const ConfigQuery &query) {
  if (type == query.elementType)
    return 2;
  ConfigQuery other = query;
  other.elementType = type;
  return listPairs(other, /*everything=*/true) ==
         listPairs(query, /*everything=*/true);
}

/// The sections of `op` of the type that fits best.
static std::vector<const Section *> findSections(const Table &table,
                                                 const ConfigQuery &query) {
  std::map<std::string, std::vector<const Section *>> byType;
  for (const Section &section : table.sections)
    if (section.op == query.op && !section.points.empty() &&
        (section.columns > 0) == (query.rows > 0))
      byType[section.type].push_back(&section);
  std::vector<const Section *> found;
  int best = -1;
  for (auto &[type, sections] : byType)
    if (int fit = byType.size() == 1 ? 0 : getFit(type, query); fit > best) {
      best = fit;
      found = std::move(sections);
    }
  return found;
}

static std::string describeSpan(const Section &section, int64_t size) {
  auto render = [&](int64_t number) {
    return section.columns ? std::to_string(number) + " rows"
                           : renderSize(number);
  };
  auto above = section.points.lower_bound(size);
  if (above != section.points.end() && above->first == size)
    return "at " + render(size);
  if (above == section.points.end())
    return "beyond " + render(section.points.rbegin()->first);
  if (above == section.points.begin())
    return "below " + render(above->first);
  return "between " + render(std::prev(above)->first) + " and " +
         render(above->first);
}

/// Of rows: those of the next longer length. Threads are powers of two, so that
/// a row costs the rounds of one that fills them.
static const Section &pickRows(const std::vector<const Section *> &sections,
                               int64_t columns) {
  const Section *longest = nullptr, *next = nullptr;
  for (const Section *section : sections) {
    if (!longest || section->columns > longest->columns)
      longest = section;
    if (section->columns >= columns &&
        (!next || section->columns < next->columns))
      next = section;
  }
  return next ? *next : *longest;
}

std::vector<Config> commsir::tune::rankConfigs(const Table &table,
                                               const ConfigQuery &query,
                                               std::string &where) {
  std::vector<const Section *> sections = findSections(table, query);
  if (sections.empty())
    return {};
  bool rows = query.rows > 0;
  const Section &section =
      rows ? pickRows(sections, query.columns) : *sections.front();
  int64_t size = rows ? query.rows : query.bytes;
  where = describeSpan(section, size);
  if (rows)
    where += " of " + std::to_string(section.columns);
  std::map<Recipe, double> times = timesAt(section, size);
  // What rests on the device is not told from another's table.
  bool same = query.device.empty() || table.device.empty() ||
              table.device == query.device;
  auto pairs = listPairs(query, /*everything=*/same);
  auto agrees = [](int64_t settled, int64_t measured) {
    return !settled || settled == measured;
  };
  std::vector<Config> configs;
  for (const auto &[recipe, time] : times) {
    if (!llvm::is_contained(pairs,
                            std::pair(recipe.algorithm, recipe.protocol)) ||
        !agrees(query.threads, recipe.threads) ||
        !agrees(query.cluster, recipe.cluster))
      continue;
    Config config = applyRecipe(recipe, query);
    config.microseconds = time;
    configs.push_back(std::move(config));
  }
  llvm::sort(configs, isFaster);
  // Recipes that are the same at this size are one way.
  std::vector<Config> distinct;
  for (Config &config : configs)
    if (llvm::none_of(distinct, [&](const Config &other) {
          return isSame(config, other);
        }))
      distinct.push_back(std::move(config));
  return distinct;
}

//===----------------------------------------------------------------------===//
// All tables
//===----------------------------------------------------------------------===//

namespace commsir::embedded {
#define COMMSIR_TABLE(symbol, name)                                            \
  extern const unsigned char symbol[];                                         \
  extern const size_t symbol##Size;
#include "runtime/choose/EmbeddedTables.inc"
#undef COMMSIR_TABLE
} // namespace commsir::embedded

static llvm::Error readFile(llvm::StringRef path, std::vector<Table> &all) {
  auto buffer = driver::readFile(path);
  if (!buffer)
    return bad("cannot read the table '" + path +
               "': " + llvm::toString(buffer.takeError()));
  llvm::Expected<Table> table = parseTable((*buffer)->getBuffer(), path);
  if (!table)
    return table.takeError();
  all.push_back(std::move(*table));
  return llvm::Error::success();
}

/// All files of a folder whose names end in .json, by name.
static llvm::Error readPath(llvm::StringRef path, std::vector<Table> &all) {
  if (!llvm::sys::fs::is_directory(path))
    return readFile(path, all);
  std::error_code error;
  std::set<std::string> files;
  for (llvm::sys::fs::directory_iterator it(path, error), end;
       it != end && !error; it.increment(error))
    if (llvm::sys::path::extension(it->path()) == ".json")
      files.insert(it->path());
  if (error)
    return bad("cannot list the folder '" + path + "': " + error.message());
  if (files.empty())
    return bad("the folder '" + path + "' has no table (*.json)");
  for (const std::string &file : files)
    if (llvm::Error fault = readFile(file, all))
      return fault;
  return llvm::Error::success();
}

/// Reads the head of a table: its text up to the measurements, and nothing
/// else.
static Table readHead(llvm::StringRef text, llvm::StringRef name) {
  size_t end = text.find("\"recipes\"");
  std::string head = text.take_front(end).rtrim().rtrim(',').str();
  if (end != llvm::StringRef::npos)
    head += ", \"recipes\": [], \"sections\": []}";
  return llvm::cantFail(parseTable(head, name));
}

namespace {
/// A table that is part of the library. Reading one takes a millisecond or two,
/// and most processes ask for one alone.
class BuiltInTable {
public:
  BuiltInTable(llvm::StringRef text, llvm::StringRef name)
      : text(text), name(name), head(readHead(text, name)) {}
  const Table &getHead() const { return head; }
  const Table &get() const {
    std::call_once(once,
                   [&] { whole = llvm::cantFail(parseTable(text, name)); });
    return whole;
  }

private:
  llvm::StringRef text, name;
  Table head;
  mutable std::once_flag once;
  mutable Table whole;
};
} // namespace

static const std::list<BuiltInTable> &listBuiltIn() {
  static const std::list<BuiltInTable> tables = [] {
    std::list<BuiltInTable> all;
    auto add = [&](const unsigned char *bytes, size_t size,
                   llvm::StringRef name) {
      all.emplace_back(
          llvm::StringRef(reinterpret_cast<const char *>(bytes), size), name);
    };
    (void)add; // There may be none.
#define COMMSIR_TABLE(symbol, name)                                            \
  add(commsir::embedded::symbol, commsir::embedded::symbol##Size, name);
#include "runtime/choose/EmbeddedTables.inc"
#undef COMMSIR_TABLE
    return all;
  }();
  return tables;
}

std::vector<const Table *> commsir::tune::readBuiltIn() {
  std::vector<const Table *> tables;
  for (const BuiltInTable &table : listBuiltIn())
    tables.push_back(&table.get());
  return tables;
}

Tables Tables::load(llvm::StringRef path) {
  Tables tables;
  tables.builtIn = true;
  if (!path.empty())
    if (llvm::Error error = readPath(path, tables.own))
      tables.problem = llvm::toString(std::move(error));
  return tables;
}

std::vector<const Table *> Tables::find(const ConfigQuery &query) const {
  std::vector<const Table *> found;
  for (bool sameDevice : {true, false}) {
    auto fits = [&](const Table &table) {
      bool same = query.device.empty() || table.device.empty() ||
                  table.device == query.device;
      return table.chip == query.chip && table.ranks == query.ranks &&
             same == sameDevice;
    };
    for (const Table &table : own)
      if (fits(table))
        found.push_back(&table);
    if (!builtIn)
      continue;
    for (const BuiltInTable &table : listBuiltIn())
      if (fits(table.getHead()))
        found.push_back(&table.get());
  }
  return found;
}

/// Bytes of channel memory of a way that takes more than the question allows.
static std::optional<uint64_t> findExcess(const ConfigQuery &query,
                                          const Config &config) {
  if (!query.memory || boundChannels(query) <= query.memory)
    return std::nullopt;
  std::optional<uint64_t> bytes =
      query.channels ? query.channels(config) : countChannels(query, config);
  return bytes && *bytes > query.memory ? bytes : std::nullopt;
}

/// Takes the fastest of `configs` that there is memory for, and what is slower;
/// false: there is none.
static bool take(const ConfigQuery &query, std::vector<Config> configs,
                 ConfigChoice &answer) {
  auto first = configs.begin();
  for (; first != configs.end(); ++first) {
    std::optional<uint64_t> excess = findExcess(query, *first);
    if (!excess)
      break;
    answer.tooLarge.push_back({*first, *excess});
  }
  answer.considered.assign(first, configs.end());
  return !answer.considered.empty();
}

static std::string describeSource(const Table &table, const ConfigQuery &query,
                                  const std::string &where) {
  std::string source =
      "table " + table.name + " of " + table.date + ", " + where;
  if (!query.device.empty() && !table.device.empty() &&
      table.device != query.device)
    source += " (measured on " + table.device + ")";
  return source;
}

/// A shorter collective is over before others miss the multiprocessors.
static constexpr double kWorthSharing = 150;
/// What those few CTAs may cost. Measured on two H200: 32 of 1,024 threads cost
/// 5 % where arrays are windows, reduce_scatter 13 %; where they are not 10 to
/// 22 %.
static constexpr double kSharingCosts = 1.3;

static int64_t countCtas(const Config &config) {
  return config.blocks * config.cluster;
}

/// Leaves multiprocessors to kernels that run concurrently with the collective.
/// Of those that data-parallel training overlaps with arithmetic: all_to_all
/// and broadcast, for which programs mostly wait, need more CTAs for their
/// speed.
static void share(const ConfigQuery &query, ConfigChoice &answer) {
  static constexpr llvm::StringLiteral ops[] = {"all_reduce", "all_gather",
                                                "reduce_scatter"};
  if (!query.ctas || query.blocks || query.rows ||
      !llvm::is_contained(ops, query.op) ||
      answer.config.microseconds < kWorthSharing ||
      countCtas(answer.config) <= query.ctas)
    return;
  auto isFew = [&](const Config &config) {
    return countCtas(config) <= query.ctas &&
           config.microseconds <= kSharingCosts * answer.config.microseconds;
  };
  // It carries the most in few CTAs, whether or not that was measured.
  auto carriesMuch = [](const Config &config) {
    return config.algorithm == "permutation" && config.protocol == "push";
  };
  auto found = llvm::find_if(answer.considered, isFew);
  if (found == answer.considered.end())
    found = llvm::find_if(answer.considered, carriesMuch);
  if (found == answer.considered.end())
    return;
  answer.config = *found;
  answer.config.blocks = std::min(
      answer.config.blocks, std::max<int64_t>(query.ctas / found->cluster, 1));
  answer.source += ", on " + std::to_string(countCtas(answer.config)) +
                   " CTAs, so that other kernels can run at the same time";
}

ConfigChoice commsir::tune::chooseFrom(const Tables &tables,
                                       const ConfigQuery &query) {
  ConfigChoice answer;
  bool found = false;
  for (const Table *table : tables.find(query)) {
    std::string where;
    std::vector<Config> configs = rankConfigs(*table, query, where);
    found = take(query, std::move(configs), answer);
    if (!found)
      continue;
    answer.source = describeSource(*table, query, where);
    break;
  }
  if (!found) {
    found = take(query, estimateAll(query), answer);
    answer.source = "cost model";
  }
  if (!found && !answer.tooLarge.empty()) {
    answer.considered.push_back(answer.tooLarge.front().config);
    answer.source = "lack of a config that needs less channel memory";
  }
  if (!answer.considered.empty()) {
    answer.config = answer.considered.front();
    share(query, answer);
    return answer;
  }
  // An op or a type that nobody knows: the compiler says why.
  answer.source = "no algorithm and protocol support this";
  answer.config.algorithm = query.algorithm;
  answer.config.protocol = query.protocol;
  answer.config.blocks = std::max<int64_t>(query.blocks, 1);
  answer.config.threads = query.threads;
  answer.config.cluster = query.cluster;
  return answer;
}
