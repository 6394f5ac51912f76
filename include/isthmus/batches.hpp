// SPDX-License-Identifier: Apache-2.0
// Processes data in batches, for data that does not fit in memory at once.
//
//   for (std::span<const float> batch : isthmus::batches(data, 1000)) {
//     auto on_device = isthmus::to_array(batch);
//     ...
//   }
//   isthmus::batches(a, 100, [](const auto& rows) { ... });       // 100 rows of an array at a time
//   isthmus::batches(data, [](const auto& batch) { ... });        // as many as fit in memory
//
// Batches are views; the last one may be shorter. If the function throws out_of_memory or
// std::bad_alloc, it is called again for the same elements with batches of half the size, which is
// also the size of the batches after them. Work that the function did on these elements before the
// failure is therefore repeated. Cost: a view per batch. Thread safety: as plain values.
#pragma once

#include <isthmus/dyn_array.hpp>

#include <algorithm>
#include <iterator>
#include <new>
#include <span>

namespace isthmus {
inline namespace v1 {
namespace detail {

template <class T>
struct span_source {
  std::span<T> all;
  [[nodiscard]] std::size_t count() const noexcept { return all.size(); }
  [[nodiscard]] std::span<T> part(std::size_t first, std::size_t count) const noexcept {
    return all.subspan(first, count);
  }
};
template <class Array>
struct array_source {
  Array all;
  [[nodiscard]] std::size_t count() const noexcept {
    return static_cast<std::size_t>(all.extent(0));
  }
  [[nodiscard]] Array part(std::size_t first, std::size_t count) const {
    return all.view(slice(first, first + count));
  }
};

}  // namespace detail

// A range of batches of `size` elements, or rows, each. An input range that may be iterated
// repeatedly.
template <class Source>
class batch_range : public std::ranges::view_base {
 public:
  // Throws invalid_argument for a `size` of 0.
  batch_range(Source source, std::size_t size) : source_(std::move(source)), size_(size) {
    if (size == 0) raise(status::invalid_argument, "a batch cannot have 0 elements: use 1 or more");
  }

  class iterator {
   public:
    using iterator_concept = std::input_iterator_tag;
    using difference_type = std::ptrdiff_t;
    using value_type = decltype(std::declval<const Source&>().part(0, 0));

    iterator() noexcept = default;
    [[nodiscard]] value_type operator*() const {
      return range_->source_.part(position_,
                                  std::min(range_->size_, range_->source_.count() - position_));
    }
    iterator& operator++() noexcept {
      position_ += std::min(range_->size_, range_->source_.count() - position_);
      return *this;
    }
    void operator++(int) noexcept { ++*this; }
    bool operator==(std::default_sentinel_t) const noexcept {
      return position_ == range_->source_.count();
    }

   private:
    friend class batch_range;
    explicit iterator(const batch_range& range) noexcept : range_(&range) {}
    const batch_range* range_ = nullptr;
    std::size_t position_ = 0;
  };

  [[nodiscard]] iterator begin() const noexcept { return iterator(*this); }
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }
  [[nodiscard]] const Source& source() const noexcept { return source_; }
  [[nodiscard]] std::size_t size() const noexcept {
    return source_.count() / size_ + (source_.count() % size_ != 0 ? 1 : 0);
  }

 private:
  Source source_;
  std::size_t size_;
};

namespace detail {

template <std::ranges::contiguous_range Data>
[[nodiscard]] auto source_of(Data&& data) {
  const std::span all(data);
  return span_source<typename decltype(all)::element_type>{all};
}
template <class T, std::size_t N>
  requires(N != 0)
[[nodiscard]] array_source<array<T, N>> source_of(const array<T, N>& data) {
  return {data};
}
template <std::same_as<dyn_array> Array>
[[nodiscard]] array_source<dyn_array> source_of(const Array& data) {
  static_cast<void>(data.extent(0));
  return {data};
}
template <class Data>
concept has_batches = requires(Data&& data) { source_of(data); };

// Calls `function`; returns false if it ran out of memory and this is not the last try.
template <class Function, class Piece>
bool try_call(Function& function, Piece&& batch, bool is_last_try) {
  try {
    function(std::forward<Piece>(batch));
    return true;
  } catch (const out_of_memory&) {
    if (is_last_try) throw;
  } catch (const std::bad_alloc&) {
    if (is_last_try) throw;
  }
  return false;
}
template <class Source, class Function>
void call_with_batches(const Source& source, std::size_t size, Function& function) {
  for (std::size_t first = 0; first < source.count();) {
    const std::size_t count = std::min(size, source.count() - first);
    if (try_call(function, source.part(first, count), count == 1)) {
      first += count;
    } else {
      size = count / 2;
    }
  }
}

}  // namespace detail

// The batches of plain memory, in elements, or of an array, in rows along its first axis. Plain
// memory must outlive the range. Throws invalid_argument for a `size` of 0.
template <detail::has_batches Data>
  requires(!std::ranges::range<Data> || std::ranges::borrowed_range<Data> ||
           std::is_lvalue_reference_v<Data>)
[[nodiscard]] auto batches(Data&& data, std::size_t size) {
  return batch_range(detail::source_of(data), size);
}
// Calls `function` with each batch. If a batch of a single element or row runs out of memory,
// throws what the function threw.
template <detail::has_batches Data, class Function>
void batches(Data&& data, std::size_t size, Function&& function) {
  const auto range = batch_range(detail::source_of(data), size);
  detail::call_with_batches(range.source(), size, function);
}
// The same, starting with a single batch of all elements or rows.
template <detail::has_batches Data, class Function>
  requires(!std::integral<std::remove_cvref_t<Function>>)
void batches(Data&& data, Function&& function) {
  const auto source = detail::source_of(data);
  detail::call_with_batches(source, source.count(), function);
}

}  // namespace v1
}  // namespace isthmus
