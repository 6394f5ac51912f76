// SPDX-License-Identifier: Apache-2.0
#pragma once
// Records which ranges of a reservation contain chunks, and which ranges operations use.

#include <cstddef>
#include <map>
#include <vector>

#include "core/mutex.hpp"
#include "core/thread_safety.hpp"

namespace isthmus::sim {

// Ranges are specified as offset and size. Thread-safe.
class MappedChunks {
 public:
  // Returns false if there is no memory to record the chunk.
  [[nodiscard]] bool add(std::size_t offset, std::size_t nbytes) noexcept;
  // Returns false if the range is not a whole chunk.
  [[nodiscard]] bool remove(std::size_t offset, std::size_t nbytes) noexcept;
  // Whether chunks cover the whole range.
  [[nodiscard]] bool cover(std::size_t offset, std::size_t nbytes) const noexcept;
  [[nodiscard]] std::size_t total_bytes() const noexcept;

  struct Range {
    std::size_t offset = 0;
    std::size_t nbytes = 0;
    friend bool operator==(const Range&, const Range&) = default;
  };
  // Returns the range of adjacent chunks that contains an offset. Its size is 0 if no chunk
  // contains the offset.
  [[nodiscard]] Range contiguous_range_at(std::size_t offset) const noexcept;

  void begin_use(std::size_t offset, std::size_t nbytes);
  void end_use(std::size_t offset, std::size_t nbytes) noexcept;
  [[nodiscard]] bool in_use(std::size_t offset, std::size_t nbytes) const noexcept;

 private:
  mutable Mutex lock_;
  std::map<std::size_t, std::size_t> chunks_ ISTHMUS_GUARDED_BY(lock_);  // size by offset
  std::vector<Range> uses_ ISTHMUS_GUARDED_BY(lock_);
};

}  // namespace isthmus::sim
