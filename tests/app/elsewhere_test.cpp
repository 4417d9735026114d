// SPDX-License-Identifier: GPL-3.0-or-later
// Captures in other people's programs: silx's own parser finds the plots, h5py finds the hooks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/app/cli_run.h"
#include "tests/app/small_capture.h"
#include "tests/support/shared_files.h"

namespace sinkscope {
namespace {

using ::testing::HasSubstr;

// Debian's Python has h5py; silx without the rest of its dependencies is in the project's .venv.
std::string python() {
  const char* set = std::getenv("SINKSCOPE_PYTHON");
  const std::string venv = set != nullptr ? set : SINKSCOPE_SOURCE_DIR "/.venv/bin/python";
  return "PYTHONPATH=\"$('" + venv +
         "' -c 'import sysconfig; print(sysconfig.get_paths()[\"purelib\"])')\" /usr/bin/python3";
}

bool can_import(const std::string& modules) {
  return test::shell(python() + " -c 'import " + modules + "'").code == 0;
}

#define SINKSCOPE_REQUIRE_PYTHON(modules)                                                         \
  if (!can_import(modules)) {                                                                     \
    if (std::getenv("CI") != nullptr) FAIL() << "Python cannot import " modules " (./dev setup)"; \
    GTEST_SKIP() << "needs Python with " modules " (./dev setup)";                                \
  }

// Prints what silx would plot: the default of the file, and every NXdata group that it finds.
constexpr const char* kWalk = R"(import json, sys, h5py
from silx.io import nxdata
def said(data):
    return {"path": data.group.name, "valid": data.is_valid, "issues": data.issues,
            "signal": data.signal_dataset_name, "shape": list(data.signal.shape),
            "axes": data.axes_dataset_names, "scale": data.plot_style.signal_scale_type,
            "auxiliary": data.auxiliary_signals_dataset_names}
with h5py.File(sys.argv[1]) as file:
    found = {}
    def visit(name, thing):
        if isinstance(thing, h5py.Group) and thing.attrs.get("NX_class") == "NXdata":
            found[thing.name] = said(nxdata.NXdata(thing))
    file.visititems(visit)
    chain = [said(nxdata.get_default(file)), said(nxdata.get_default(file["run1"]))]
    print(json.dumps({"default": chain[0], "run1": chain[1], "groups": found}))
)";

nlohmann::json walked(const std::string& folder, const std::string& capture) {
  test::write_file(folder, "walk.py", kWalk);
  const test::CliRun run = test::shell(python() + " walk.py " + capture, folder);
  EXPECT_EQ(run.code, 0) << run.err;
  return nlohmann::json::parse(run.out);
}

TEST(Elsewhere, SilxFollowsTheDefaultsAndFindsEveryPlotValid) {
  SINKSCOPE_REQUIRE_PYTHON("h5py, silx.io.nxdata, packaging");
  const std::string folder = test::scratch_folder();
  const auto seen = walked(folder, test::small_capture(folder));
  const auto& first = seen["default"];
  EXPECT_EQ(first["path"], "/run0/attention");
  EXPECT_EQ(first["signal"], "pattern");
  EXPECT_EQ(first["shape"], (nlohmann::json{2, 3, test::kTokens, test::kTokens}));
  EXPECT_EQ(first["axes"],
            (nlohmann::json{"pattern_layers", "pattern_heads", "pattern_rows", nullptr}));
  EXPECT_EQ(seen["run1"]["path"], "/run1/attention");
  for (const auto& [path, group] : seen["groups"].items()) {
    EXPECT_EQ(group["valid"], true) << path;
    EXPECT_EQ(group["issues"].size(), 0u) << path << group["issues"];
  }
  const auto group = [&](const char* path) {
    EXPECT_TRUE(seen["groups"].contains(path)) << path;
    return seen["groups"].value(path, nlohmann::json::object());
  };
  EXPECT_EQ(group("/run0/residual")["signal"], "abs_mean");
  EXPECT_EQ(group("/run0/residual")["auxiliary"], nlohmann::json{"abs_mean_rest"});
  EXPECT_EQ(group("/run0/residual")["scale"], "log");
  EXPECT_EQ(group("/run0/norm/ln1")["axes"], (nlohmann::json{"layers", nullptr}));
  EXPECT_EQ(group("/run0/stats/hook_resid_post/token")["signal"], "max_abs");
  EXPECT_EQ(group("/run1/taps/attn.hook_z")["shape"],
            (nlohmann::json{2, test::kHeads, test::kTokens + 3, 5}));
  EXPECT_EQ(group("/run0/logits")["signal"], "loss");
}

// The first Python fence of FORMAT.md that defines `array`.
std::string documented_helper() {
  const std::string text = test::read_file(SINKSCOPE_SOURCE_DIR "/core/FORMAT.md");
  const std::string begin = "```python\ndef array(";
  const auto at = text.find(begin);
  EXPECT_NE(at, std::string::npos);
  const auto end = text.find("```", at + begin.size());
  return text.substr(at + 10, end - at - 10);
}

TEST(Elsewhere, TheHelperOfTheFormatPageReadsByHookNames) {
  SINKSCOPE_REQUIRE_PYTHON("h5py, numpy");
  const std::string helper = documented_helper();
  EXPECT_LE(test::n_lines(helper), 10);
  const std::string folder = test::scratch_folder();
  test::small_capture(folder);
  test::write_file(folder, "read.py", "import sys, h5py, numpy\n" + helper + R"(
run = h5py.File("small.h5")["run0"]
for hook in sys.argv[1:]:
    numpy.testing.assert_array_equal(array(run, hook), numpy.load(hook + ".npy"))
)");
  // Blocks 0 and 2 have maps, blocks 1 and 2 the tap: an index into the wrong list shows.
  const std::string hooks =
      "blocks.0.hook_resid_pre blocks.1.hook_resid_pre blocks.1.hook_resid_mid "
      "blocks.2.hook_resid_post blocks.0.attn.hook_pattern blocks.2.attn.hook_pattern "
      "blocks.1.attn.hook_z blocks.2.attn.hook_z";
  const test::CliRun run = test::shell("set -e; for hook in " + hooks +
                                           "; do sinkscope dump small.h5 $hook -o $hook.npy; "
                                           "done; /usr/bin/python3 read.py " +
                                           hooks,
                                       folder);
  EXPECT_EQ(run.code, 0) << run.err;
  const test::CliRun none =
      test::shell("/usr/bin/python3 read.py blocks.1.attn.hook_pattern", folder);
  EXPECT_THAT(none.err, HasSubstr("not in list"));
}

}  // namespace
}  // namespace sinkscope
