// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/capture_reader.h"

namespace sinkscope::test {

// A capture in memory: what is put in comes out. Everything absent throws like the real one.
class FakeCapture : public CaptureReader {
 public:
  ModelFacts facts;
  bool is_complete = true;
  int n_layers_done = 0;
  std::map<std::string, int> whole;  // blocks that are whole in a run, where not n_layers_done

  // Also puts input/token_ids. Labels default to "t0", "t1", … A name like "run0_edit0" is a twin.
  void add_run(const std::string& run, RunInput input);
  void put(const std::string& run, const std::string& path, std::vector<std::int64_t> dims,
           std::vector<double> values);
  void put_texts(const std::string& run, const std::string& path, std::vector<std::string> texts);
  // An attribute `name` of `path` is put as path@name.

  const std::string& path() const override { return path_; }
  const std::vector<std::string>& runs() const override { return runs_; }
  const std::string& default_run() const override { return runs_.front(); }
  std::vector<std::string> edits(const std::string& run) const override;
  bool complete() const override { return is_complete; }
  int layers_done() const override { return n_layers_done; }
  int whole_layers(const std::string& run) const override {
    return whole.contains(run) ? whole.at(run) : n_layers_done;
  }
  bool has(const std::string& run, const std::string& path) const override;
  std::vector<std::int64_t> dims(const std::string& run, const std::string& path) const override;
  std::vector<std::string> children(const std::string& run,
                                    const std::string& group) const override;
  bool is_dataset(const std::string& run, const std::string& path) const override;
  ElementType type(const std::string& run, const std::string& path) const override;
  std::vector<double> read_f64(const std::string& run, const std::string& path) const override;
  std::vector<double> read_f64(const std::string& run, const std::string& path,
                               const std::vector<std::int64_t>& start,
                               const std::vector<std::int64_t>& count) const override;
  std::vector<float> read_f32(const std::string& run, const std::string& path) const override;
  std::vector<float> read_f32(const std::string& run, const std::string& path,
                              const std::vector<std::int64_t>& start,
                              const std::vector<std::int64_t>& count) const override;
  std::vector<int> read_i32(const std::string& run, const std::string& path) const override;
  std::vector<std::string> read_texts(const std::string& run,
                                      const std::string& path) const override;
  std::string read_text(const std::string& run, const std::string& path) const override;
  bool has_attribute(const std::string&, const std::string&, const std::string&) const override;
  std::string text_attribute(const std::string&, const std::string& path,
                             const std::string&) const override;
  double number_attribute(const std::string&, const std::string& path,
                          const std::string&) const override;
  ModelFacts model(const std::string&) const override { return facts; }
  RunInput input(const std::string& run) const override;

 private:
  struct Array {
    std::vector<std::int64_t> dims;
    std::vector<double> values;
  };
  const Array& array(const std::string& run, const std::string& path) const;

  std::string path_ = "fake.h5";
  std::vector<std::string> runs_, twins_;
  std::map<std::string, RunInput> inputs_;
  std::map<std::string, Array> arrays_;  // "run0/attention/key_mass"
  std::map<std::string, std::vector<std::string>> texts_;
};

// attention/{layers, key_mass, visible, null_mass, window} of causal maps [A,H,T,T].
void put_attention(FakeCapture& capture, const std::string& run, const std::vector<int>& layers,
                   int n_heads, const std::vector<float>& pattern);

// stats/<hook>/ of values [N,T,D], by plain two-pass sums. median_abs where `is_residual`.
void put_stats(FakeCapture& capture, const std::string& run, const std::string& hook,
               const std::vector<int>& layers, int width, const std::vector<float>& values,
               bool is_residual);

// residual/sites and the statistics of hook_resid_{pre,mid,post} of a stream [2L+1,T,D];
// residual/stream itself where `record_stream`.
void put_residual(FakeCapture& capture, const std::string& run, int n_layers, int width,
                  const std::vector<float>& stream, bool record_stream);

// norm/<role> with gain = gain_raw [N,C], kind "rms", eps 1e-5, offset 0.
void put_norm(FakeCapture& capture, const std::string& run, const std::string& role,
              const std::vector<int>& layers, const std::vector<double>& gains);

}  // namespace sinkscope::test
