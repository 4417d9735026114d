// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/h5_reference.h"

#include <hdf5.h>

#include <stdexcept>

namespace sinkscope::test {
namespace {

// An HDF5 id with the function that closes it.
class Handle {
 public:
  Handle(hid_t id, herr_t (*close)(hid_t), const std::string& what) : id_(id), close_(close) {
    if (id < 0) throw std::runtime_error("HDF5: cannot open " + what);
  }
  ~Handle() { close_(id_); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  operator hid_t() const { return id_; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

void check(herr_t result, const std::string& what) {
  if (result < 0) throw std::runtime_error("HDF5: cannot read " + what);
}

std::size_t count(hid_t space) {
  return static_cast<std::size_t>(H5Sget_simple_extent_npoints(space));
}

template <class T>
std::vector<T> read_dataset(hid_t file, const std::string& name, hid_t type) {
  const Handle dataset(H5Dopen2(file, name.c_str(), H5P_DEFAULT), H5Dclose, name);
  const Handle space(H5Dget_space(dataset), H5Sclose, name);
  std::vector<T> values(count(space));
  if (!values.empty())
    check(H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), name);
  return values;
}

// Text of either kind: variable-length pointers or fixed-length fields.
std::vector<std::string> read_texts(hid_t attribute, const std::string& what) {
  const Handle type(H5Aget_type(attribute), H5Tclose, what);
  const Handle space(H5Aget_space(attribute), H5Sclose, what);
  std::vector<std::string> values;
  if (H5Tis_variable_str(type) > 0) {
    std::vector<char*> pointers(count(space));
    check(H5Aread(attribute, type, pointers.data()), what);
    for (const char* pointer : pointers) values.emplace_back(pointer == nullptr ? "" : pointer);
    H5Dvlen_reclaim(type, space, H5P_DEFAULT, pointers.data());
    return values;
  }
  const std::size_t width = H5Tget_size(type);
  std::vector<char> flat(count(space) * width);
  check(H5Aread(attribute, type, flat.data()), what);
  for (std::size_t i = 0; i < count(space); ++i) {
    const std::string field(flat.data() + i * width, width);
    values.push_back(field.substr(0, field.find('\0')));
  }
  return values;
}

}  // namespace

H5Reference::H5Reference(const std::string& path) : path_(path) {
  file_ = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  if (file_ < 0) throw std::runtime_error("HDF5: cannot open " + path);
}

H5Reference::~H5Reference() { H5Fclose(file_); }

bool H5Reference::has(const std::string& object) const {
  // Every step of the path must be there before the next may be asked for.
  for (std::size_t slash = object.find('/', 1);; slash = object.find('/', slash + 1)) {
    if (H5Lexists(file_, object.substr(0, slash).c_str(), H5P_DEFAULT) <= 0) return false;
    if (slash == std::string::npos) return true;
  }
}

std::vector<std::string> H5Reference::children(const std::string& group) const {
  const Handle handle(H5Gopen2(file_, group.c_str(), H5P_DEFAULT), H5Gclose, group);
  std::vector<std::string> names;
  const auto collect = [](hid_t, const char* name, const H5L_info_t*, void* data) -> herr_t {
    static_cast<std::vector<std::string>*>(data)->emplace_back(name);
    return 0;
  };
  check(H5Literate(handle, H5_INDEX_NAME, H5_ITER_INC, nullptr, collect, &names), group);
  return names;
}

std::vector<std::int64_t> H5Reference::dims(const std::string& dataset) const {
  const Handle handle(H5Dopen2(file_, dataset.c_str(), H5P_DEFAULT), H5Dclose, dataset);
  const Handle space(H5Dget_space(handle), H5Sclose, dataset);
  std::vector<hsize_t> sizes(static_cast<std::size_t>(H5Sget_simple_extent_ndims(space)));
  H5Sget_simple_extent_dims(space, sizes.data(), nullptr);
  return {sizes.begin(), sizes.end()};
}

std::vector<float> H5Reference::floats(const std::string& dataset) const {
  return read_dataset<float>(file_, dataset, H5T_NATIVE_FLOAT);
}

std::vector<double> H5Reference::doubles(const std::string& dataset) const {
  return read_dataset<double>(file_, dataset, H5T_NATIVE_DOUBLE);
}

std::vector<std::int64_t> H5Reference::integers(const std::string& dataset) const {
  return read_dataset<std::int64_t>(file_, dataset, H5T_NATIVE_INT64);
}

std::vector<int> H5Reference::ints(const std::string& dataset) const {
  return read_dataset<int>(file_, dataset, H5T_NATIVE_INT);
}

std::vector<std::uint8_t> H5Reference::bytes(const std::string& dataset) const {
  return read_dataset<std::uint8_t>(file_, dataset, H5T_NATIVE_UINT8);
}

bool H5Reference::has_attribute(const std::string& object, const std::string& name) const {
  return H5Aexists_by_name(file_, object.c_str(), name.c_str(), H5P_DEFAULT) > 0;
}

std::vector<double> H5Reference::numbers(const std::string& object, const std::string& name) const {
  const std::string what = object + "@" + name;
  const Handle attribute(
      H5Aopen_by_name(file_, object.c_str(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose,
      what);
  const Handle space(H5Aget_space(attribute), H5Sclose, what);
  std::vector<double> values(count(space));
  check(H5Aread(attribute, H5T_NATIVE_DOUBLE, values.data()), what);
  return values;
}

std::vector<std::string> H5Reference::texts(const std::string& object,
                                            const std::string& name) const {
  const std::string what = object + "@" + name;
  const Handle attribute(
      H5Aopen_by_name(file_, object.c_str(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose,
      what);
  return read_texts(attribute, what);
}

double H5Reference::number(const std::string& object, const std::string& name) const {
  return numbers(object, name).at(0);
}

std::string H5Reference::text(const std::string& object, const std::string& name) const {
  return texts(object, name).at(0);
}

void set_first_integer(const std::string& file, const std::string& dataset, int value) {
  const Handle opened(H5Fopen(file.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose, file);
  const Handle array(H5Dopen2(opened, dataset.c_str(), H5P_DEFAULT), H5Dclose, dataset);
  const Handle space(H5Dget_space(array), H5Sclose, dataset);
  const std::vector<hsize_t> first(static_cast<std::size_t>(H5Sget_simple_extent_ndims(space)), 0);
  const std::vector<hsize_t> one(first.size(), 1);
  check(H5Sselect_hyperslab(space, H5S_SELECT_SET, first.data(), nullptr, one.data(), nullptr),
        dataset);
  const Handle memory(H5Screate_simple(1, one.data(), nullptr), H5Sclose, dataset);
  check(H5Dwrite(array, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, &value), dataset);
}

void move_elsewhere(const std::string& file, const std::string& dataset, Elsewhere how) {
  const std::string other = file + ".other.h5";
  const Handle opened(H5Fopen(file.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose, file);
  const Handle target(H5Fcreate(other.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose,
                      other);
  check(H5Ocopy(opened, dataset.c_str(), target, "values", H5P_DEFAULT, H5P_DEFAULT), dataset);
  const Handle array(H5Dopen2(target, "values", H5P_DEFAULT), H5Dclose, dataset);
  const Handle type(H5Dget_type(array), H5Tclose, dataset),
      space(H5Dget_space(array), H5Sclose, dataset);
  check(H5Ldelete(opened, dataset.c_str(), H5P_DEFAULT), dataset);
  if (how == Elsewhere::external_link) {
    check(H5Lcreate_external(other.c_str(), "values", opened, dataset.c_str(), H5P_DEFAULT,
                             H5P_DEFAULT),
          dataset);
    return;
  }
  const Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, dataset);
  if (how == Elsewhere::raw_file)
    check(H5Pset_external(creation, (file + ".raw").c_str(), 0, H5F_UNLIMITED), dataset);
  else
    check(H5Pset_virtual(creation, space, other.c_str(), "values", space), dataset);
  const Handle made(
      H5Dcreate2(opened, dataset.c_str(), type, space, H5P_DEFAULT, creation, H5P_DEFAULT),
      H5Dclose, dataset);
}

}  // namespace sinkscope::test
