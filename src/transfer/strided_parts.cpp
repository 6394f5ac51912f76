// SPDX-License-Identifier: Apache-2.0
#include "transfer/strided_parts.hpp"

#include <algorithm>

#include "core/sizes.hpp"
#include "core/undo.hpp"

namespace isthmus {
namespace {

// Limit of one operation, which may list its runs: 24 MiB.
constexpr std::size_t k_most_runs = std::size_t{1} << 20;

// `count` indices of the outermost dimension, from `begin`.
StridedCopy slice(StridedCopy copy, std::size_t begin, std::size_t count) noexcept {
  auto& outer = copy.dimensions[0];
  copy.destination = advance(copy.destination, begin * outer.destination_stride);
  copy.source = advance(copy.source, begin * outer.source_stride);
  outer.count = count;
  return copy;
}

Submitted put_slices(Queue& queue, const StridedCopy& copy, WaitList after) {
  const auto outer = copy.dimensions[0].count;
  const auto step = std::max<std::size_t>(1, k_most_runs / (copy.runs() / outer));
  Submitted last = Ref<Event>{};
  Undo in_flight{[&] {
    if (last && *last) {
      let_end(WaitList{&*last, 1});
    }
  }};
  for (std::size_t begin = 0; begin < outer; begin += step) {
    const auto before = begin == 0 ? after : WaitList{&*last, 1};
    auto next = put_strided(queue, slice(copy, begin, std::min(step, outer - begin)), before);
    ISTHMUS_TRY(next);
    last = std::move(next);
  }
  in_flight.dismiss();
  return last;
}

class StridedParts final : public Parts {
 public:
  StridedParts(const StridedCopy& copy, Side packed_as, std::size_t most_bytes)
      : whole_{simplest(copy, packed_as)} {
    if (whole_.width > most_bytes) {
      whole_.append({whole_.width, 1, 1});
      whole_.width = 1;
    }
    block_ = whole_.width;
    cut_ = whole_.rank;
    while (cut_ != 0 && block_ <= most_bytes / whole_.dimensions[cut_ - 1].count) {
      block_ *= whole_.dimensions[--cut_].count;
    }
    if (cut_ != 0) {
      const auto& along = whole_.dimensions[cut_ - 1];
      step_ = std::min(most_bytes / block_, along.count);
      pieces_ = (along.count + step_ - 1) / step_;
    }
  }

  [[nodiscard]] std::size_t count() const noexcept override {
    std::size_t all = pieces_;
    for (std::size_t i = 0; i + 1 < cut_; ++i) {
      all *= whole_.dimensions[i].count;
    }
    return all;
  }
  [[nodiscard]] std::size_t bytes() const noexcept override { return block_ * step_; }
  void gather(std::size_t index, std::byte* packed) const noexcept override {
    copy_strided(simplest(reading(index, packed), Side::destination));
  }
  void scatter(std::size_t index, const std::byte* packed) const noexcept override {
    copy_strided(simplest(writing(index, packed), Side::source));
  }
  [[nodiscard]] Submitted read(Queue& queue, std::size_t index, std::byte* packed,
                               WaitList after) const override {
    return put_strided(queue, reading(index, packed), after);
  }
  [[nodiscard]] Submitted write(Queue& queue, std::size_t index, const std::byte* packed,
                                WaitList after) const override {
    return put_strided(queue, writing(index, packed), after);
  }

 private:
  [[nodiscard]] StridedCopy at(std::size_t index) const noexcept {
    auto part = whole_;
    if (cut_ == 0) {
      return part;
    }
    const auto& along = whole_.dimensions[cut_ - 1];
    const auto begin = index % pieces_ * step_;
    move_to(part, along, begin);
    index /= pieces_;
    for (std::size_t i = cut_ - 1; i-- > 0;) {
      move_to(part, whole_.dimensions[i], index % whole_.dimensions[i].count);
      index /= whole_.dimensions[i].count;
    }
    part.rank = 0;
    part.append(
        {std::min(step_, along.count - begin), along.destination_stride, along.source_stride});
    for (std::size_t i = cut_; i < whole_.rank; ++i) {
      part.append(whole_.dimensions[i]);
    }
    return part;
  }
  static void move_to(StridedCopy& part, const StridedDimension& along,
                      std::size_t index) noexcept {
    part.destination = advance(part.destination, index * along.destination_stride);
    part.source = advance(part.source, index * along.source_stride);
  }
  // The chunk with one of its sides packed.
  [[nodiscard]] StridedCopy reading(std::size_t index, std::byte* packed) const noexcept {
    auto part = at(index);
    part.destination = packed;
    pack(part, &StridedDimension::destination_stride);
    return part;
  }
  [[nodiscard]] StridedCopy writing(std::size_t index, const std::byte* packed) const noexcept {
    auto part = at(index);
    part.source = packed;
    pack(part, &StridedDimension::source_stride);
    return part;
  }
  static void pack(StridedCopy& part, std::size_t StridedDimension::*stride) noexcept {
    auto inside = part.width;
    for (std::size_t i = part.rank; i-- > 0;) {
      part.dimensions[i].*stride = inside;
      inside *= part.dimensions[i].count;
    }
  }

  StridedCopy whole_;
  std::size_t block_ = 0;   // bytes of the dimensions that every chunk has completely
  std::size_t cut_ = 0;     // the first of those; the dimension before it is divided
  std::size_t step_ = 1;    // indices of that dimension in a chunk
  std::size_t pieces_ = 1;  // chunks along it
};

}  // namespace

Submitted put_strided(Queue& queue, const StridedCopy& given, WaitList after) {
  const auto what = simplest(given, Side::destination);
  if (what.rank == 0) {
    return queue.copy(what.destination, what.source, what.width, after);
  }
  if (what.is_rows()) {
    const auto& rows = what.dimensions[0];
    return queue.copy_2d({what.destination, rows.destination_stride, what.source,
                          rows.source_stride, what.width, rows.count},
                         after);
  }
  return what.runs() <= k_most_runs ? queue.copy_strided(what, after)
                                    : put_slices(queue, what, after);
}

std::unique_ptr<const Parts> cut_strided(const StridedCopy& copy, Side packed_as,
                                         std::size_t most_bytes) {
  return std::make_unique<StridedParts>(copy, packed_as, most_bytes);
}

}  // namespace isthmus
