// SPDX-License-Identifier: Apache-2.0
#include "transfer/copy_chunks.hpp"

#include <algorithm>

#include "core/sizes.hpp"
#include "core/stream_copy.hpp"
#include "os/virtual_memory.hpp"

namespace isthmus {
namespace {

// Copies of up to this size bypass the caches, which preserves the cached data and avoids reading
// each line before it is written. Larger copies go through the caches, because the device reads
// pinned memory faster from there. To the device (H100): 1 GiB at 48 GB/s through the caches
// against 44 GB/s past them, but 64 MiB at 41 GB/s against 44 GB/s.
constexpr std::size_t k_max_uncached_bytes = std::size_t{128} << 20;
// A memory fence follows each row that bypasses the caches. For shorter rows the fence costs too
// much.
constexpr std::size_t k_min_uncached_row_bytes = std::size_t{4} << 10;

bool bypasses_caches(const Copy2dShape& shape) noexcept {
  return shape.width >= k_min_uncached_row_bytes &&
         shape.width * shape.height <= k_max_uncached_bytes;
}

void stream_rows(const Copy2dShape& rows) noexcept {
  if (rows.destination_pitch == rows.width && rows.source_pitch == rows.width) {
    stream_copy(rows.destination, rows.source, rows.width * rows.height);
    return;
  }
  for (std::size_t row = 0; row < rows.height; ++row) {
    stream_copy(advance(rows.destination, row * rows.destination_pitch),
                advance(rows.source, row * rows.source_pitch), rows.width);
  }
}

class RowChunks final : public CopyChunks {
 public:
  RowChunks(const Copy2dShape& shape, std::size_t max_bytes)
      : shape_{shape},
        width_{std::min(shape.width, max_bytes)},
        rows_{std::min(max_bytes / width_, shape.height)},
        bypasses_caches_{bypasses_caches(shape)} {}

  [[nodiscard]] std::size_t count() const noexcept override {
    return columns() * ((shape_.height + rows_ - 1) / rows_);
  }
  [[nodiscard]] std::size_t bytes() const noexcept override { return width_ * rows_; }
  void gather(std::size_t index, std::byte* packed) const noexcept override {
    copy_on_host(reading(index, packed));
  }
  void scatter(std::size_t index, const std::byte* packed) const noexcept override {
    copy_on_host(writing(index, packed));
  }
  void fault_in(std::size_t index) const noexcept override {
    const auto chunk = at(index);
    os::populate_pages(chunk.destination,
                       chunk.destination_pitch * (chunk.height - 1) + chunk.width);
  }
  [[nodiscard]] Submitted read(Queue& queue, std::size_t index, std::byte* packed,
                               WaitList after) const override {
    return queue.copy_2d(reading(index, packed), after);
  }
  [[nodiscard]] Submitted write(Queue& queue, std::size_t index, const std::byte* packed,
                                WaitList after) const override {
    return queue.copy_2d(writing(index, packed), after);
  }

 private:
  [[nodiscard]] Copy2dShape at(std::size_t index) const noexcept {
    const auto row = index / columns() * rows_;
    const auto begin = index % columns() * width_;
    return {advance(shape_.destination, row * shape_.destination_pitch + begin),
            shape_.destination_pitch,
            advance(shape_.source, row * shape_.source_pitch + begin),
            shape_.source_pitch,
            std::min(width_, shape_.width - begin),
            std::min(rows_, shape_.height - row)};
  }
  [[nodiscard]] Copy2dShape reading(std::size_t index, std::byte* packed) const noexcept {
    auto shape = at(index);
    shape.destination = packed;
    shape.destination_pitch = shape.width;
    return shape;
  }
  [[nodiscard]] Copy2dShape writing(std::size_t index, const std::byte* packed) const noexcept {
    auto shape = at(index);
    shape.source = packed;
    shape.source_pitch = shape.width;
    return shape;
  }
  void copy_on_host(const Copy2dShape& rows) const noexcept {
    bypasses_caches_ ? stream_rows(rows) : copy_rows(rows);
  }
  [[nodiscard]] std::size_t columns() const noexcept {
    return (shape_.width + width_ - 1) / width_;
  }

  Copy2dShape shape_;
  std::size_t width_;
  std::size_t rows_;  // per chunk; 1 if a row spans several chunks
  bool bypasses_caches_;
};

constexpr std::size_t k_word = 16;

class RangeChunks final : public CopyChunks {
 public:
  RangeChunks(const RangedCopy& copy, Side device_side, std::size_t max_bytes)
      : destination_{copy.destination}, source_{copy.source}, device_side_{device_side} {
    to_packed_.reserve(copy.ranges.size());
    from_packed_.reserve(copy.ranges.size());
    begin_chunk();
    for (auto remaining : copy.ranges) {
      while (remaining.nbytes != 0) {
        append_to_chunk(remaining, max_bytes);
      }
    }
    begin_chunk();
  }

  [[nodiscard]] std::size_t count() const noexcept override { return begins_.size() - 1; }
  [[nodiscard]] std::size_t bytes() const noexcept override { return largest_; }
  void gather(std::size_t index, std::byte* packed) const noexcept override {
    copy_ranges(reading(index, packed));
  }
  void scatter(std::size_t index, const std::byte* packed) const noexcept override {
    copy_ranges(writing(index, packed));
  }
  [[nodiscard]] Submitted read(Queue& queue, std::size_t index, std::byte* packed,
                               WaitList after) const override {
    return queue.copy_ranges(reading(index, packed), after);
  }
  [[nodiscard]] Submitted write(Queue& queue, std::size_t index, const std::byte* packed,
                                WaitList after) const override {
    return queue.copy_ranges(writing(index, packed), after);
  }

 private:
  void begin_chunk() {
    begins_.push_back(to_packed_.size());
    packed_ = 0;
  }
  // Moves the front of `remaining` to the current chunk, or begins a new chunk if the current one
  // is full.
  void append_to_chunk(CopyRange& remaining, std::size_t max_bytes) {
    const auto gap = (device_address(remaining) - packed_) % k_word;
    if (packed_ + gap >= max_bytes) {
      begin_chunk();
      return;
    }
    const auto begin = packed_ + gap;
    const auto nbytes = std::min(remaining.nbytes, max_bytes - begin);
    to_packed_.push_back({begin, remaining.source_offset, nbytes});
    from_packed_.push_back({remaining.destination_offset, begin, nbytes});
    packed_ = begin + nbytes;
    largest_ = std::max(largest_, packed_);
    remaining = {remaining.destination_offset + nbytes, remaining.source_offset + nbytes,
                 remaining.nbytes - nbytes};
  }
  [[nodiscard]] std::uintptr_t device_address(const CopyRange& range) const noexcept {
    return device_side_ == Side::source ? address(source_) + range.source_offset
                                        : address(destination_) + range.destination_offset;
  }
  [[nodiscard]] std::span<const CopyRange> ranges_of_chunk(const std::vector<CopyRange>& all,
                                                           std::size_t index) const noexcept {
    return std::span{all}.subspan(begins_[index], begins_[index + 1] - begins_[index]);
  }
  [[nodiscard]] RangedCopy reading(std::size_t index, std::byte* packed) const noexcept {
    return {packed, source_, ranges_of_chunk(to_packed_, index)};
  }
  [[nodiscard]] RangedCopy writing(std::size_t index, const std::byte* packed) const noexcept {
    return {destination_, packed, ranges_of_chunk(from_packed_, index)};
  }

  void* destination_;
  const void* source_;
  Side device_side_;
  std::vector<CopyRange> to_packed_;
  std::vector<CopyRange> from_packed_;
  std::vector<std::size_t> begins_;  // first range of each chunk, then the number of ranges
  std::size_t packed_ = 0;           // size of the current chunk so far
  std::size_t largest_ = 0;
};

}  // namespace

std::unique_ptr<const CopyChunks> cut_rows(const Copy2dShape& rows, std::size_t max_bytes) {
  return std::make_unique<RowChunks>(rows, max_bytes);
}

std::unique_ptr<const CopyChunks> cut_ranges(const RangedCopy& copy, Side device_side,
                                             std::size_t max_bytes) {
  return std::make_unique<RangeChunks>(copy, device_side, max_bytes);
}

}  // namespace isthmus
