// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/capture_layout.h"
#include "core/h5/file.h"

namespace sinkscope {

// The datasets of a run's group. Runs of equal length share one.
struct RunSpecs {
  std::vector<DatasetSpec> list;
  std::unordered_map<std::string, int> index;  // path → place in list
};

// Where the values of one run go.
struct RunTable {
  std::shared_ptr<const RunSpecs> specs;
  std::vector<std::int64_t> offsets;  // first byte in the file, one a dataset; -1 = chunked or text
};

// Makes every group, attribute and dataset of the layout in an empty file and writes what is known
// already: inputs, texts, lists of layers, norm gains; not the provenance. Error{io}, and
// Error{invalid_argument} for a layout that contradicts itself.
std::vector<RunTable> create_structure(const h5::File& file, const CaptureLayout& layout);

// Where the values of the layout's runs go in a file that create_structure() made. Throws
// Error{corrupt} for a dataset that is not there, or of another shape or type.
std::vector<RunTable> find_structure(const h5::File& file, const CaptureLayout& layout);

// Fills the provenance datasets of such a file.
void write_provenance(const h5::File& file, const CaptureLayout& layout);

}  // namespace sinkscope
