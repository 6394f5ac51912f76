#pragma once
// Which parts of a reservation have memory, and which of them operations use.

#include <cstddef>
#include <map>
#include <mutex>
#include <vector>

namespace isthmus::sim {

// By offset and bytes. Safe for threads.
class mapped_chunks {
 public:
  // False without memory to note it.
  [[nodiscard]] bool add(std::size_t offset, std::size_t nbytes) noexcept;
  // False if it is no whole chunk.
  [[nodiscard]] bool remove(std::size_t offset, std::size_t nbytes) noexcept;
  // Whether there is memory behind all of it.
  [[nodiscard]] bool cover(std::size_t offset, std::size_t nbytes) const noexcept;
  [[nodiscard]] std::size_t total_bytes() const noexcept;

  struct part {
    std::size_t offset = 0;
    std::size_t nbytes = 0;
    friend bool operator==(const part&, const part&) = default;
  };
  // The chunks around an offset that lie side by side; no bytes where none is.
  [[nodiscard]] part stretch_at(std::size_t offset) const noexcept;

  void begin_use(std::size_t offset, std::size_t nbytes);
  void end_use(std::size_t offset, std::size_t nbytes) noexcept;
  [[nodiscard]] bool in_use(std::size_t offset, std::size_t nbytes) const noexcept;

 private:
  mutable std::mutex lock_;
  std::map<std::size_t, std::size_t> chunks_;  // bytes by offset
  std::vector<part> uses_;
};

}  // namespace isthmus::sim
