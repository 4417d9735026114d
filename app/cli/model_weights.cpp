// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/model_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "capture/checkpoint/checkpoint.h"
#include "capture/checkpoint/model_files.h"
#include "core/error.h"

namespace sinkscope {
namespace {

constexpr std::int64_t kRowBytes = std::int64_t{16} << 20;

std::vector<Role> roles_behind(const ModelFiles& model, const std::string& which) {
  // Whatever reads a norm's output: softmax attention, latents or a delta-net; an MLP or experts.
  if (which == "ln1")
    return {Role::q,           Role::k,       Role::v,        Role::q_a,        Role::kv_a,
            Role::delta_q,     Role::delta_k, Role::delta_v,  Role::delta_gate, Role::delta_beta,
            Role::delta_decay, Role::r,       Role::sink_proj};
  if (which == "ln2")
    return {Role::gate,      Role::up,          Role::router,   Role::expert_gate,
            Role::expert_up, Role::shared_gate, Role::shared_up};
  if (which == "o") {
    if (model.spec().o_rank > 0) return {};  // reads what groups of heads are narrowed to
    return {Role::o};
  }
  return {model.has(Role::unembed, kNoLayer) ? Role::unembed : Role::embed};
}

}  // namespace

WeightRows model_weights(const std::string& path, const OpenOptions& options,
                         const ModelFacts& recorded) {
  const std::shared_ptr<const ModelFiles> model = open_model(path, options);
  const std::string found = fingerprint(model->checkpoint());
  if (found != recorded.fingerprint)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{}: another model than the capture's: expected fingerprint {}, found "
                            "{}",
                            path, recorded.fingerprint, found));
  return model_weights(model);
}

WeightRows model_weights(std::shared_ptr<const ModelFiles> model) {
  return [model = std::move(model)](const std::string& which, int layer,
                                    const std::function<void(const MatrixF& rows)>& visit) {
    for (const Role role : roles_behind(*model, which)) {
      if (!model->has(role, layer)) continue;
      // Keys and values of norms of their own.
      if ((role == Role::k || role == Role::v) && model->spec().n_inputs(layer) > 1) continue;
      // Behind latents q, k and v read those instead of the norm.
      const bool reads_norm = which != "o";
      if (reads_norm && model->cols(role, layer) != model->spec().d_model) continue;
      const std::int64_t n = model->rows(role, layer), width = model->cols(role, layer);
      const std::int64_t step = std::max<std::int64_t>(1, kRowBytes / (4 * width));
      for (std::int64_t begin = 0; begin < n; begin += step) {
        const std::int64_t end = std::min(n, begin + step);
        MatrixF rows(end - begin, width);
        model->read_rows(role, layer, begin, end, rows.data());
        visit(rows);
      }
    }
  };
}

}  // namespace sinkscope
