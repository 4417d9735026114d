// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sinkscope::test {

// A file of reference values, read through HDF5's C interface and not through the project's own
// reader: what a test compares with must come by another path. Paths begin at the root of the file.
// Throws std::runtime_error naming the object that is not there or not of the type asked for.
class H5Reference {
 public:
  explicit H5Reference(const std::string& path);
  ~H5Reference();
  H5Reference(const H5Reference&) = delete;
  H5Reference& operator=(const H5Reference&) = delete;

  bool has(const std::string& object) const;
  std::vector<std::string> children(const std::string& group) const;  // by name
  std::vector<std::int64_t> dims(const std::string& dataset) const;   // empty for a scalar

  // Whole datasets, row-major, converted by HDF5.
  std::vector<float> floats(const std::string& dataset) const;
  std::vector<double> doubles(const std::string& dataset) const;
  std::vector<std::int64_t> integers(const std::string& dataset) const;
  std::vector<int> ints(const std::string& dataset) const;
  std::vector<std::uint8_t> bytes(const std::string& dataset) const;

  // Attributes of an object ("/" for the file).
  bool has_attribute(const std::string& object, const std::string& name) const;
  std::vector<double> numbers(const std::string& object, const std::string& name) const;
  std::vector<std::string> texts(const std::string& object, const std::string& name) const;
  double number(const std::string& object, const std::string& name) const;
  std::string text(const std::string& object, const std::string& name) const;

 private:
  std::string path_;
  std::int64_t file_ = -1;
};

// Puts a value into the first place of a dataset of integers. Throws std::runtime_error.
void set_first_integer(const std::string& file, const std::string& dataset, int value);

// Replaces a dataset by one of the same shape and type whose values lie in another file: by an
// external link to it, in a raw file of its own, or in a virtual dataset. Throws
// std::runtime_error.
enum class Elsewhere { external_link, raw_file, virtual_dataset };
void move_elsewhere(const std::string& file, const std::string& dataset, Elsewhere how);

}  // namespace sinkscope::test
