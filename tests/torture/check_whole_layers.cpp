// SPDX-License-Identifier: GPL-3.0-or-later
// check_whole_layers REFERENCE.h5 PART: whether an unfinished capture opens and every array of its
// whole layers equals the reference to the bit. Prints one line; exit 0 = yes.
#include <cstring>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "core/capture_reader.h"
#include "core/error.h"

namespace sinkscope {
namespace {

using Dims = std::vector<std::int64_t>;

struct Pair {
  const CaptureReader& whole;
  const CaptureReader& part;
};

// The block that row `row` of an array belongs to.
int block_of(const std::string& path, int row, const std::vector<int>& layers) {
  if (path.starts_with("residual/abs_mean")) return row == 0 ? 0 : row - 1;
  if (path.starts_with("residual/")) return row == 0 ? 0 : (row - 1) / 2;
  return layers[static_cast<std::size_t>(row)];
}

bool same_row(const Pair& files, const std::string& run, const std::string& path, int row) {
  Dims start(files.whole.dims(run, path).size(), 0), count = files.whole.dims(run, path);
  start[0] = row;
  count[0] = 1;
  const auto a = files.whole.read_f64(run, path, start, count);
  const auto b = files.part.read_f64(run, path, start, count);
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0);
}

class Checker {
 public:
  explicit Checker(Pair files) : files_(files) {}

  void run(const std::string& name) {
    const int whole = files_.part.whole_layers(name);
    layers_ += whole;
    for (const std::string& group : files_.whole.children(name, ""))
      if (group == "attention" || group == "residual" || group == "stats" || group == "taps")
        walk(name, group, whole, {});
  }
  int rows() const { return rows_; }
  int layers() const { return layers_; }
  const std::string& difference() const { return difference_; }

 private:
  void walk(const std::string& run, const std::string& group, int whole, std::vector<int> layers) {
    if (files_.whole.has(run, group + "/layers"))
      layers = files_.whole.read_i32(run, group + "/layers");
    for (const std::string& name : files_.whole.children(run, group)) {
      const std::string path = group + "/" + name;
      if (!files_.whole.is_dataset(run, path)) {
        walk(run, path, whole, layers);
      } else if (name == "pattern") {
        compare(run, path, whole, files_.whole.read_i32(run, "attention/pattern_layers"));
      } else if (files_.whole.type(run, path) != ElementType::text &&
                 files_.whole.dims(run, path).size() > 1 && name != "final_norm") {
        compare(run, path, whole, layers);
      }
    }
  }

  void compare(const std::string& run, const std::string& path, int whole,
               const std::vector<int>& layers) {
    for (int row = 0; row < static_cast<int>(files_.whole.dims(run, path)[0]); ++row) {
      const int block = block_of(path, row, layers);
      if (block < 0 || block >= whole) continue;
      ++rows_;
      if (difference_.empty() && !same_row(files_, run, path, row))
        difference_ = run + "/" + path + " row " + std::to_string(row);
    }
  }

  Pair files_;
  int rows_ = 0, layers_ = 0;
  std::string difference_;
};

int check(const std::string& whole_path, const std::string& part_path) {
  const auto whole = CaptureReader::open(whole_path), part = CaptureReader::open(part_path);
  Checker checker({*whole, *part});
  for (const std::string& run : whole->runs()) checker.run(run);
  std::cout << checker.layers() << " whole layers, " << checker.rows() << " rows compared";
  if (!checker.difference().empty()) std::cout << ", WRONG: " << checker.difference();
  std::cout << '\n';
  return checker.difference().empty() ? 0 : 1;
}

}  // namespace
}  // namespace sinkscope

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    return sinkscope::check(argv[1], argv[2]);
  } catch (const sinkscope::Error& error) {
    std::cout << "UNREADABLE: " << error.what() << '\n';
    return 3;
  }
}
