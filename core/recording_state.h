// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace sinkscope {

// Where an unfinished recording stands, beside its file: NAME.h5.part.state and, from the save
// before, NAME.h5.part.state.before. Whichever layer the capture file says is whole, the state
// after that layer is in one of the two. Each is written under another name and renamed, and a
// damaged one fails its checksum.
struct RecordingState {
  std::string request;                          // what is recorded and how, JSON text
  int layers_done = 0;                          // blocks that the runs at work have behind them
  int first_run = 0;                            // the first of them; those before it are done
  std::vector<std::vector<std::byte>> streams;  // their residual streams, as they are in memory
  bool is_before = false;                       // from the save before the last
};

using StreamBytes = std::span<const std::byte>;

// `path` is the unfinished file's. Error{io}.
void save_state(const std::string& path, const std::string& request, int layers_done, int first_run,
                const std::vector<StreamBytes>& streams);

// The states that are there and undamaged, the latest first. Error{io}.
std::vector<RecordingState> load_states(const std::string& path);

// Makes the state of the save before the last the only one, when the recording goes on from there:
// the next save would otherwise push it out before its layer is done. Error{io}.
void promote_state(const std::string& path);

// Takes them away, and the journal of a flush; nothing happens where there are none.
void remove_states(const std::string& path);

}  // namespace sinkscope
