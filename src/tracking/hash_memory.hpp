// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tracked memory for kernels that do not report written pages. Detects writes by a 128-bit hash of
// each 64 KiB chunk as of its last synchronization. Every scan reads the complete memory. Thread
// safety: see tracked_memory.hpp.
//
// Pages of `library` are touched only where data was in transit while other threads could write the
// view. Without writers, data is copied directly from and to the view, and is hashed only when
// writers are expected.
//
// `take` may report written chunks again until `snapshot` or `publish` is called for them.

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/status.hpp"
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
  void coarsen(const RangeSet& /*needed*/) override {}

 private:
  class PartReporter;
  using Hash = std::array<std::uint64_t, 2>;
  using ChunkCopy = std::array<std::byte, k_chunk>;
  // Record of the last synchronized contents of a chunk: their hash (`by_hash`); they are the
  // current contents of the view and not hashed yet (`unhashed`); or none, so that the chunk counts
  // as written (`unknown`).
  enum class SyncState : std::uint8_t { by_hash, unhashed, unknown };
  struct Chunk {
    SyncState sync_state = SyncState::by_hash;
    bool is_written = false;  // result of the last scan
    // Whether the chunk was scanned and the library has not written it since, so that
    // `scanned_hash` is current.
    bool is_scanned = false;
    Hash synchronized_hash{};
    Hash scanned_hash{};
  };

  explicit HashMemory(std::size_t nbytes);
  [[nodiscard]] static Hash hash_of(const std::byte* bytes, std::size_t nbytes) noexcept;
  [[nodiscard]] ByteRange range_of(std::size_t number) const noexcept;
  // Returns the hash of the chunk's contents at `bytes`. Ranges in `in_place_writes_` are hashed as
  // zeros. `hash_copy` hashes a private copy, which it may change.
  [[nodiscard]] Hash hash_chunk(std::size_t number, const std::byte* bytes) const noexcept;
  [[nodiscard]] Hash hash_copy(std::size_t number, ChunkCopy& copy) const noexcept;
  [[nodiscard]] bool is_written_in_place(const ByteRange& range) const noexcept;
  void mark_synchronized(std::size_t number, const Hash& hash) noexcept;
  void scan(std::size_t number) noexcept;
  // Scan a chunk and record it as synchronized. `scan_and_snapshot` is used with concurrent
  // writers: it copies a written chunk to `library`. `scan_in_place` is used without: the data
  // remains in the view only.
  void scan_and_snapshot(std::size_t number) noexcept;
  void scan_in_place(std::size_t number) noexcept;
  void add_written(const ByteRange& range, RangeSet& written) const;
  // Copies the chunk from the view. If the chunk changed since its last synchronization its state
  // becomes `unknown`.
  void copy_chunk(std::size_t number, ChunkCopy& copy) noexcept;
  // For one chunk: copy `part` from the view to `library` (`snapshot_chunk`), and from `library` to
  // the view (`publish_chunk`).
  void snapshot_chunk(std::size_t number, const ByteRange& part) noexcept;
  void publish_chunk(std::size_t number, const ByteRange& part, Writers writers) noexcept;
  void mark_unhashed(const ByteRange& range) noexcept;
  // Does the work of `snapshot_chunk` if `part` is less than the chunk.
  void snapshot_part(std::size_t number, const ByteRange& part) noexcept;
  // Records the hash that the chunk will have once `part` has been copied from `library`.
  void hash_with_part(std::size_t number, const ByteRange& part) noexcept;
  void end_write_in_place(std::size_t number, const ByteRange& part) noexcept;

  std::vector<Chunk> chunks_;
  bool all_hashed_ = true;                  // no chunk is `unhashed`
  std::vector<ByteRange> in_place_writes_;  // writes in progress directly to the view
};

}  // namespace isthmus::tracking
