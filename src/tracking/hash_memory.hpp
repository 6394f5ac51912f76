// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tracked memory with a 128-bit hash of each 64 KiB chunk as of its last synchronization: for
// kernels that do not report written pages. Every scan reads all of the memory. Thread safety: see
// tracked_memory.hpp.
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

class HashMemory final : public TrackedMemory {
 public:
  static constexpr std::size_t k_chunk = std::size_t{64} << 10;

  [[nodiscard]] static Result<std::unique_ptr<TrackedMemory>> create(const Request& request);
  ~HashMemory() override;

  [[nodiscard]] std::size_t granule() const noexcept override { return k_chunk; }
  void take(RangeSet& written) override;
  [[nodiscard]] std::size_t min_part_bytes() const noexcept override;
  [[nodiscard]] Result<void> take_in_parts(Writers writers, const PartVisitor& visitor) override;
  [[nodiscard]] Result<const std::byte*> snapshot(const RangeSet& ranges, Writers writers) override;
  [[nodiscard]] bool is_snapshot_stable(Writers writers) const noexcept override {
    return writers == Writers::none;
  }
  [[nodiscard]] Result<void> publish(const RangeSet& ranges, Writers writers) override;
  void expect_writers() override;
  [[nodiscard]] Result<std::byte*> begin_write(const ByteRange& range, bool keep_contents,
                                               Writers writers) override;
  [[nodiscard]] Result<void> end_write(const ByteRange& range, const RangeSet& written,
                                       const std::byte* begin_address, Writers writers) override;
  void refine(const ByteRange& /*range*/) override {}
  void coarsen(const RangeSet& /*still*/) override {}

 private:
  class PartsDone;
  using Hash = std::array<std::uint64_t, 2>;
  using ChunkCopy = std::array<std::byte, k_chunk>;
  // How the last synchronized contents of a chunk are known: by a hash; they are the current
  // contents of the view, not hashed yet; or not at all, so that the chunk counts as written.
  enum class Same : std::uint8_t { by_hash, unhashed, unknown };
  struct Chunk {
    Same last = Same::by_hash;
    bool is_written = false;  // result of the last scan
    // Whether `scanned_hash` is current: scanned, and not written by the library since.
    bool is_scanned = false;
    Hash synchronized_hash{};
    Hash scanned_hash{};
  };

  explicit HashMemory(std::size_t nbytes);
  [[nodiscard]] static Hash hash_of(const std::byte* bytes, std::size_t nbytes) noexcept;
  [[nodiscard]] ByteRange range_of(std::size_t number) const noexcept;
  // Hash of the chunk's contents at `bytes`. Ranges of open `host_write` blocks that write to the
  // view itself are hashed as zeros. `hash_copy` hashes a private copy, which it may change.
  [[nodiscard]] Hash hash_chunk(std::size_t number, const std::byte* bytes) const noexcept;
  [[nodiscard]] Hash hash_copy(std::size_t number, ChunkCopy& copy) const noexcept;
  [[nodiscard]] bool is_written_in_place(const ByteRange& range) const noexcept;
  void mark_synchronized(std::size_t number, const Hash& hash) noexcept;
  void scan(std::size_t number) noexcept;
  // Scan a chunk and record it as synchronized. `scan_and_snapshot` is for other writers: it copies
  // a written chunk to `library`. `scan_and_keep` is for none: it leaves the data in the view.
  void scan_and_snapshot(std::size_t number) noexcept;
  void scan_and_keep(std::size_t number) noexcept;
  void add_written(const ByteRange& range, RangeSet& written) const;
  // Copies the chunk from the view. If it changed since its last synchronization its state becomes
  // unknown.
  void copy_chunk(std::size_t number, ChunkCopy& copy) noexcept;
  // For one chunk: copy `part` from the view to `library` (`snapshot_chunk`), and from `library` to
  // the view (`publish_chunk`).
  void snapshot_chunk(std::size_t number, const ByteRange& part) noexcept;
  void publish_chunk(std::size_t number, const ByteRange& part, Writers writers) noexcept;
  void mark_unhashed(const ByteRange& range) noexcept;
  // `snapshot_chunk` of less than a complete chunk.
  void snapshot_part(std::size_t number, const ByteRange& part) noexcept;
  // Computes the hash that the chunk will have with `part` copied from `library`.
  void hash_with_part(std::size_t number, const ByteRange& part) noexcept;
  void end_write_in_place(std::size_t number, const ByteRange& part) noexcept;

  std::vector<Chunk> chunks_;
  bool all_hashed_ = true;                  // no chunk is `unhashed`
  std::vector<ByteRange> in_place_writes_;  // begun writes directly to the view
};

}  // namespace isthmus::tracking
