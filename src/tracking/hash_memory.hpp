#pragma once
// Tracked memory of which only a hash of each 64 KiB is kept as it was last the same: where the
// kernel tells nothing. Every look reads all of it. `library` takes memory only where something was
// on its way; what nobody can write meanwhile goes straight from the view.
//
// What was taken is found again till it is the same.

#include <array>
#include <cstdint>
#include <vector>

#include "tracking/tracked_memory.hpp"

namespace isthmus::tracking {

class hash_memory final : public tracked_memory {
 public:
  static constexpr std::size_t k_chunk = std::size_t{64} << 10;

  [[nodiscard]] static result<std::unique_ptr<tracked_memory>> create(const request& wanted);
  ~hash_memory() override;

  [[nodiscard]] std::size_t granule() const noexcept override { return k_chunk; }
  void take(range_set& written) override;
  [[nodiscard]] result<const std::byte*> snapshot(const range_set& ranges, writers who) override;
  [[nodiscard]] bool snapshot_stays(writers who) const noexcept override {
    return who == writers::none;
  }
  [[nodiscard]] result<void> publish(const range_set& ranges) override;
  void refine(const byte_range& /*range*/, range_set& /*written*/) override {}
  void coarsen(const range_set& /*still*/, range_set& /*written*/) override {}

 private:
  using hash = std::array<std::uint64_t, 2>;
  using chunk_copy = std::array<std::byte, k_chunk>;
  struct chunk {
    hash last_same{};
    bool is_known = true;  // else it counts as written
    bool is_written = false;
    // As the last look found it, unless the library has written there since.
    bool was_looked_at = false;
    hash looked_at{};
  };

  explicit hash_memory(std::size_t nbytes);
  [[nodiscard]] static hash hash_of(const std::byte* bytes, std::size_t nbytes) noexcept;
  [[nodiscard]] static hash hash_unwatched(const std::byte* bytes, std::size_t nbytes) noexcept;
  [[nodiscard]] byte_range range_of(std::size_t number) const noexcept;
  void look_at(std::size_t number) noexcept;
  // What the view has of the chunk, which is known from here on only if that is as it was.
  void copy_chunk(std::size_t number, chunk_copy& copy) noexcept;
  // Of one chunk: the part that is to go, to `library` from the view, and back.
  void snap(std::size_t number, const byte_range& part, writers who) noexcept;
  void put(std::size_t number, const byte_range& part) noexcept;
  // The same of less than all of it.
  void snap_part(std::size_t number, const byte_range& part) noexcept;
  void publish_part(std::size_t number, const byte_range& part) noexcept;

  std::vector<chunk> chunks_;
};

}  // namespace isthmus::tracking
