// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace sinkscope {

// Hands out float buffers that come back when the last owner lets go: the memory of a map tile is
// used again for the next one instead of being asked from the system. Thread-safe.
class BufferPool {
 public:
  // At least n floats, contents undefined.
  std::shared_ptr<float> take(std::size_t n) {
    Buffer buffer;
    {
      const std::lock_guard lock(shelf_->mutex);
      for (auto it = shelf_->free.begin(); it != shelf_->free.end(); ++it) {
        if (it->size < n) continue;
        buffer = std::move(*it);
        shelf_->free.erase(it);
        break;
      }
    }
    if (buffer.values == nullptr) {
      buffer.values.reset(new float[n]);
      buffer.size = n;
    }
    float* values = buffer.values.get();
    auto home = std::make_shared<Buffer>(std::move(buffer));
    return {values, [home, shelf = shelf_](float*) {
              const std::lock_guard lock(shelf->mutex);
              shelf->free.push_back(std::move(*home));
            }};
  }

 private:
  struct Buffer {
    std::unique_ptr<float[]> values;
    std::size_t size = 0;
  };
  struct Shelf {
    std::mutex mutex;
    std::vector<Buffer> free;
  };
  std::shared_ptr<Shelf> shelf_ = std::make_shared<Shelf>();
};

}  // namespace sinkscope
