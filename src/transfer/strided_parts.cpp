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
strided_copy slice(strided_copy what, std::size_t begin, std::size_t count) noexcept {
  auto& outer = what.dimensions[0];
  what.destination = advance(what.destination, begin * outer.destination_stride);
  what.source = advance(what.source, begin * outer.source_stride);
  outer.count = count;
  return what;
}

submitted put_slices(queue& on, const strided_copy& what, wait_list after) {
  const auto outer = what.dimensions[0].count;
  const auto step = std::max<std::size_t>(1, k_most_runs / (what.runs() / outer));
  submitted last = ref<event>{};
  undo in_flight{[&] {
    if (last && *last) {
      let_end(wait_list{&*last, 1});
    }
  }};
  for (std::size_t begin = 0; begin < outer; begin += step) {
    const auto before = begin == 0 ? after : wait_list{&*last, 1};
    auto next = put_strided(on, slice(what, begin, std::min(step, outer - begin)), before);
    ISTHMUS_TRY(next);
    last = std::move(next);
  }
  in_flight.dismiss();
  return last;
}

class strided_parts final : public parts {
 public:
  strided_parts(const strided_copy& what, side packed_as, std::size_t most_bytes)
      : whole_{simplest(what, packed_as)} {
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
    copy_strided(simplest(reading(index, packed), side::destination));
  }
  void scatter(std::size_t index, const std::byte* packed) const noexcept override {
    copy_strided(simplest(writing(index, packed), side::source));
  }
  [[nodiscard]] submitted read(queue& on, std::size_t index, std::byte* packed,
                               wait_list after) const override {
    return put_strided(on, reading(index, packed), after);
  }
  [[nodiscard]] submitted write(queue& on, std::size_t index, const std::byte* packed,
                                wait_list after) const override {
    return put_strided(on, writing(index, packed), after);
  }

 private:
  [[nodiscard]] strided_copy at(std::size_t index) const noexcept {
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
  static void move_to(strided_copy& part, const strided_dimension& along,
                      std::size_t index) noexcept {
    part.destination = advance(part.destination, index * along.destination_stride);
    part.source = advance(part.source, index * along.source_stride);
  }
  // The chunk with one of its sides packed.
  [[nodiscard]] strided_copy reading(std::size_t index, std::byte* packed) const noexcept {
    auto part = at(index);
    part.destination = packed;
    pack(part, &strided_dimension::destination_stride);
    return part;
  }
  [[nodiscard]] strided_copy writing(std::size_t index, const std::byte* packed) const noexcept {
    auto part = at(index);
    part.source = packed;
    pack(part, &strided_dimension::source_stride);
    return part;
  }
  static void pack(strided_copy& part, std::size_t strided_dimension::*stride) noexcept {
    auto inside = part.width;
    for (std::size_t i = part.rank; i-- > 0;) {
      part.dimensions[i].*stride = inside;
      inside *= part.dimensions[i].count;
    }
  }

  strided_copy whole_;
  std::size_t block_ = 0;   // bytes of the dimensions that every chunk has completely
  std::size_t cut_ = 0;     // the first of those; the dimension before it is divided
  std::size_t step_ = 1;    // indices of that dimension in a chunk
  std::size_t pieces_ = 1;  // chunks along it
};

}  // namespace

submitted put_strided(queue& on, const strided_copy& given, wait_list after) {
  const auto what = simplest(given, side::destination);
  if (what.rank == 0) {
    return on.copy(what.destination, what.source, what.width, after);
  }
  if (what.is_rows()) {
    const auto& rows = what.dimensions[0];
    return on.copy_2d({what.destination, rows.destination_stride, what.source, rows.source_stride,
                       what.width, rows.count},
                      after);
  }
  return what.runs() <= k_most_runs ? on.copy_strided(what, after) : put_slices(on, what, after);
}

std::unique_ptr<const parts> cut_strided(const strided_copy& what, side packed_as,
                                         std::size_t most_bytes) {
  return std::make_unique<strided_parts>(what, packed_as, most_bytes);
}

}  // namespace isthmus
