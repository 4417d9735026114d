// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/capture_layout.h"

namespace sinkscope {

// A capture opened for reading. Nothing but structure is read at opening; values on request, a box
// at a time. Shapes and types are checked against what core/FORMAT.md says before use: a capture
// from someone else is a stranger's file. One thread at a time.
// Errors: not_found (file, run, dataset), corrupt (shape or type), unsupported (format version).
class CaptureReader {
 public:
  static std::unique_ptr<CaptureReader> open(const std::string& path);
  virtual ~CaptureReader() = default;

  virtual const std::string& path() const = 0;
  // "run0", "run1", … in number order. Of a capture of twins whose baselines lie in another file:
  // the twins.
  virtual const std::vector<std::string>& runs() const = 0;
  virtual const std::string& default_run() const = 0;
  // The run's twins under what-ifs: "run0_edit0", "run0_edit1", … Every function below takes these
  // names as well.
  virtual std::vector<std::string> edits(const std::string& /*run*/) const { return {}; }
  virtual bool complete() const = 0;
  virtual int layers_done() const = 0;  // blocks that are whole in the first run
  // Blocks that are whole in this run; in a complete capture all of them.
  virtual int whole_layers(const std::string& /*run*/) const { return layers_done(); }

  // Paths below the run's group ("attention/key_mass").
  virtual bool has(const std::string& run, const std::string& path) const = 0;
  virtual std::vector<std::int64_t> dims(const std::string& run, const std::string& path) const = 0;
  virtual std::vector<std::string> children(const std::string& run,
                                            const std::string& group) const = 0;
  virtual bool is_dataset(const std::string& run, const std::string& path) const = 0;  // or a group
  virtual ElementType type(const std::string& run, const std::string& path) const = 0;

  // Whole dataset, or a box of it; converted to the requested type by HDF5 (f32 to f64 is exact).
  virtual std::vector<double> read_f64(const std::string& run, const std::string& path) const = 0;
  virtual std::vector<double> read_f64(const std::string& run, const std::string& path,
                                       const std::vector<std::int64_t>& start,
                                       const std::vector<std::int64_t>& count) const = 0;
  virtual std::vector<float> read_f32(const std::string& run, const std::string& path) const = 0;
  virtual std::vector<float> read_f32(const std::string& run, const std::string& path,
                                      const std::vector<std::int64_t>& start,
                                      const std::vector<std::int64_t>& count) const = 0;
  // A box into a buffer, which becomes as large as the box: new memory costs as much as the
  // reading.
  virtual void read_f32_into(const std::string& run, const std::string& path,
                             const std::vector<std::int64_t>& start,
                             const std::vector<std::int64_t>& count,
                             std::vector<float>& into) const {
    into = read_f32(run, path, start, count);
  }
  virtual std::vector<int> read_i32(const std::string& run, const std::string& path) const = 0;
  virtual std::vector<std::string> read_texts(const std::string& run,
                                              const std::string& path) const = 0;
  virtual std::string read_text(const std::string& run, const std::string& path) const = 0;

  // Attributes of the run's group or of an object below it ("" = the run's group itself).
  virtual bool has_attribute(const std::string& run, const std::string& path,
                             const std::string& name) const = 0;
  virtual std::string text_attribute(const std::string& run, const std::string& path,
                                     const std::string& name) const = 0;
  virtual double number_attribute(const std::string& run, const std::string& path,
                                  const std::string& name) const = 0;

  // @n_layers and the like of the run's model group.
  virtual ModelFacts model(const std::string& run) const = 0;
  virtual RunInput input(const std::string& run) const = 0;
};

}  // namespace sinkscope
