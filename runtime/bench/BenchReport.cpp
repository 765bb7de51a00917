//===- BenchReport.cpp - Figures and their output -------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/bench/BenchReport.h"

#include "dialect/Collectives.h"
#include "runtime/support/Json.h"
#include "runtime/support/Size.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

using namespace commsir;
using namespace commsir::tune;
namespace json = llvm::json;

static llvm::Error bad(const llvm::Twine &text) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), text);
}

//===----------------------------------------------------------------------===//
// Baselines and floor
//===----------------------------------------------------------------------===//

using Key = std::tuple<std::string, std::string, int64_t>;

static Key keyOf(const Entry &entry) {
  return {entry.op, entry.type, entry.bytes};
}

void Report::compareWithBaselines() {
  // What works on plain memory is compared with what does so too.
  std::map<Key, const Entry *> best, bestPlain;
  for (const Entry &entry : entries) {
    if (!entry.baseline || !entry.isMeasured())
      continue;
    for (auto *map : {&best, &bestPlain}) {
      if (map == &bestPlain && entry.registered)
        continue;
      const Entry *&kept = (*map)[keyOf(entry)];
      if (!kept || entry.medianTime() < kept->medianTime())
        kept = &entry;
    }
  }
  for (Entry &entry : entries) {
    entry.against.clear();
    entry.speedup = {};
    const auto &map = entry.baseline || entry.registered ? best : bestPlain;
    auto found = map.find(keyOf(entry));
    if (found == map.end() || found->second == &entry || !entry.isMeasured())
      continue;
    entry.speedup = ratio(found->second->samples, entry.samples);
    if (!std::isnan(entry.speedup.value))
      entry.against = found->second->contender;
  }
}

bool Report::hasWrong() const {
  return llvm::any_of(entries,
                      [](const Entry &e) { return e.status == Status::Wrong; });
}

/// Arrays of the size of the input that leave each GPU, or come to it.
static double countMoved(llvm::StringRef op, double ranks) {
  using namespace mlir::comms;
  double others = ranks - 1, share = others / ranks;
  // "all_reduce (eager)", "all_reduce_rmsnorm 8192": what is moved is the same.
  llvm::StringRef name = op.split(' ').first;
  const CollectiveKind *kind = findCollectiveKind(name);
  if (!kind && name.starts_with("all_reduce"))
    kind = findCollectiveKind("all_reduce");
  if (!kind || kind->direction != Direction::AllToAll || kind->rowsVary)
    return ranks > 1 ? 1 : 0;
  switch (kind->movement) {
  case Movement::Same:
    return 2 * share;
  case Movement::Join:
    return others;
  case Movement::Cut:
  case Movement::Exchange:
    return share;
  }
  llvm_unreachable("all movements are there");
}

double commsir::tune::floorTime(const Floor &floor, llvm::StringRef op,
                                int64_t ranks, int64_t bytes) {
  double factor = countMoved(op, double(ranks));
  double time = floor.launch + (ranks > 1 ? floor.hop : 0);
  if (floor.bandwidth > 0) // GB/s are 1000 bytes a microsecond.
    time += factor * double(bytes) / (floor.bandwidth * 1000);
  return time;
}

//===----------------------------------------------------------------------===//
// Table
//===----------------------------------------------------------------------===//

/// Three significant digits where they count.
static std::string renderTime(double microseconds) {
  if (std::isnan(microseconds))
    return "";
  unsigned digits = microseconds < 100 ? 2 : microseconds < 1000 ? 1 : 0;
  return llvm::formatv(digits == 2   ? "{0:f2}"
                       : digits == 1 ? "{0:f1}"
                                     : "{0:f0}",
                       microseconds)
      .str();
}

/// A number that reports shown as one may differ in: then it is 0.
static std::string renderNumber(int64_t number) {
  return number ? std::to_string(number) : "differing numbers of";
}

static std::string renderHow(const Header &header) {
  std::string calls = renderNumber(header.calls) + " calls";
  std::string how = header.mode == "eager" ? calls + " one after the other"
                                           : "CUDA graph of " + calls;
  if (header.mode == "graph and eager")
    how += ", and (eager) one after the other";
  return how + ", " + renderNumber(header.replays) + " replays x " +
         renderNumber(header.repetitions) + " interleaved repetitions; " +
         (header.inPlace ? "in place" : "not in place");
}

static void printHeader(const Header &header, llvm::raw_ostream &os) {
  os << "comms-bench " << header.commsir << ", " << header.date << "\n"
     << "target " << header.target << ": " << header.ranks << " ranks on "
     << header.device;
  for (auto [name, version] :
       {std::pair<const char *, const std::string &>("driver", header.driver),
        {"NCCL", header.nccl},
        {"torch", header.torch}})
    if (!version.empty())
      os << ", " << name << " " << version;
  os << "\n"
     << renderHow(header) << "\n"
     << "random inputs; outputs poisoned before and checked after the timed "
        "replays\n"
     << "µs a call on the slowest rank; bytes of one rank's input\n";
  if (const auto &floor = header.floor)
    os << llvm::formatv("floor of this host: launch {0:f2} µs, one hop {1:f2} "
                        "µs, {2:f0} GB/s a GPU to all others\n",
                        floor->launch, floor->hop, floor->bandwidth);
}

/// Rows of one operation, type and size, in the order in which they are shown.
static std::vector<const Entry *> selectRows(std::vector<const Entry *> group,
                                             size_t most) {
  llvm::stable_sort(group, [](const Entry *a, const Entry *b) {
    auto rank = [](const Entry *e) {
      return std::make_tuple(!e->isMeasured(), e->baseline,
                             e->isMeasured() ? e->medianTime() : 0);
    };
    return rank(a) < rank(b);
  });
  std::vector<const Entry *> shown;
  size_t ours[2] = {0, 0}; // On plain memory, on windows.
  for (const Entry *entry : group) {
    if (entry->status == Status::Failed)
      continue; // printFailures tells of these.
    if (!entry->isMeasured() || entry->baseline || most == 0 ||
        ours[entry->registered]++ < most)
      shown.push_back(entry);
  }
  return shown;
}

static std::string renderVerdict(const Entry &entry) {
  switch (entry.status) {
  case Status::Wrong:
    return "WRONG: " + entry.message;
  case Status::Failed:
    break;
  case Status::Ok:
    return entry.exact ? "right, exact" : "right";
  }
  return "";
}

namespace {
/// Columns as wide as their widest cell; the last is as long as it is.
class Grid {
public:
  void add(std::vector<std::string> row) { rows.push_back(std::move(row)); }
  void print(llvm::raw_ostream &os) const {
    std::vector<size_t> widths;
    for (const auto &row : rows) {
      widths.resize(std::max(widths.size(), row.size()));
      for (size_t i = 0; i < row.size(); ++i)
        widths[i] = std::max(widths[i], columns(row[i]));
    }
    for (const auto &row : rows) {
      for (size_t i = 0; i < row.size(); ++i) {
        os << row[i];
        if (i + 1 < row.size())
          os.indent(widths[i] - columns(row[i]) + 2);
      }
      os << "\n";
    }
  }

private:
  /// Code points, not bytes: "µs" takes two columns.
  static size_t columns(llvm::StringRef text) {
    return llvm::count_if(text, [](char c) { return (c & 0xC0) != 0x80; });
  }
  std::vector<std::vector<std::string>> rows;
};
} // namespace

static std::vector<std::string> renderRow(const Entry &entry) {
  std::vector<std::string> row = {entry.op, renderSize(entry.bytes), entry.type,
                                  entry.contender,
                                  entry.registered ? "window" : "plain"};
  bool measured = entry.isMeasured();
  row.push_back(measured ? renderTime(entry.medianTime()) : "");
  row.push_back(measured ? renderTime(entry.p99Time()) : "");
  row.push_back(entry.against.empty()
                    ? ""
                    : llvm::formatv("{0:f2} [{1:f2} {2:f2}] {3}",
                                    entry.speedup.value, entry.speedup.low,
                                    entry.speedup.high, entry.against)
                          .str());
  row.push_back(
      measured && entry.floor > 0
          ? llvm::formatv("{0:f2}", entry.medianTime() / entry.floor).str()
          : "");
  row.push_back(renderVerdict(entry));
  return row;
}

/// Says what could not be run and why, every reason once. Pairs of algorithm
/// and protocol that do not carry out an operation are only counted, unless
/// `all`.
static void printFailures(const Report &report, llvm::raw_ostream &os,
                          bool all) {
  std::map<std::string, size_t> reasons;
  std::vector<std::string> order;
  std::set<std::string> impossible;
  for (const Entry &entry : report.entries) {
    if (entry.status != Status::Failed)
      continue;
    std::string where = entry.op + ", " + entry.contender;
    if (!all && llvm::StringRef(entry.message).contains("cannot be used:")) {
      impossible.insert(where);
      continue;
    }
    std::string reason = where + ": " + entry.message;
    if (reasons[reason]++ == 0)
      order.push_back(reason);
  }
  for (const std::string &reason : order) {
    os << "not run: " << reason;
    if (reasons[reason] > 1)
      os << " (" << reasons[reason] << " times)";
    os << "\n";
  }
  if (!impossible.empty())
    os << impossible.size()
       << " combinations of operation, algorithm and protocol do not exist "
          "(--full says why)\n";
}

void commsir::tune::printTable(const Report &report, llvm::raw_ostream &os,
                               size_t most) {
  printHeader(report.header, os);
  std::vector<Key> order;
  std::map<Key, std::vector<const Entry *>> groups;
  for (const Entry &entry : report.entries) {
    auto &group = groups[keyOf(entry)];
    if (group.empty())
      order.push_back(keyOf(entry));
    group.push_back(&entry);
  }
  Grid grid;
  grid.add({"operation", "bytes", "type", "contender", "memory", "median",
            "p99", "speed against best baseline [95 %]", "x floor", "result"});
  for (const Key &key : order)
    for (const Entry *entry : selectRows(groups[key], most))
      grid.add(renderRow(*entry));
  grid.print(os);
  printFailures(report, os, most == 0);
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

static constexpr llvm::StringLiteral kFormat = "commsir-bench";
static constexpr int64_t kFormatVersion = 1;
static constexpr llvm::StringLiteral kModes[] = {"graph", "eager",
                                                 "graph and eager"};

static llvm::StringRef statusName(Status status) {
  return status == Status::Ok      ? "ok"
         : status == Status::Wrong ? "wrong"
                                   : "failed";
}

static json::Value writeHeader(const Header &header) {
  json::Object object{{"target", header.target},
                      {"date", header.date},
                      {"commsir", header.commsir},
                      {"device", header.device},
                      {"driver", header.driver},
                      {"nccl", header.nccl},
                      {"torch", header.torch},
                      {"ranks", header.ranks},
                      {"mode", header.mode},
                      {"in_place", header.inPlace},
                      {"calls", header.calls},
                      {"replays", header.replays},
                      {"repetitions", header.repetitions},
                      {"command", json::fixUTF8(header.command)}};
  if (header.floor)
    object["floor"] = json::Object{{"launch_us", header.floor->launch},
                                   {"hop_us", header.floor->hop},
                                   {"bandwidth_gb_s", header.floor->bandwidth}};
  return object;
}

static json::Value writeEntry(const Entry &entry) {
  json::Array samples;
  for (const std::vector<double> &repetition : entry.samples)
    samples.push_back(json::Array(repetition));
  json::Object object{{"op", entry.op},
                      {"type", entry.type},
                      {"bytes", entry.bytes},
                      {"contender", entry.contender},
                      {"baseline", entry.baseline},
                      {"registered", entry.registered},
                      {"status", statusName(entry.status)},
                      {"message", json::fixUTF8(entry.message)},
                      {"exact", entry.exact},
                      {"samples_us", std::move(samples)}};
  if (entry.isMeasured()) {
    object["median_us"] = entry.medianTime();
    object["p99_us"] = entry.p99Time();
  }
  if (entry.floor > 0)
    object["floor_us"] = entry.floor;
  if (!entry.against.empty())
    object["speedup"] = json::Object{{"against", entry.against},
                                     {"value", entry.speedup.value},
                                     {"low", entry.speedup.low},
                                     {"high", entry.speedup.high}};
  return object;
}

void commsir::tune::printJson(const Report &report, llvm::raw_ostream &os) {
  json::Array entries;
  for (const Entry &entry : report.entries)
    entries.push_back(writeEntry(entry));
  json::Value whole = json::Object{{"format", kFormat},
                                   {"version", kFormatVersion},
                                   {"header", writeHeader(report.header)},
                                   {"results", std::move(entries)}};
  os << llvm::formatv("{0:1}", whole) << "\n";
}

/// A file may come from anybody, and what it holds goes to a terminal: control
/// characters in its texts become spaces.
static bool mapText(json::ObjectMapper &map, llvm::StringLiteral key,
                    std::string &text, bool optional = false) {
  if (!(optional ? map.mapOptional(key, text) : map.map(key, text)))
    return false;
  auto isControl = [](unsigned char c) { return c < 0x20 || c == 0x7F; };
  std::replace_if(text.begin(), text.end(), isControl, ' ');
  return true;
}

/// JSON has no infinity, but 1e999 is read as one.
static bool inRange(double number, double least) {
  return number >= least && std::isfinite(number);
}

static bool require(bool holds, json::Path path, llvm::StringLiteral expected) {
  if (!holds)
    path.report(expected);
  return holds;
}

static bool readFloor(const json::Value &value, Floor &floor, json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("launch_us", floor.launch) &&
         map.map("hop_us", floor.hop) &&
         map.map("bandwidth_gb_s", floor.bandwidth) &&
         require(inRange(floor.launch, 0) && inRange(floor.hop, 0) &&
                     inRange(floor.bandwidth, 0),
                 path, "expected finite numbers from 0");
}

static bool readHeader(const json::Value &value, Header &header,
                       json::Path path) {
  json::ObjectMapper map(value, path);
  constexpr bool optional = true;
  bool whole = map && mapText(map, "target", header.target) &&
               mapText(map, "date", header.date) &&
               mapText(map, "commsir", header.commsir, optional) &&
               mapText(map, "device", header.device, optional) &&
               mapText(map, "driver", header.driver, optional) &&
               mapText(map, "nccl", header.nccl, optional) &&
               mapText(map, "torch", header.torch, optional) &&
               map.map("ranks", header.ranks) &&
               mapText(map, "mode", header.mode) &&
               map.mapOptional("in_place", header.inPlace) &&
               map.mapOptional("calls", header.calls) &&
               map.mapOptional("replays", header.replays) &&
               map.mapOptional("repetitions", header.repetitions) &&
               mapText(map, "command", header.command, optional);
  if (!whole)
    return false;
  if (!require(header.ranks >= 1, path.field("ranks"), "expected 1 or more") ||
      !require(llvm::is_contained(kModes, header.mode), path.field("mode"),
               "expected graph, eager, or graph and eager"))
    return false;
  for (int64_t count : {header.calls, header.replays, header.repetitions})
    if (!require(count >= 0, path,
                 "expected calls, replays and repetitions from 0"))
      return false;
  const json::Value *floor = value.getAsObject()->get("floor");
  if (!floor || floor->kind() == json::Value::Null)
    return true;
  return readFloor(*floor, header.floor.emplace(), path.field("floor"));
}

static bool checkSamples(const Entry &entry, json::Path path) {
  if (!require(entry.status != Status::Ok || !flatten(entry.samples).empty(),
               path, "expected at least one time, as the status is ok"))
    return false;
  return llvm::all_of(flatten(entry.samples), [&](double sample) {
    return require(sample > 0 && std::isfinite(sample), path,
                   "expected finite times greater than 0");
  });
}

static bool readEntry(const json::Value &value, Entry &entry, json::Path path) {
  json::ObjectMapper map(value, path);
  std::string status;
  if (!(map && mapText(map, "op", entry.op) &&
        mapText(map, "type", entry.type) && map.map("bytes", entry.bytes) &&
        mapText(map, "contender", entry.contender) &&
        map.map("baseline", entry.baseline) &&
        map.mapOptional("registered", entry.registered) &&
        mapText(map, "status", status) &&
        mapText(map, "message", entry.message, /*optional=*/true) &&
        map.mapOptional("exact", entry.exact) &&
        map.map("samples_us", entry.samples) &&
        map.mapOptional("floor_us", entry.floor)))
    return false;
  if (!require(llvm::is_contained({"ok", "wrong", "failed"}, status),
               path.field("status"), "expected ok, wrong or failed"))
    return false;
  entry.status = status == "ok"      ? Status::Ok
                 : status == "wrong" ? Status::Wrong
                                     : Status::Failed;
  return require(entry.bytes >= 0, path.field("bytes"), "expected 0 or more") &&
         require(inRange(entry.floor, 0), path.field("floor_us"),
                 "expected a finite time from 0") &&
         checkSamples(entry, path.field("samples_us"));
}

/// Reads the array `results`; the entries are ours, so that errors have a path.
static bool readEntries(const json::Value *value, std::vector<Entry> &entries,
                        json::Path path) {
  const json::Array *array = value ? value->getAsArray() : nullptr;
  if (!array) {
    path.report("expected array");
    return false;
  }
  for (size_t i = 0; i < array->size(); ++i)
    if (!readEntry((*array)[i], entries.emplace_back(), path.index(i)))
      return false;
  return true;
}

llvm::Expected<Report> commsir::tune::parseJson(llvm::StringRef text,
                                                llvm::StringRef name) {
  llvm::Expected<json::Value> value = readJson(text);
  if (!value)
    return bad("'" + name +
               "' is not JSON: " + llvm::toString(value.takeError()));
  const json::Object *object = value->getAsObject();
  if (!object || object->getString("format") != llvm::StringRef(kFormat))
    return bad("'" + name +
               "' is not a report of comms-bench (its \"format\" is not \"" +
               kFormat + "\"); write one with --json");
  if (object->getInteger("version") != kFormatVersion)
    return bad("'" + name +
               "' is a report of another version of comms-bench; this one "
               "reads version " +
               llvm::Twine(kFormatVersion) + ": measure again");
  Report report;
  json::Path::Root root("report");
  json::Path path(root);
  const json::Value *header = object->get("header");
  if (!readHeader(header ? *header : json::Value(nullptr), report.header,
                  path.field("header")) ||
      !readEntries(object->get("results"), report.entries,
                   path.field("results")))
    return bad("'" + name + "' is damaged: " + llvm::toString(root.getError()));
  report.compareWithBaselines();
  return report;
}

//===----------------------------------------------------------------------===//
// SVG
//===----------------------------------------------------------------------===//

namespace {

/// A line of a panel: microseconds by bytes.
struct Line {
  std::string name;
  std::map<int64_t, double> points;
};

/// The figures of one operation and type.
struct Panel {
  std::string title;
  std::vector<Line> lines;

  Line &line(llvm::StringRef name) {
    for (Line &one : lines)
      if (one.name == name)
        return one;
    lines.push_back({name.str(), {}});
    return lines.back();
  }
};

/// Draws panels one below the other.
class Painter {
public:
  Painter(llvm::raw_ostream &os, const Panel &panel, double top)
      : os(os), panel(panel), top(top) {
    for (const Line &line : panel.lines)
      for (auto [bytes, time] : line.points) {
        lowX = std::min(lowX, std::log2(double(bytes)));
        highX = std::max(highX, std::log2(double(bytes)));
        lowY = std::min(lowY, std::floor(std::log10(time)));
        highY = std::max(highY, std::ceil(std::log10(time)));
      }
    if (highX <= lowX) {
      lowX -= 1;
      highX += 1;
    }
    if (highY <= lowY)
      highY = lowY + 1;
  }

  void paint() {
    text(kLeft, top - 12, panel.title, "start", "bold");
    axes();
    const char *colors[] = {"#d62728", "#1f77b4", "#2ca02c", "#9467bd",
                            "#8c564b", "#e377c2", "#7f7f7f", "#17becf"};
    for (size_t i = 0; i < panel.lines.size(); ++i)
      paintLine(panel.lines[i], colors[i % std::size(colors)], i);
  }

  static constexpr double kLeft = 70, kWidth = 560, kHeight = 300;

private:
  double x(double bytes) const {
    return kLeft + kWidth * (std::log2(bytes) - lowX) / (highX - lowX);
  }
  double y(double time) const {
    return top + kHeight * (highY - std::log10(time)) / (highY - lowY);
  }

  void text(double atX, double atY, llvm::StringRef words, const char *anchor,
            const char *weight = "normal") {
    os << llvm::formatv("<text x=\"{0:f1}\" y=\"{1:f1}\" text-anchor=\"{2}\" "
                        "font-weight=\"{3}\">",
                        atX, atY, anchor, weight);
    llvm::printHTMLEscaped(words, os);
    os << "</text>\n";
  }

  void rule(double x1, double y1, double x2, double y2) {
    os << llvm::formatv("<line x1=\"{0:f1}\" y1=\"{1:f1}\" x2=\"{2:f1}\" "
                        "y2=\"{3:f1}\" stroke=\"#ddd\"/>\n",
                        x1, y1, x2, y2);
  }

  void axes() {
    for (double power = lowY; power <= highY; ++power) {
      double at = y(std::pow(10, power));
      rule(kLeft, at, kLeft + kWidth, at);
      text(kLeft - 6, at + 4,
           llvm::formatv(power < 0 ? "{0:f2} µs" : "{0:f0} µs",
                         std::pow(10, power))
               .str(),
           "end");
    }
    double step = std::max(1.0, std::ceil((highX - lowX) / 9));
    for (double power = std::ceil(lowX); power <= highX; power += step) {
      double at = x(std::pow(2, power));
      rule(at, top, at, top + kHeight);
      if (power >= 0)
        text(at, top + kHeight + 16, renderSize(int64_t(std::pow(2, power))),
             "middle");
    }
  }

  void paintLine(const Line &line, const char *color, size_t row) {
    bool dashed = line.name == "floor";
    os << "<polyline fill=\"none\" stroke=\"" << color
       << "\" stroke-width=\"2\"" << (dashed ? " stroke-dasharray=\"5 4\"" : "")
       << " points=\"";
    for (auto [bytes, time] : line.points)
      os << llvm::formatv("{0:f1},{1:f1} ", x(double(bytes)), y(time));
    os << "\"/>\n";
    for (auto [bytes, time] : line.points)
      os << llvm::formatv("<circle cx=\"{0:f1}\" cy=\"{1:f1}\" r=\"3\" "
                          "fill=\"{2}\"/>\n",
                          x(double(bytes)), y(time), color);
    double at = top + 8 + 18 * double(row);
    os << llvm::formatv("<rect x=\"{0:f1}\" y=\"{1:f1}\" width=\"14\" "
                        "height=\"4\" fill=\"{2}\"/>\n",
                        kLeft + kWidth + 14, at, color);
    text(kLeft + kWidth + 34, at + 7, line.name, "start");
  }

  llvm::raw_ostream &os;
  const Panel &panel;
  double top;
  double lowX = 64, highX = 0, lowY = 12, highY = -3;
};

} // namespace

static std::vector<Panel> makePanels(const Report &report) {
  std::vector<Panel> panels;
  auto find = [&](const std::string &title) -> Panel & {
    for (Panel &panel : panels)
      if (panel.title == title)
        return panel;
    panels.push_back({title, {}});
    return panels.back();
  };
  for (const Entry &entry : report.entries) {
    if (!entry.isMeasured() || entry.bytes <= 0)
      continue;
    Panel &panel =
        find(llvm::formatv("{0}, {1}, {2} ranks on {3}", entry.op, entry.type,
                           report.header.ranks, report.header.device)
                 .str());
    auto put = [&](llvm::StringRef name, double time) {
      auto [place, isNew] =
          panel.line(name).points.try_emplace(entry.bytes, time);
      if (!isNew)
        place->second = std::min(place->second, time);
    };
    std::string name = entry.baseline ? entry.contender : "commsir (best)";
    if (entry.baseline)
      name += entry.registered ? " (window)" : "";
    put(name, entry.medianTime());
    if (entry.floor > 0)
      put("floor", entry.floor);
  }
  return panels;
}

void commsir::tune::printSvg(const Report &report, llvm::raw_ostream &os) {
  std::vector<Panel> panels = makePanels(report);
  constexpr double pitch = Painter::kHeight + 90;
  double height = pitch * double(panels.size()) + 40;
  os << llvm::formatv("<svg xmlns=\"http://www.w3.org/2000/svg\" "
                      "width=\"900\" height=\"{0:f0}\" "
                      "font-family=\"sans-serif\" font-size=\"12\">\n"
                      "<rect width=\"100%\" height=\"100%\" "
                      "fill=\"white\"/>\n",
                      height);
  for (size_t i = 0; i < panels.size(); ++i)
    Painter(os, panels[i], 40 + pitch * double(i)).paint();
  os << "<text x=\"70\" y=\"" << int(height) - 12 << "\">";
  llvm::printHTMLEscaped(renderHow(report.header) + "; " + report.header.date,
                         os);
  os << "</text>\n</svg>\n";
}
