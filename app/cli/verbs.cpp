// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/verbs.h"

namespace sinkscope {

const std::vector<Verb>& verbs() {
  static const std::vector<Verb> all = {
      {"view", "FILE|MODEL", "the window", run_view},
      {"info", "MODEL", "architecture, shapes, sizes, tokenizer, warnings", run_info},
      {"norms", "MODEL", "norm gains and starred dimensions, no forward pass", run_norms},
      {"tokenize", "MODEL --text S", "ids and pieces as they would be fed", run_tokenize},
      {"capture", "MODEL … -o RUN.h5", "run the model and record", run_capture},
      {"batch", "MANIFEST", "many captures, unattended", run_batch},
      {"repair", "RUN.h5", "what of an unfinished recording is whole", run_repair},
      {"sinks", "RUN.h5|MODEL", "sinks, massive activations, sorted dimensions, kurtosis",
       run_sinks},
      {"rescale", "RUN.h5 [--model M]", "shares before and after each norm, factors, bounds",
       run_rescale},
      {"probe", "MODEL --dims auto|507", "what each kind of norm does with a dimension", run_probe},
      {"compare", "A.h5 B.h5 …", "differences of captures, number by number; KL of two models",
       run_compare},
      {"whatif", "MODEL --edit E … -o RUN.h5", "run with edits: before, after, KL and loss",
       run_whatif},
      {"absorb", "MODEL -o DIR", "outliers into a gain before each norm, lossless, self-checked",
       run_absorb},
      {"dump", "RUN.h5 HOOK -o F.npy", "one recorded array by its hook name", run_dump},
      {"figure", "KIND INPUT… -o F.pdf", "a figure for a paper: pdf, svg, png, csv", run_figure},
  };
  return all;
}

}  // namespace sinkscope
