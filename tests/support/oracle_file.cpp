// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/oracle_file.h"

#include <hdf5.h>

#include <functional>
#include <numeric>
#include <stdexcept>

namespace sinkscope::test {
namespace {

struct Handle {
  hid_t id;
  herr_t (*close)(hid_t);
  Handle(hid_t opened, herr_t (*closer)(hid_t), const std::string& what)
      : id(opened), close(closer) {
    if (id < 0) throw std::runtime_error("oracle: cannot open " + what);
  }
  ~Handle() { close(id); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
};

std::vector<std::int64_t> extent(hid_t space) {
  std::vector<hsize_t> dims(static_cast<std::size_t>(H5Sget_simple_extent_ndims(space)));
  H5Sget_simple_extent_dims(space, dims.data(), nullptr);
  return {dims.begin(), dims.end()};
}

std::size_t n_elements(const std::vector<std::int64_t>& dims) {
  return static_cast<std::size_t>(
      std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>()));
}

template <class T>
std::vector<T> read_as(hid_t file, const std::string& name, hid_t type) {
  const Handle set(H5Dopen2(file, name.c_str(), H5P_DEFAULT), H5Dclose, name);
  const Handle space(H5Dget_space(set.id), H5Sclose, name);
  std::vector<T> values(n_elements(extent(space.id)));
  if (H5Dread(set.id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) < 0) {
    throw std::runtime_error("oracle: cannot read " + name);
  }
  return values;
}

}  // namespace

OracleFile::OracleFile(const std::string& path)
    : file_(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT)) {
  if (file_ < 0) throw std::runtime_error("oracle: cannot open " + path);
}

OracleFile::~OracleFile() { H5Fclose(file_); }

std::vector<std::int64_t> OracleFile::dims(const std::string& dataset) const {
  const Handle set(H5Dopen2(file_, dataset.c_str(), H5P_DEFAULT), H5Dclose, dataset);
  const Handle space(H5Dget_space(set.id), H5Sclose, dataset);
  return extent(space.id);
}

std::vector<double> OracleFile::read(const std::string& dataset) const {
  return read_as<double>(file_, dataset, H5T_NATIVE_DOUBLE);
}

std::vector<float> OracleFile::read_f32(const std::string& dataset) const {
  return read_as<float>(file_, dataset, H5T_NATIVE_FLOAT);
}

std::vector<int> OracleFile::read_i32(const std::string& dataset) const {
  return read_as<int>(file_, dataset, H5T_NATIVE_INT);
}

std::vector<double> OracleFile::attribute(const std::string& name) const {
  const Handle attribute(H5Aopen(file_, name.c_str(), H5P_DEFAULT), H5Aclose, name);
  const Handle space(H5Aget_space(attribute.id), H5Sclose, name);
  std::vector<double> values(n_elements(extent(space.id)));
  if (H5Aread(attribute.id, H5T_NATIVE_DOUBLE, values.data()) < 0) {
    throw std::runtime_error("oracle: cannot read attribute " + name);
  }
  return values;
}

}  // namespace sinkscope::test
