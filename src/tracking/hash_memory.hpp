// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tracked memory that keeps a 128-bit hash of each 64 KiB chunk as of its last synchronization: for
// kernels that do not report written pages. Every scan reads all of the memory. Thread safety: see
// tracked_memory.
//
// `library` takes memory only where data was in transit while other threads could write the view.
// Without writers, data is copied directly from and to the view, and is hashed only when writers
// are expected.
//
// Chunks that were taken may be found again until they are snapshotted or published.

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
  [[nodiscard]] std::size_t least_part() const noexcept override;
  [[nodiscard]] result<void> take_in_parts(writers who, const part_visitor& each) override;
  [[nodiscard]] result<const std::byte*> snapshot(const range_set& ranges, writers who) override;
  [[nodiscard]] bool snapshot_stays(writers who) const noexcept override {
    return who == writers::none;
  }
  [[nodiscard]] result<void> publish(const range_set& ranges, writers who) override;
  void expect_writers() override;
  [[nodiscard]] result<std::byte*> begin_write(const byte_range& range, bool keeps,
                                               writers who) override;
  [[nodiscard]] result<void> end_write(const byte_range& range, const range_set& written,
                                       const std::byte* begun, writers who) override;
  void refine(const byte_range& /*range*/) override {}
  void coarsen(const range_set& /*still*/) override {}

 private:
  class parts_done;
  using hash = std::array<std::uint64_t, 2>;
  using chunk_copy = std::array<std::byte, k_chunk>;
  // How the last synchronized contents of a chunk are known: by a hash; they are the current
  // contents of the view, not hashed yet; or not at all, so that the chunk counts as written.
  enum class same : std::uint8_t { by_hash, as_it_is, unknown };
  struct chunk {
    same last = same::by_hash;
    bool is_written = false;  // result of the last scan
    // Whether `looked_at` is current: scanned, and not written by the library since.
    bool was_looked_at = false;
    hash last_same{};
    hash looked_at{};
  };

  explicit hash_memory(std::size_t nbytes);
  [[nodiscard]] static hash hash_of(const std::byte* bytes, std::size_t nbytes) noexcept;
  [[nodiscard]] byte_range range_of(std::size_t number) const noexcept;
  // Hash of the chunk's contents at `bytes`, with zeros in place of ranges that are being written
  // in place. `hash_copy` hashes a private copy, which it may change.
  [[nodiscard]] hash hash_chunk(std::size_t number, const std::byte* bytes) const noexcept;
  [[nodiscard]] hash hash_copy(std::size_t number, chunk_copy& copy) const noexcept;
  [[nodiscard]] bool is_written_in_place(const byte_range& range) const noexcept;
  void is_same(std::size_t number, const hash& now) noexcept;
  void look_at(std::size_t number) noexcept;
  // Scan a chunk and record it as synchronized. `look_and_snap` copies it to `library` if it was
  // written, for when there are other writers. `look_and_keep` leaves the data in the view, for
  // when there are none.
  void look_and_snap(std::size_t number) noexcept;
  void look_and_keep(std::size_t number) noexcept;
  void add_found(const byte_range& of, range_set& written) const;
  // Copies the chunk from the view. If it changed since its last synchronization its state becomes
  // unknown.
  void copy_chunk(std::size_t number, chunk_copy& copy) noexcept;
  // For one chunk: copy `part` from the view to `library` (`snap`), and from `library` to the view
  // (`put`).
  void snap(std::size_t number, const byte_range& part) noexcept;
  void put(std::size_t number, const byte_range& part, writers who) noexcept;
  void leave_as_they_are(const byte_range& range) noexcept;
  // `snap` of less than a complete chunk.
  void snap_part(std::size_t number, const byte_range& part) noexcept;
  // Computes the hash that the chunk will have with `part` taken from `library`.
  void learn_part(std::size_t number, const byte_range& part) noexcept;
  void end_in_place(std::size_t number, const byte_range& part) noexcept;

  std::vector<chunk> chunks_;
  bool all_hashed_ = true;            // no chunk is `as_it_is`
  std::vector<byte_range> in_place_;  // begun writes directly to the view
};

}  // namespace isthmus::tracking
