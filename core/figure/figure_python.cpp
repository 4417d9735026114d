// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/figure/figure_python.h"

#include <fmt/format.h>

#include <map>

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

// Lines that compute `image` [rows, columns], or `lines` {name: values}, of one run.
std::string reading(const FigureRequest& request, const std::string& kind) {
  const int layer = request.layer.value_or(0), head = request.head.value_or(0);
  const std::string attention = fmt::format(
      "    a = run[\"attention/window\"][:]                    # [layer, head, query, key]\n"
      "    image = a{}\n",
      kind == "attention-head"
          ? fmt::format("[list(run[\"attention/layers\"]).index({}), {}]", layer, head)
          : std::string(request.takes_maximum ? ".max(axis=(0, 1))" : ".mean(axis=(0, 1))"));
  static const std::map<std::string, std::string> fixed = {
      {"attention-grid",
       "    t = run[\"attention/thumbnail\"][:]                 # [layer, head, query, key], "
       "pooled\n"
       "    A, H, B, _ = t.shape\n"
       "    image = t.transpose(0, 2, 1, 3).reshape(A * B, H * B)\n"},
      {"residual-sorted",
       "    x = np.abs(run[\"residual/window\"][:])             # [site, token, dim]\n"
       "    sites = [s.decode() for s in run[\"residual/sites\"]]\n"
       "    states = [i for i, s in enumerate(sites) if i == 0 or s.endswith(\"resid_post\")]\n"
       "    order = np.argsort(-run[\"residual/abs_mean\"][:].mean(axis=0), kind=\"stable\")\n"
       "    image = x[states].mean(axis=0)[:, order[:32]]\n"},
      {"sink-heads",
       "    mass = run[\"attention/key_mass\"][:, :, 0]         # [layer, head], key 0\n"
       "    image = (mass / run[\"attention/visible\"][:, :1]).T\n"},
      {"norm-gains", "    image = np.log10(np.abs(run[\"norm/ln1/gain\"][:]))  # [layer, dim]\n"},
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
       "    a = run[\"attention/window\"][:]\n"
       "    lines = {\"to token 0\": a[..., 0].mean(axis=(0, 1)),\n"
       "             \"1/(t+1)\": 1 / (1 + np.arange(a.shape[2]))}\n"},
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
  if (kind == "channel-token")
    return fmt::format(
        "    sites = [s.decode() for s in run[\"residual/sites\"]]\n"
        "    image = "
        "np.abs(run[\"residual/window\"][sites.index(\"blocks.{}.hook_resid_post\")])\n",
        layer);
  const auto found = fixed.find(kind);
  return found == fixed.end() ? attention : found->second;
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

}  // namespace

std::string figure_python(const FigureRequest& request) {
  if (request.kind == "probes") return probes_python(request);
  const bool shows_norms = request.preset.ends_with("fig5") || request.preset.ends_with("fig6") ||
                           request.preset.ends_with("fig7");
  const std::string kind = request.kind == "compare" ? request.of
                           : !request.kind.empty()   ? request.kind
                           : shows_norms             ? "norm-gains"
                                                     : "residual-sorted";
  std::string script =
      "import h5py\nimport matplotlib.pyplot as plt\nimport numpy as np\n\n"
      "# The datasets are described in core/FORMAT.md of Sinkscope.\ninputs = [\n";
  for (const std::string& input : request.inputs) {
    const auto [file, run] = file_and_run(input, request.run);
    script += fmt::format("    ({}, {}),\n", literal(file), literal(run));
  }
  const std::string read = reading(request, kind);
  script += "]\nfigure, axes = plt.subplots(1, len(inputs), squeeze=False)\n";
  script += "for axis, (path, name) in zip(axes[0], inputs):\n    run = h5py.File(path)[name]\n";
  script += read;
  if (is_lines(read)) {
    script +=
        "    for label, values in lines.items():\n        axis.plot(values, label=label)\n"
        "    axis.legend()\n";
  } else {
    script +=
        "    shown = axis.imshow(image, aspect=\"auto\", interpolation=\"nearest\")\n"
        "    figure.colorbar(shown, ax=axis)\n";
  }
  script += fmt::format("    axis.set_title(name)\nfigure.savefig({})\n", literal(kind + ".pdf"));
  return script;
}

}  // namespace sinkscope
