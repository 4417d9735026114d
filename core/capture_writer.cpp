// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/capture_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/capture_create.h"
#include "core/capture_resume.h"
#include "core/error.h"
#include "core/h5/chunk_writer.h"
#include "core/h5/dataset.h"
#include "core/h5/object.h"
#include "core/h5/raw_values.h"
#include "core/open_datasets.h"
#include "core/output_path.h"
#include "core/recording_request.h"
#include "core/side_file.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;
using Dims = std::vector<std::int64_t>;

class FileWriter final : public CaptureWriter {
 public:
  FileWriter(std::string path, CaptureLayout layout, Existing existing)
      : path_(std::move(path)),
        part_(path_ + ".part"),
        layout_(std::move(layout)),
        existing_(existing),
        open_(file_, layout_.runs) {}

  void open(const CompleteProvenance& complete) {
    if (existing_ == Existing::resume && fs::exists(part_)) {
      if (fs::exists(path_))
        throw Error(
            ErrorKind::invalid_argument,
            fmt::format("{} exists beside {}: move it away to go on with the unfinished one", path_,
                        part_));
      return go_on(complete);
    }
    refuse_existing(path_);
    refuse_existing(part_);
    create(complete);
    file_ = h5::File::open_for_writing(part_);
    descriptor_ = file_.descriptor();
  }

  ~FileWriter() override {
    if (has_failed_ || !file_) return;
    try {
      open_.close();
      file_.close();
    } catch (const Error&) {
      file_.abandon();
    }
  }

  const CaptureLayout& layout() const override { return layout_; }
  const RecordingState* resume_point() const override {
    return is_resumed_ ? &resume_point_ : nullptr;
  }

  void keep_streams(int layers_done, int first_run,
                    const std::vector<StreamBytes>& streams) override {
    guarded([&] { save_state(part_, request_, layers_done, first_run, streams); });
  }

  void write(int run, const std::string& path, const Dims& start, const Dims& count,
             const float* values) override {
    write_any(run, path, start, count, ElementType::f32, values);
  }
  void write(int run, const std::string& path, const Dims& start, const Dims& count,
             const double* values) override {
    write_any(run, path, start, count, ElementType::f64, values);
  }
  void write(int run, const std::string& path, const Dims& start, const Dims& count,
             const std::int32_t* values) override {
    write_any(run, path, start, count, ElementType::i32, values);
  }

  void write_pattern(int run, int layer_slot, int head_begin, int n_heads, int row_begin,
                     int n_rows, int key_begin, int key_end, const float* values) override;

  void layer_done(int layers_done, int runs_done) override {
    guarded([&] {
      file_.flush();
      h5::set_attribute(file_.root(), "layers_done", layers_done);
      h5::set_attribute(file_.root(), "runs_done", runs_done);
      h5::set_attribute(file_.root(), "runs_begun", std::max(runs_begun_, runs_done));
      file_.flush();
    });
  }

  void finish() override {
    guarded([&] {
      open_.close();
      file_.flush();
      h5::set_attribute(file_.root(), "complete", 1);
      file_.close();
      // From here on the data are safe in NAME.part, whatever happens to the name.
    });
    refuse_existing(path_);
    rename_file(part_, path_);
    remove_states(part_);
  }

 private:
  struct Target {
    const DatasetSpec* spec;
    std::int64_t offset;
  };

  void refuse_existing(const std::string& path) const {
    if (existing_ == Existing::overwrite || !is_taken(path)) return;
    throw Error(ErrorKind::invalid_argument,
                path == path_ ? fmt::format("{} exists; --force overwrites it", path)
                              : fmt::format("{} exists, an unfinished recording; --resume goes on "
                                            "with it, --force overwrites it",
                                            path));
  }

  // The whole structure goes to a file of another name first: NAME.part never lacks any of it.
  void create(const CompleteProvenance& complete) {
    const std::string unborn = part_ + ".tmp";
    h5::File::require_unlocked(part_);
    h5::File file = h5::File::create(unborn);
    std::error_code ignored;
    bool is_replacing = false;
    try {
      tables_ = create_structure(file, layout_);
      if (complete) complete(layout_.provenance);
      write_provenance(file, layout_);
      file.close();
      request_ = recording_request(layout_);
      // Time has passed: another program may have begun, or gone on with, this recording.
      refuse_existing(part_);
      h5::File::require_unlocked(part_);
      is_replacing = true;
      fs::remove(part_, ignored);  // an unfinished recording that is being overwritten
      remove_states(part_);
      save_state(part_, request_, 0, 0, {});
      rename_file(unborn, part_);
    } catch (...) {
      file.abandon();
      fs::remove(unborn, ignored);
      if (is_replacing) remove_states(part_);
      throw;
    }
  }

  void go_on(const CompleteProvenance& complete) {
    if (complete) complete(layout_.provenance);
    request_ = recording_request(layout_);
    h5::File::require_unlocked(part_);
    ResumePoint point = find_resume_point(part_, layout_, request_);
    tables_ = std::move(point.tables);
    resume_point_ = std::move(point.state);
    runs_begun_ = point.runs_begun;
    if (resume_point_.is_before) promote_state(part_);
    file_ = h5::File::open_for_writing(part_);
    descriptor_ = file_.descriptor();
    is_resumed_ = true;
  }

  // After a failure the file is let go of: a flush now could damage the layers that are whole.
  template <class Action>
  void guarded(Action action) {
    if (has_failed_ || !file_) {
      throw Error(ErrorKind::io, fmt::format("{}: an earlier write failed", part_));
    }
    try {
      action();
    } catch (...) {
      has_failed_ = true;
      open_.abandon();
      file_.abandon();
      throw;
    }
  }

  Target target(int run, const std::string& path) {
    if (run >= 0 && run < static_cast<int>(tables_.size())) {
      const RunTable& table = tables_[static_cast<std::size_t>(run)];
      if (const auto found = table.specs->index.find(path); found != table.specs->index.end()) {
        const auto i = static_cast<std::size_t>(found->second);
        runs_begun_ = std::max(runs_begun_, run + 1);
        return {&table.specs->list[i], table.offsets[i]};
      }
    }
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{}: run{} has no dataset {} in this layout", part_, run, path));
  }

  void write_any(int run, const std::string& path, const Dims& start, const Dims& count,
                 ElementType type, const void* values) {
    const Target at = target(run, path);
    const auto is_float = [](ElementType t) {
      return t == ElementType::f32 || t == ElementType::f64;
    };
    if (at.spec->type == ElementType::text || is_float(type) != is_float(at.spec->type)) {
      throw Error(ErrorKind::invalid_argument,
                  fmt::format("{}: run{}/{}: values of another class than the dataset's", part_,
                              run, path));
    }
    h5::check_box(at.spec->dims, start, count, fmt::format("{}: run{}/{}", part_, run, path));
    guarded([&] {
      if (at.offset >= 0) {
        h5::write_raw({descriptor_, at.offset, at.spec->type}, at.spec->dims, start, count, type,
                      values, part_);
      } else if (type == ElementType::f32) {
        chunks_.write(open_.get(run, path), at.spec->chunk, start, count,
                      h5::StridedValues::dense(static_cast<const float*>(values), count));
      } else {
        open_.get(run, path).write(start, count, type, values);
      }
    });
  }

  std::string path_, part_, request_;
  CaptureLayout layout_;
  Existing existing_;
  std::vector<RunTable> tables_;
  h5::File file_;
  int descriptor_ = -1;
  OpenDatasets open_;
  h5::ChunkWriter chunks_;
  RecordingState resume_point_;
  int runs_begun_ = 0;
  bool has_failed_ = false, is_resumed_ = false;
};

void FileWriter::write_pattern(int run, int layer_slot, int head_begin, int n_heads, int row_begin,
                               int n_rows, int key_begin, int key_end, const float* values) {
  const std::string path = "attention/pattern";
  const DatasetSpec& spec = *target(run, path).spec;
  const std::int64_t n_keys = spec.dims[3], side = spec.chunk[3];
  h5::check_box(spec.dims, {layer_slot, head_begin, row_begin, key_begin},
                {1, n_heads, n_rows, key_end - key_begin}, fmt::format("{}: {}", part_, path));
  if (key_end == key_begin) return;
  // Whole chunks of keys: what lies beside the given range in them is zero.
  const std::int64_t begin = key_begin / side * side;
  const std::int64_t end = std::min(n_keys, (key_end + side - 1) / side * side);
  guarded([&] {
    chunks_.write(open_.get(run, path), spec.chunk, {layer_slot, head_begin, row_begin, begin},
                  {1, n_heads, n_rows, end - begin},
                  {values + begin, {0, n_rows * n_keys, n_keys, 1}});
  });
}

}  // namespace

std::unique_ptr<CaptureWriter> CaptureWriter::create(const std::string& path,
                                                     const CaptureLayout& layout, Existing existing,
                                                     const CompleteProvenance& complete) {
  require_capture_path(path);
  require_folder_of(path);
  auto writer = std::make_unique<FileWriter>(path, layout, existing);
  writer->open(complete);
  return writer;
}

}  // namespace sinkscope
