// SPDX-License-Identifier: GPL-3.0-or-later
// A capture whose structure was changed: whatever reads captures gets numbers or one Error, and no
// HDF5 identifier is left behind.
#include <hdf5.h>
#include <malloc.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <span>

#include "core/capture_norms.h"
#include "core/capture_reader.h"
#include "core/error.h"
#include "core/figure/make_figure.h"
#include "core/rescale/report.h"
#include "core/sink_report.h"
#include "core/snapshot/attention_snapshot.h"
#include "core/snapshot/norms_snapshot.h"
#include "core/snapshot/overview_snapshot.h"
#include "core/snapshot/residual_snapshot.h"
#include "core/snapshot/thumbnail_snapshot.h"
#include "core/what_if/outcome.h"
#include "tests/fuzz/capture_mutator.h"

namespace sinkscope {
namespace {

constexpr int kOpening = 7;  // the reading that all programs begin with

// One file, filled again and again, in memory where there is /dev/shm. Removed at the end.
class ScratchFile {
 public:
  ScratchFile() {
    path_ = access("/dev/shm", W_OK) == 0 ? "/dev/shm/" : "/tmp/";
    path_ += "sinkscope-fuzz-XXXXXX";
    descriptor_ = mkstemp(path_.data());
    if (descriptor_ < 0) std::abort();
  }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  ~ScratchFile() { unlink(path_.c_str()); }
  const std::string& path() const { return path_; }
  void fill(const std::string& bytes) const {
    if (ftruncate(descriptor_, static_cast<off_t>(bytes.size())) != 0) std::abort();
    if (pwrite(descriptor_, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
      std::abort();
  }

 private:
  int descriptor_ = -1;
  std::string path_;
};

template <class Read>
void attempt(const Read& read) {
  try {
    read();
  } catch (const Error&) {
  }
}

// Types aside: the library of readers keeps a few of its own for ever.
ssize_t n_open_identifiers() {
  return H5Fget_obj_count(H5F_OBJ_ALL,
                          H5F_OBJ_FILE | H5F_OBJ_DATASET | H5F_OBJ_GROUP | H5F_OBJ_ATTR);
}

// Everything that a changed object or attribute may be, whatever it was.
void read_changed(const CaptureReader& reader, const fuzz::CaptureMutator::Changed& changed) {
  const std::size_t slash = changed.path.find('/');
  const std::string run = changed.path.substr(0, slash);
  const std::string path = slash == std::string::npos ? "" : changed.path.substr(slash + 1);
  if (!changed.attribute.empty()) {
    attempt([&] { reader.text_attribute(run, path, changed.attribute); });
    attempt([&] { reader.number_attribute(run, path, changed.attribute); });
    return;
  }
  attempt([&] { reader.children(run, path); });
  attempt([&] {
    reader.dims(run, path);  // all reading begins with it: what it refuses, they do
    attempt([&] { reader.read_f32(run, path); });
    attempt([&] { reader.read_f64(run, path); });
    attempt([&] { reader.read_i32(run, path); });
    attempt([&] { reader.read_texts(run, path); });
    attempt([&] { reader.read_text(run, path); });
  });
}

// Whether to go on from what all programs read first: one input in four, whatever its beginning
// says, for a report takes as long as twenty openings.
bool reads_on(std::span<const std::uint8_t> bytes) {
  std::uint32_t mix = 2166136261u;  // FNV-1a
  for (const std::uint8_t byte : bytes) mix = (mix ^ byte) * 16777619u;
  return mix % 4 == 0;
}

// One of the programs that read captures.
void read_as(int reading, const CaptureReader& reader) {
  const std::string& run = reader.default_run();
  switch (reading % 8) {
    case 0:
      sink_report_json(sink_report(reader, {run}, {})).dump();
      break;
    case 1:
      read_overview(reader, {.run = run});
      break;
    case 2:
      read_residual(reader, {.run = run});
      read_thumbnails(reader, {run});
      break;
    case 3:
      read_norms_snapshot(reader, {.run = run});
      read_norms(reader, run);
      break;
    case 4:
      read_attention(reader, {.run = run, .combine = Combine::mean});
      break;
    case 5:
      rescale_json(rescale_report(reader, run, {})).dump();
      break;
    case 6:
      for (const char* kind : {"depth-lines", "logit-gap", "value-norms", "key-mass"})
        attempt([&] {
          FigureInput input;
          input.name = "x";
          input.capture = &reader;
          input.run = run;
          FigureRequest request;
          request.kind = kind;
          make_figure(request, {input});
        });
      break;
    default:
      for (const std::string& name : reader.runs()) reader.input(name);  // and its model's sizes
      break;
  }
}

}  // namespace
}  // namespace sinkscope

// Comparisons in readers are not noted, see CMakeLists.txt.
#define SINKSCOPE_IGNORE_COMPARISON(bits, type)              \
  void __wrap___sanitizer_cov_trace_cmp##bits(type, type) {} \
  void __wrap___sanitizer_cov_trace_const_cmp##bits(type, type) {}
extern "C" {
SINKSCOPE_IGNORE_COMPARISON(1, std::uint8_t)
SINKSCOPE_IGNORE_COMPARISON(2, std::uint16_t)
SINKSCOPE_IGNORE_COMPARISON(4, std::uint32_t)
SINKSCOPE_IGNORE_COMPARISON(8, std::uint64_t)
}
#undef SINKSCOPE_IGNORE_COMPARISON

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sinkscope;
  static const fuzz::CaptureMutator mutator(fuzz::base_capture());
  static const ScratchFile file;
  // A fuzzer whose base does not open finds nothing.
  static const bool base_opens = [&] {
    // Images come and go; giving their pages back each time takes a tenth of the time.
    mallopt(M_MMAP_THRESHOLD, 64 << 20);
    mallopt(M_TRIM_THRESHOLD, 256 << 20);
    file.fill(mutator.mutate({}).image);
    sink_report(*CaptureReader::open(file.path()), {"run0"}, {});
    return true;
  }();
  if (size < 1 || !base_opens) return 0;
  const auto mutated = mutator.mutate({data + 1, size - 1});
  // A file that HDF5 made of the changes and could not close stays open: it is no reader's.
  const ssize_t open_before = n_open_identifiers();
  file.fill(mutated.image);
  attempt([&] {
    const auto reader = CaptureReader::open(file.path());
    attempt([&] { read_as(reads_on({data, size}) ? data[0] : kOpening, *reader); });
    for (const auto& changed : mutated.changed) read_changed(*reader, changed);
  });
  if (n_open_identifiers() != open_before) {
    std::fprintf(stderr, "HDF5 identifiers are left open\n");
    std::abort();
  }
  return 0;
}
