// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/h5/handle.h"

namespace sinkscope::h5 {

// Groups, links and attributes. `name` is one path component below `parent` (a file or group).

// Error{io}.
Handle create_group(const Handle& parent, const std::string& name);
// A second name for an existing group of the same file. Both paths are relative. Error{io}.
void hard_link(const Handle& from, const std::string& from_path, const Handle& to,
               const std::string& to_path);

// hard: an object of this very file. other: a soft, external or user-defined link, which may point
// anywhere and is never followed.
enum class LinkKind { absent, hard, other };
LinkKind link_kind(const Handle& parent, const std::string& name);

enum class ObjectKind { group, dataset, other };
// Error{corrupt} when the object cannot be opened.
Handle open_object(const Handle& parent, const std::string& name, const std::string& where);
ObjectKind object_kind(const Handle& object);

// Names of a group's links, sorted. Error{corrupt}.
std::vector<std::string> child_names(const Handle& group, const std::string& where);

// Attributes. Text is a scalar of variable-length UTF-8; it is cut to kMaxAttributeBytes at a
// character boundary. Setting one that exists overwrites its value. Error{io}.
inline constexpr std::int64_t kMaxAttributeBytes = 8000;
void set_attribute(const Handle& object, const std::string& name, const std::string& text);
void set_attribute(const Handle& object, const std::string& name, std::int32_t value);
void set_attribute(const Handle& object, const std::string& name, double value);
void set_attribute(const Handle& object, const std::string& name,
                   const std::vector<std::string>& texts);

// nullopt when there is none. Error{corrupt} when it is no scalar of that class.
std::optional<std::string> text_attribute(const Handle& object, const std::string& name,
                                          const std::string& where);
std::optional<double> number_attribute(const Handle& object, const std::string& name,
                                       const std::string& where);
bool has_attribute(const Handle& object, const std::string& name);

// Text as HDF5's C strings can hold it: U+0000 becomes U+2400.
std::string storable_text(const std::string& text);

// The type of all text in a capture: variable-length UTF-8. Owned by the library, never closed.
RawId text_type();

}  // namespace sinkscope::h5
