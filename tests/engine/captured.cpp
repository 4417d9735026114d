// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/engine/captured.h"

#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "capture/run/make_engine.h"
#include "tests/support/h5_reference.h"
#include "tests/support/shared_files.h"

namespace sinkscope::test {

Engine& engine() {
  static const std::unique_ptr<Engine> one = make_engine();
  return *one;
}

int test_threads() {
  const char* set = std::getenv("SINKSCOPE_TEST_THREADS");
  return set != nullptr ? std::atoi(set) : 1;
}

CaptureRequest request_for(const std::vector<int>& ids) {
  CaptureRequest request;
  RunInput run;
  run.token_ids = ids;
  run.token_text.resize(ids.size());
  request.runs.push_back(run);
  request.device = "cpu";
  request.threads = test_threads();
  return request;
}

void add_twin(CaptureRequest& request, const std::string& what_if) {
  RunInput twin = request.runs.front();
  twin.edit_of = 0;
  twin.what_if = what_if;
  request.runs.push_back(twin);
}

std::string capture(const ModelFiles& model, const CaptureRequest& request) {
  const std::string path = scratch_folder() + "/run.h5";
  const CaptureLayout layout = plan_capture(model, request);
  const auto writer = CaptureWriter::create(path, layout, CaptureWriter::Existing::refuse);
  Progress progress;
  if (!engine().capture(model, request, *writer, {std::stop_token(), progress}))
    throw std::runtime_error("canceled without being asked to");
  writer->finish();
  return path;
}

namespace {

bool same_values(const H5Reference& a, const H5Reference& b, const std::string& dataset) {
  if (a.dims(dataset) != b.dims(dataset)) return false;
  const std::vector<double> x = a.doubles(dataset), y = b.doubles(dataset);
  if (x.size() != y.size()) return false;
  return x.empty() || std::memcmp(x.data(), y.data(), x.size() * sizeof(double)) == 0;
}

std::string compare_group(const H5Reference& a, const H5Reference& b, const std::string& group) {
  for (const std::string& name : a.children(group)) {
    const std::string object = group + "/" + name;
    if (name == "provenance" || name == "model" || name == "token_text" || name == "text" ||
        name == "sites" || name == "tokenizer" || name == "whatif")
      continue;
    if (!b.has(object)) return object;
    std::vector<std::string> inside;
    try {
      inside = a.children(object);
    } catch (const std::runtime_error&) {
      if (!same_values(a, b, object)) return object;
      continue;
    }
    if (std::string found = compare_group(a, b, object); !found.empty()) return found;
  }
  return "";
}

}  // namespace

std::string first_difference(const std::string& a, const std::string& b, const std::string& run) {
  return compare_group(H5Reference(a), H5Reference(b), run);
}

}  // namespace sinkscope::test
