// A range of T in memory that something of the library lends: what the views of host memory are
// made of.
//
// It moves and is not copied; its end gives the memory back, once. Cost: three words. Threads: as
// any plain object.
#pragma once

#include <ranges>
#include <span>
#include <utility>

namespace isthmus {
inline namespace v1 {
namespace detail {

// `GiveBack(lender.get())` ends the loan; an empty lender has lent nothing.
template <class T, class Lender, auto GiveBack>
class lent_span {
 public:
  lent_span() noexcept = default;
  lent_span(lent_span&& other) noexcept
      : lender_(std::move(other.lender_)), values_(std::exchange(other.values_, {})) {}
  lent_span& operator=(lent_span&& other) noexcept {
    lent_span taken(std::move(other));
    std::swap(lender_, taken.lender_);
    std::swap(values_, taken.values_);
    return *this;
  }
  lent_span(const lent_span&) = delete;
  lent_span& operator=(const lent_span&) = delete;
  ~lent_span() {
    if (lender_) GiveBack(lender_.get());
  }

  [[nodiscard]] std::span<T> span() const noexcept { return values_; }
  operator std::span<T>() const noexcept { return values_; }
  [[nodiscard]] T* data() const noexcept { return values_.data(); }
  [[nodiscard]] std::size_t size() const noexcept { return values_.size(); }
  [[nodiscard]] auto begin() const noexcept { return values_.begin(); }
  [[nodiscard]] auto end() const noexcept { return values_.end(); }
  [[nodiscard]] T& operator[](std::size_t index) const noexcept { return values_[index]; }

 protected:
  // Takes over a loan that has begun.
  lent_span(Lender lender, std::span<T> values) noexcept
      : lender_(std::move(lender)), values_(values) {}

 private:
  Lender lender_;
  std::span<T> values_;
};

}  // namespace detail
}  // namespace v1
}  // namespace isthmus
