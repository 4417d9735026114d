// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <string>

namespace sinkscope {

// The folder of a model in the Hugging Face hub cache: for `org/name` (or a name without
// organization) models--org--name, its snapshot that refs/main names. Without refs/main the only
// snapshot; several are Error{not_found} naming them all.
// Null when `name` cannot be a hub name or the cache has no such model.
std::optional<std::string> find_in_hub_cache(const std::string& name);

// The same for a models--org--name folder itself; null when `folder` is not of that form.
std::optional<std::string> snapshot_of(const std::string& folder);

// HF_HUB_CACHE, else HUGGINGFACE_HUB_CACHE (its older name), else HF_HOME/hub, else
// XDG_CACHE_HOME/huggingface/hub, else
// ~/.cache/huggingface/hub; "" when none of them can be told.
std::string hub_cache_folder();

// "org/name" for a path that runs through models--org--name/snapshots, else "".
std::string hub_name_of(const std::string& path);

}  // namespace sinkscope
