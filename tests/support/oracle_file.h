// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sinkscope::test {

// Reference values in an HDF5 file that somebody else wrote, read through HDF5's own C interface
// and not through the code under test. Failures throw std::runtime_error.
class OracleFile {
 public:
  explicit OracleFile(const std::string& path);
  ~OracleFile();
  OracleFile(const OracleFile&) = delete;
  OracleFile& operator=(const OracleFile&) = delete;

  std::vector<std::int64_t> dims(const std::string& dataset) const;
  std::vector<double> read(const std::string& dataset) const;  // whole, row-major
  std::vector<float> read_f32(const std::string& dataset) const;
  std::vector<int> read_i32(const std::string& dataset) const;
  std::vector<double> attribute(const std::string& name) const;  // of the root

 private:
  std::int64_t file_;
};

}  // namespace sinkscope::test
