// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/figure/figure_python.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "core/figure/figure_kinds.h"

namespace sinkscope {
namespace {

// A Python string literal.
std::string literal(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (c == '\n') {
      quoted += "\\n";
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

std::pair<std::string, std::string> file_and_run(const std::string& input, const std::string& run) {
  const std::size_t at = input.rfind("::");
  if (at == std::string::npos) return {input, run.empty() ? "run0" : run};
  return {input.substr(0, at), input.substr(at + 2)};
}

std::string number_or_none(const std::optional<int>& number) {
  return number ? std::to_string(*number) : "None";
}

// What both the figure and this script do: the recorded map of a head where there is one, for an
// average of many only while they fit into 256 MiB, else the exact first tokens.
constexpr const char* kAttention = R"(
def attention(run, layer, head, source="automatic"):
    """[query, key] of one head."""
    if source in ("automatic", "pattern") and "attention/pattern" in run:
        layers, heads = list(run["attention/pattern_layers"]), list(run["attention/pattern_heads"])
        if layer in layers and head in heads:
            return run["attention/pattern"][layers.index(layer), heads.index(head)]
    name = "attention/thumbnail" if source == "thumbnail" else "attention/window"
    return run[name][list(run["attention/layers"]).index(layer), head]


def combined(run, layer, head, source, largest):
    """[query, key] over all layers, all heads, or one of them."""
    layers = list(run["attention/layers"]) if layer is None else [layer]
    heads = range(run["attention/key_mass"].shape[1]) if head is None else [head]
    if source == "automatic" and "attention/pattern" in run:
        T = run["attention/pattern"].shape[-1]
        if len(layers) * len(heads) > 1 and len(layers) * len(heads) * T * T * 4 > 256 << 20:
            source = "window"
    image = None
    for n in layers:
        for h in heads:
            one = attention(run, n, h, source).astype(np.float64)
            image = one if image is None else np.maximum(image, one) if largest else image + one
    return image if largest else image / (len(layers) * len(heads))

)";

std::string attention_reading(const FigureRequest& request, bool is_one) {
  std::string read =
      is_one ? fmt::format("    image = attention(run, {}, {}, {})\n", request.layer.value_or(0),
                           request.head.value_or(0), literal(request.source))
             : fmt::format("    image = combined(run, layer, head, {}, {})\n",
                           literal(request.source), request.takes_maximum ? "True" : "False");
  if (request.removes_sink)
    read +=
        "    image = image.copy()\n    image[:, 0] = np.nan              # the sink is taken away\n"
        "    image = image / np.nansum(image, axis=1, keepdims=True)\n";
  return read +
         "    if image.shape[0] == image.shape[1]:\n"
         "        image = np.where(np.tri(len(image), dtype=bool), image, np.nan)\n";
}

std::string residual_reading(const FigureRequest& request) {
  const bool without_first = request.order == "sorted-without-first";
  std::string order = "np.arange(mean.shape[1])";
  if (!request.dim_list.empty())
    order = fmt::format("np.array([{}])", fmt::join(request.dim_list, ", "));
  else if (request.order != "natural")
    order = "np.argsort(-mean.mean(axis=0), kind=\"stable\")";
  const int n_dims =
      request.n_dims.value_or(request.order == "natural" || !request.dim_list.empty() ? 0 : 32);
  const bool is_signed = request.keeps_sign || request.kind == "compare";
  std::string read = fmt::format(
      "    name = \"residual/stream\" if \"residual/stream\" in run else \"residual/window\"\n"
      "    x = run[name]                                      # [site, token, dim]\n"
      "    sites = [s.decode() for s in run[\"residual/sites\"]]\n"
      "    states = [i for i, s in enumerate(sites) if i == 0 or s.endswith(\"resid_post\")]\n"
      "    if layer is not None:\n"
      "        image = {}\n"
      "    else:\n"
      "        image = np.mean([np.abs(x[i]) for i in states], axis=0)\n"
      "    mean = run[\"residual/{}\"][:]             # [state, dim]\n"
      "    image = image.reshape(len(image), -1)              # several streams side by side\n"
      "    image = image[:, {}{}]\n",
      is_signed ? "x[sites.index(f\"blocks.{layer}.hook_resid_post\")]"
                : "np.abs(x[sites.index(f\"blocks.{layer}.hook_resid_post\")])",
      without_first ? "abs_mean_rest" : "abs_mean", order,
      n_dims > 0 ? fmt::format("[:{}]", n_dims) : "");
  if (request.n_tokens) read += fmt::format("    image = image[:{}]\n", *request.n_tokens);
  return read;
}

std::string gains_reading(const FigureRequest& request) {
  const std::size_t slash = request.role.find('/');
  const std::string dataset =
      request.role.substr(0, slash) + (slash == std::string::npos ? "/gain" : "/pre_gain");
  std::string read =
      fmt::format("    gain = run[\"norm/{}\"][:]                    # [layer, dim]\n", dataset);
  if (request.divides_by_median)
    read += "    gain = gain / np.sort(gain, axis=1)[:, (gain.shape[1] - 1) // 2, None]\n";
  return read + (request.kind == "compare" ? "    image = np.abs(gain)\n"
                                           : "    image = np.log10(np.abs(gain))\n");
}

// The overview's further maps, heads × layers, or sums × readers in the order of the file.
std::string mechanism_reading(const std::string& map) {
  if (map == "Sink share")
    return "    image = run[\"attention/null_mass\"][:].mean(axis=2).T  # layers without a sink: "
           "0\n";
  if (map == "State of linear attention")
    return "    image = run[\"taps/linear.hook_state_norm/values\"][:].mean(axis=2).T\n";
  if (map == "Attention gate")
    return "    parts = [run[f\"stats/attn.hook_gate/{p}\"] for p in (\"dim_first\", "
           "\"dim_rest\")]\n"
           "    count = sum(p[\"count\"][:] for p in parts)\n"
           "    mean = sum(p[\"count\"][:] * p[\"mean\"][:] for p in parts) / count\n"
           "    heads = run[\"attention/null_mass\"].shape[1]\n"
           "    image = mean.reshape(len(mean), heads, -1).mean(axis=2).T\n";
  if (map == "Depth weights")
    return "    hooks = [f\"taps/depth_{h}.hook_weights/values\" for h in (\"attn\", \"mlp\", "
           "\"final\")]\n"
           "    weights = [run[h][:].mean(axis=2) for h in hooks]  # [block, mix, sum]\n"
           "    image = np.concatenate([w.reshape(-1, w.shape[-1]) for w in weights]).T\n";
  return "";
}

// Lines that compute `image` [rows, columns], or `lines` {name: values}, of one run.
std::string reading(const FigureRequest& request, const std::string& kind) {
  static const std::map<std::string, std::string> fixed = {
      {"attention-grid",
       "    t = run[\"attention/thumbnail\"][:]                 # [layer, head, query, key], "
       "pooled\n"
       "    A, H, B, _ = t.shape\n"
       "    image = t.transpose(0, 2, 1, 3).reshape(A * B, H * B)\n"},
      {"sink-heads",
       "    mass = run[\"attention/key_mass\"][:, :, 0]         # [layer, head], key 0\n"
       "    image = (mass / run[\"attention/visible\"][:, :1]).T\n"},
      {"key-mass",
       "    score = run[\"attention/key_mass\"][:] / run[\"attention/visible\"][:][:, None]\n"
       "    lines = {\"mean\": score.mean(axis=(0, 1)), \"strongest head\": score.max(axis=(0, "
       "1))}\n"},
      {"logit-gap",
       "    gap = run[\"attention/logit_gap\"][:, :, 8:].mean(axis=2)  # [layer, head]\n"
       "    lines = {f\"head {h}\": gap[:, h] for h in range(gap.shape[1])}\n"},
      {"value-norms",
       "    v = run[\"attention/value_norm\"][:].mean(axis=1)   # [layer, token]\n"
       "    lines = {\"first token\": v[:, 0], \"median of the others\": np.median(v[:, 1:], "
       "axis=1)}\n"},
      {"length-lines",
       "    image = combined(run, None, None, \"automatic\", False)\n"
       "    lines = {\"to token 0\": image[:, 0],\n"
       "             \"1/(t+1)\": 1 / (1 + np.arange(len(image)))}\n"},
      {"depth-lines",
       "    post = run[\"stats/hook_resid_post/token/max_abs\"][:]  # [layer, token]\n"
       "    lines = {\"max |x|\": np.nanmax(post, axis=1)}\n"},
      {"kurtosis",
       "    s = run[\"stats/hook_resid_post/dim_rest\"]         # all tokens but the first\n"
       "    k = s[\"count\"][:] * s[\"m4\"][:] / s[\"m2\"][:] ** 2\n"
       "    lines = {\"mean over dimensions\": np.nanmean(k, axis=1)}\n"},
      {"bound",
       "    s = run[\"stats/ln2.hook_out/token\"]               # [layer, token]\n"
       "    gain = np.abs(run[\"norm/ln2/gain\"][:]).max(axis=1)\n"
       "    lines = {f\"block {n}\": s[\"rms\"][n] / gain[n] for n in range(len(gain))}\n"},
      {"shares",
       "    s = run[\"stats/ln2.hook_out/token\"]               # [layer, token]\n"
       "    lines = {\"alpha, first token\": np.sqrt(1 - s[\"input_r2\"][:, 0]),\n"
       "             \"alpha, others\": np.sqrt(1 - np.median(s[\"input_r2\"][:, 1:], axis=1))}\n"},
  };
  if (kind == "sink-heads")
    if (const std::string mechanism = mechanism_reading(request.score); !mechanism.empty())
      return mechanism;
  if (kind == "residual-sorted") return residual_reading(request);
  if (kind == "norm-gains") return gains_reading(request);
  if (kind == "channel-token")
    return fmt::format(
        "    sites = [s.decode() for s in run[\"residual/sites\"]]\n"
        "    image = "
        "np.abs(run[\"residual/window\"][sites.index(\"blocks.{}.hook_resid_post\")])\n",
        request.layer.value_or(0));
  const auto found = fixed.find(kind);
  return found == fixed.end() ? attention_reading(request, kind == "attention-head")
                              : found->second;
}

bool is_lines(const std::string& read) { return read.find("lines =") != std::string::npos; }

// The table of probes is no capture: its JSON is read by itself.
std::string probes_python(const FigureRequest& request) {
  std::string script = "import json\nimport matplotlib.pyplot as plt\n\ninputs = [";
  for (const std::string& input : request.inputs) script += literal(input) + ", ";
  return script +
         "]\nfigure, axes = plt.subplots(1, len(inputs), squeeze=False)\n"
         "for axis, path in zip(axes[0], inputs):\n"
         "    probes = json.load(open(path))[\"probes\"]\n"
         "    names = [f\"{p['reader']}: {p['mode']} ({p['at']})\" for p in probes]\n"
         "    axis.barh(names, [p[\"delta_loss\"] for p in probes])\n"
         "    axis.set_xlabel(\"loss minus the model's (nats)\")\n"
         "plt.tight_layout()\nplt.show()\n";
}

// (file, run, layer, head) of every input; None is all of them.
std::string input_list(const FigureRequest& request) {
  std::string list = "# (capture, run, layer, head); None = all\ninputs = [\n";
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    const auto [file, run] = file_and_run(request.inputs[i], request.run);
    const auto place = [i](const std::vector<int>& each, const std::optional<int>& one) {
      if (each.empty()) return number_or_none(one);
      return each[i] < 0 ? std::string("None") : std::to_string(each[i]);
    };
    list += fmt::format("    ({}, {}, {}, {}),\n", literal(file), literal(run),
                        place(request.layers, request.layer), place(request.heads, request.head));
  }
  return list + "]\n";
}

std::string limits(const FigureRequest& request) {
  if (!request.range || request.range->mode != RangeMode::fixed) return {};
  return fmt::format(", vmin={}, vmax={}", request.range->lo, request.range->hi);
}

// Draws `image`, of which only a part may be seen, with the numbers of its cells.
std::string drawing(const FigureRequest& request) {
  std::string lines;
  std::string extent;
  if (request.view) {
    const FigureView& v = *request.view;
    lines = fmt::format("    image = image[{}:{}, {}:{}]\n", v.top, v.bottom, v.left, v.right);
    extent = fmt::format(
        ",\n                        extent=({} - 0.5, {} - 0.5 + image.shape[1], "
        "{} - 0.5 + image.shape[0], {} - 0.5)",
        v.left, v.left, v.top, v.top);
  }
  return lines + fmt::format(
                     "    shown = axis.imshow(image, aspect=\"auto\", "
                     "interpolation=\"nearest\"{}{})\n    figure.colorbar(shown, ax=axis)\n",
                     limits(request), extent);
}

// Panels behind those of the inputs: each difference to the first over the part both have.
constexpr const char* kDifferences = R"(for axis, image in zip(axes[0][len(inputs):], images[1:]):
    rows, cols = np.minimum(image.shape, images[0].shape)
    difference = image[:rows, :cols] - images[0][:rows, :cols]
    largest = np.nanmax(np.abs(difference))
    shown = axis.imshow(difference, aspect="auto", interpolation="nearest", cmap="RdBu_r",
                        vmin=-largest, vmax=largest)
    figure.colorbar(shown, ax=axis)
    axis.set_title("difference to the first")
)";

}  // namespace

std::string figure_python(const FigureRequest& request) {
  if (request.kind == "probes") return probes_python(request);
  const bool shows_norms = request.preset.ends_with("fig5") || request.preset.ends_with("fig6") ||
                           request.preset.ends_with("fig7");
  const bool is_compare = request.kind == "compare";
  const std::string kind = is_compare              ? request.of
                           : !request.kind.empty() ? request.kind
                           : shows_norms           ? "norm-gains"
                                                   : "residual-sorted";
  const std::string read = reading(request, kind);
  std::string script =
      "import h5py\nimport matplotlib.pyplot as plt\nimport numpy as np\n\n"
      "# The datasets are described in core/FORMAT.md of Sinkscope.\n" +
      input_list(request);
  const bool has_maps = read.find("attention(run") != std::string::npos ||
                        read.find("combined(run") != std::string::npos;
  if (has_maps) script += std::string("\n") + kAttention;
  script += is_compare ? "images = []\n"
                         "figure, axes = plt.subplots(1, 2 * len(inputs) - 1, squeeze=False)\n"
                       : "figure, axes = plt.subplots(1, len(inputs), squeeze=False)\n";
  script +=
      "for axis, (path, name, layer, head) in zip(axes[0], inputs):\n"
      "    run = h5py.File(path)[name]\n" +
      read;
  if (is_lines(read)) {
    script +=
        "    for label, values in lines.items():\n        axis.plot(values, label=label)\n"
        "    axis.legend()\n";
  } else {
    if (is_compare) script += "    images.append(image)\n";
    script += drawing(request);
  }
  script += "    axis.set_title(name)\n";
  if (is_compare) script += kDifferences;
  return script + fmt::format("figure.savefig({})\n", literal(kind + ".pdf"));
}

}  // namespace sinkscope
