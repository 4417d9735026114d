// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/absorb_tensors.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "capture/checkpoint/absorb_parts.h"
#include "capture/checkpoint/family.h"
#include "capture/checkpoint/hf_names.h"

namespace sinkscope {
namespace {

Role pre_role(Role norm) {
  return norm == Role::ln1 ? Role::ln1_pre : norm == Role::ln2 ? Role::ln2_pre : Role::ln_final_pre;
}

bool is_pre_role(Role role) {
  return role == Role::ln1_pre || role == Role::ln2_pre || role == Role::ln_final_pre;
}

// A tensor of the model on its way into the new file.
struct Source {
  const ModelFiles* model;
  const Absorption* absorption;
  Role role;
  int layer;

  AbsorbPart part() const { return absorb_part(*model, role, layer); }

  // Dimension i of the absorption in rows [begin, end) of `cols` values.
  void transfer(std::size_t i, std::int64_t begin, std::int64_t end, std::int64_t cols,
                float* out) const {
    const std::int64_t j = absorption->dims[i];
    const auto k = static_cast<float>(absorption->factors[i]);
    const AbsorbPart what = part();
    for (std::int64_t row = begin; row < end; ++row) {
      float* values = out + (row - begin) * cols;
      switch (what) {
        case AbsorbPart::none:
          return;
        case AbsorbPart::columns_divided:
        case AbsorbPart::values_divided:
          values[j] /= k;
          break;
        case AbsorbPart::columns_times:
        case AbsorbPart::values_times:
          values[j] *= k;
          break;
        case AbsorbPart::rows_divided:
          if (row % model->spec().d_model == j)
            std::for_each(values, values + cols, [k](float& w) { w /= k; });
          break;
      }
    }
  }

  void fill_weights(std::int64_t begin, std::int64_t end, float* out) const {
    model->read_rows(role, layer, begin, end, out);
    for (std::size_t i = 0; i < absorption->dims.size(); ++i)
      transfer(i, begin, end, model->cols(role, layer), out);
  }

  void fill_gain(float* out) const {
    const NormGain gain = model->norm_gain(role, layer);
    std::copy(gain.effective.begin(), gain.effective.end(), out);
    for (std::size_t i = 0; i < absorption->dims.size(); ++i)
      transfer(i, 0, 1, static_cast<std::int64_t>(gain.effective.size()), out);
  }

  void fill_pre_gain(float* out) const {
    std::fill_n(out, model->spec().d_model, 1.0f);
    if (model->has(role, layer)) model->read_rows(role, layer, 0, 1, out);
    for (std::size_t i = 0; i < absorption->dims.size(); ++i)
      out[absorption->dims[i]] *= static_cast<float>(absorption->factors[i]);
  }
};

class Maker {
 public:
  Maker(const ModelFiles& model, const Absorption& absorption,
        const std::function<std::string(Role, int)>& name_of)
      : model_(model), absorption_(absorption), name_of_(name_of) {}

  std::vector<AbsorbedTensor> make() {
    const ArchSpec& spec = model_.spec();
    add(Role::embed, kNoLayer);
    for (int layer = 0; layer < spec.n_layers; ++layer)
      for (Role role : layer_roles(spec, layer)) add(role, layer);
    for (Role role : outer_roles(spec)) add(role, kNoLayer);
    if (spec.has_head && !spec.tied) add(Role::unembed, kNoLayer);
    return std::move(made_);
  }

 private:
  void add(Role role, int layer) {
    // Divisors of frequencies are written as part of the positions.
    if (is_pre_role(role) || role == Role::rope_divisors || !model_.has(role, layer)) return;
    const Source source{&model_, &absorption_, role, layer};
    const std::vector<std::int64_t> shape = packed(Packing::own, role, model_.spec(), layer).shape;
    if (is_norm_gain(role))
      append(source, shape, [source](auto, auto, float* out) { source.fill_gain(out); });
    else if (shape.size() < 2)
      append(source, shape, [source](auto, auto, float* out) { source.fill_weights(0, 1, out); });
    else  // experts [E, out, in] stand one below the other as a role
      append(source, shape,
             [source, rows = model_.rows(role, layer) / shape.front()](
                 std::int64_t begin, std::int64_t end, float* out) {
               source.fill_weights(begin * rows, end * rows, out);
             });
    if (role != Role::ln1 && role != Role::ln2 && role != Role::ln_final) return;
    const Source pre{&model_, &absorption_, pre_role(role), layer};
    append(pre, {model_.spec().d_model}, [pre](auto, auto, float* out) { pre.fill_pre_gain(out); });
  }

  template <class Fill>
  void append(const Source& source, std::vector<std::int64_t> shape, Fill fill) {
    made_.push_back({source.role,
                     source.layer,
                     {name_of_(source.role, source.layer), std::move(shape), std::move(fill)}});
  }

  const ModelFiles& model_;
  const Absorption& absorption_;
  const std::function<std::string(Role, int)>& name_of_;
  std::vector<AbsorbedTensor> made_;
};

}  // namespace

std::vector<AbsorbedTensor> absorbed_tensors(
    const ModelFiles& model, const Absorption& absorption,
    const std::function<std::string(Role role, int layer)>& name_of) {
  return Maker(model, absorption, name_of).make();
}

}  // namespace sinkscope
