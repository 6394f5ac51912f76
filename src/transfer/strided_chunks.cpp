// SPDX-License-Identifier: Apache-2.0
#include "transfer/strided_chunks.hpp"

#include <algorithm>

#include "core/sizes.hpp"
#include "core/undo.hpp"

namespace isthmus {
namespace {

// Limit of one operation. A backend may list the runs, which then takes 24 MiB.
constexpr std::size_t k_max_runs = std::size_t{1} << 20;

// Returns the part of `copy` with `count` indices of the outermost dimension, from `begin`.
StridedCopy slice(StridedCopy copy, std::size_t begin, std::size_t count) noexcept {
  auto& outer = copy.dimensions[0];
  copy.destination = advance(copy.destination, begin * outer.destination_stride);
  copy.source = advance(copy.source, begin * outer.source_stride);
  outer.count = count;
  return copy;
}

Submitted submit_slices(Queue& queue, const StridedCopy& copy, WaitList after) {
  const auto outer = copy.dimensions[0].count;
  const auto step = std::max<std::size_t>(1, k_max_runs / (copy.runs() / outer));
  Submitted last = Ref<Event>{};
  Undo in_flight{[&] {
    if (last && *last) {
      wait_until_ended(WaitList{&*last, 1});
    }
  }};
  for (std::size_t begin = 0; begin < outer; begin += step) {
    const auto before = begin == 0 ? after : WaitList{&*last, 1};
    auto next = submit_strided(queue, slice(copy, begin, std::min(step, outer - begin)), before);
    ISTHMUS_TRY(next);
    last = std::move(next);
  }
  in_flight.dismiss();
  return last;
}

class StridedChunks final : public CopyChunks {
 public:
  StridedChunks(const StridedCopy& copy, Side packed_as, std::size_t max_bytes)
      : whole_{simplified(copy, packed_as)} {
    if (whole_.width > max_bytes) {
      whole_.append({whole_.width, 1, 1});
      whole_.width = 1;
    }
    block_ = whole_.width;
    cut_ = whole_.rank;
    while (cut_ != 0 && block_ <= max_bytes / whole_.dimensions[cut_ - 1].count) {
      block_ *= whole_.dimensions[--cut_].count;
    }
    if (cut_ != 0) {
      const auto& dimension = whole_.dimensions[cut_ - 1];
      step_ = std::min(max_bytes / block_, dimension.count);
      chunks_ = (dimension.count + step_ - 1) / step_;
    }
  }

  [[nodiscard]] std::size_t count() const noexcept override {
    std::size_t all = chunks_;
    for (std::size_t i = 0; i + 1 < cut_; ++i) {
      all *= whole_.dimensions[i].count;
    }
    return all;
  }
  [[nodiscard]] std::size_t bytes() const noexcept override { return block_ * step_; }
  void gather(std::size_t index, std::byte* packed) const noexcept override {
    copy_strided(simplified(reading(index, packed), Side::destination));
  }
  void scatter(std::size_t index, const std::byte* packed) const noexcept override {
    copy_strided(simplified(writing(index, packed), Side::source));
  }
  [[nodiscard]] Submitted read(Queue& queue, std::size_t index, std::byte* packed,
                               WaitList after) const override {
    return submit_strided(queue, reading(index, packed), after);
  }
  [[nodiscard]] Submitted write(Queue& queue, std::size_t index, const std::byte* packed,
                                WaitList after) const override {
    return submit_strided(queue, writing(index, packed), after);
  }

 private:
  [[nodiscard]] StridedCopy at(std::size_t index) const noexcept {
    auto chunk = whole_;
    if (cut_ == 0) {
      return chunk;
    }
    const auto& dimension = whole_.dimensions[cut_ - 1];
    const auto begin = index % chunks_ * step_;
    move_to(chunk, dimension, begin);
    index /= chunks_;
    for (std::size_t i = cut_ - 1; i-- > 0;) {
      move_to(chunk, whole_.dimensions[i], index % whole_.dimensions[i].count);
      index /= whole_.dimensions[i].count;
    }
    chunk.rank = 0;
    chunk.append({std::min(step_, dimension.count - begin), dimension.destination_stride,
                  dimension.source_stride});
    for (std::size_t i = cut_; i < whole_.rank; ++i) {
      chunk.append(whole_.dimensions[i]);
    }
    return chunk;
  }
  static void move_to(StridedCopy& chunk, const StridedDimension& dimension,
                      std::size_t index) noexcept {
    chunk.destination = advance(chunk.destination, index * dimension.destination_stride);
    chunk.source = advance(chunk.source, index * dimension.source_stride);
  }
  // `reading` returns a chunk with a packed destination, `writing` one with a packed source.
  [[nodiscard]] StridedCopy reading(std::size_t index, std::byte* packed) const noexcept {
    auto chunk = at(index);
    chunk.destination = packed;
    pack(chunk, &StridedDimension::destination_stride);
    return chunk;
  }
  [[nodiscard]] StridedCopy writing(std::size_t index, const std::byte* packed) const noexcept {
    auto chunk = at(index);
    chunk.source = packed;
    pack(chunk, &StridedDimension::source_stride);
    return chunk;
  }
  static void pack(StridedCopy& chunk, std::size_t StridedDimension::*stride) noexcept {
    auto inside = chunk.width;
    for (std::size_t i = chunk.rank; i-- > 0;) {
      chunk.dimensions[i].*stride = inside;
      inside *= chunk.dimensions[i].count;
    }
  }

  StridedCopy whole_;
  std::size_t block_ = 0;   // bytes of the dimensions that every chunk contains completely
  std::size_t cut_ = 0;     // index of the first of these; the dimension before it is divided
  std::size_t step_ = 1;    // indices of the divided dimension per chunk
  std::size_t chunks_ = 1;  // chunks along the divided dimension
};

}  // namespace

Submitted submit_strided(Queue& queue, const StridedCopy& copy, WaitList after) {
  const auto shape = simplified(copy, Side::destination);
  if (shape.rank == 0) {
    return queue.copy(shape.destination, shape.source, shape.width, after);
  }
  if (shape.is_rows()) {
    const auto& rows = shape.dimensions[0];
    return queue.copy_2d({shape.destination, rows.destination_stride, shape.source,
                          rows.source_stride, shape.width, rows.count},
                         after);
  }
  return shape.runs() <= k_max_runs ? queue.copy_strided(shape, after)
                                    : submit_slices(queue, shape, after);
}

std::unique_ptr<const CopyChunks> cut_strided(const StridedCopy& copy, Side packed_as,
                                              std::size_t max_bytes) {
  return std::make_unique<StridedChunks>(copy, packed_as, max_bytes);
}

}  // namespace isthmus
