// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which parts of a reservation contain chunks, and which parts operations use.

#include <cstddef>
#include <map>
#include <mutex>
#include <vector>

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

  struct Part {
    std::size_t offset = 0;
    std::size_t nbytes = 0;
    friend bool operator==(const Part&, const Part&) = default;
  };
  // The adjacent chunks around an offset, as one range; of size 0 if no chunk is there.
  [[nodiscard]] Part contiguous_range_at(std::size_t offset) const noexcept;

  void begin_use(std::size_t offset, std::size_t nbytes);
  void end_use(std::size_t offset, std::size_t nbytes) noexcept;
  [[nodiscard]] bool in_use(std::size_t offset, std::size_t nbytes) const noexcept;

 private:
  mutable std::mutex lock_;
  std::map<std::size_t, std::size_t> chunks_;  // size by offset
  std::vector<Part> uses_;
};

}  // namespace isthmus::sim
