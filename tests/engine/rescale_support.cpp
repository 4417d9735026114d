// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/engine/rescale_support.h"

#include <algorithm>

#include "tests/engine/captured.h"

namespace sinkscope::test {

WeightRows weights_of(const ModelFiles& model) {
  return [&model](const std::string& which, int layer,
                  const std::function<void(const MatrixF&)>& visit) {
    const std::vector<Role> roles =
        which == "ln1"   ? std::vector{Role::q, Role::k, Role::v, Role::q_a, Role::kv_a}
        : which == "ln2" ? std::vector{Role::gate, Role::up}
        : which == "o"   ? std::vector{Role::o}
                         : std::vector{Role::unembed};
    for (Role role : roles) {
      if (!model.has(role, layer)) continue;
      if (which != "o" && model.cols(role, layer) != model.spec().d_model) continue;
      MatrixF rows(model.rows(role, layer), model.cols(role, layer));
      model.read_rows(role, layer, 0, rows.rows(), rows.data());
      visit(rows);
    }
  };
}

std::unique_ptr<CaptureReader> record_all(const ModelFiles& model, const std::vector<int>& ids,
                                          const std::string& what_if) {
  CaptureRequest request = request_for(ids);
  request.record.all = request.record.maps = true;
  if (!what_if.empty()) add_twin(request, what_if);
  return CaptureReader::open(capture(model, request));
}

std::vector<double> tap(const CaptureReader& reader, const std::string& run,
                        const std::string& hook, int layer) {
  const std::string group = "taps/" + hook;
  const std::vector<int> layers = reader.read_i32(run, group + "/layers");
  const auto row = std::find(layers.begin(), layers.end(), layer) - layers.begin();
  std::vector<std::int64_t> count = reader.dims(run, group + "/values"), start(count.size(), 0);
  start[0] = row;
  count[0] = 1;
  return reader.read_f64(run, group + "/values", start, count);
}

}  // namespace sinkscope::test
