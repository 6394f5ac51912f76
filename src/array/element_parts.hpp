#pragma once
// A move of elements cut into parts that go by way of the host's memory, which converts them there.

#include "array/element_move.hpp"
#include "transfer/parts.hpp"

namespace isthmus {

class element_parts final : public parts {
 public:
  // Both packed forms of a part have at most that many bytes each.
  element_parts(const element_move& what, std::size_t most_bytes) noexcept
      : pieces_{what, most_bytes} {}

  [[nodiscard]] std::size_t count() const noexcept override { return pieces_.count(); }
  [[nodiscard]] std::size_t bytes() const noexcept override { return pieces_.bytes(); }
  // From the source to as the destination has them, and the other way from as the source has them.
  void gather(std::size_t index, std::byte* packed) const noexcept override;
  void scatter(std::size_t index, const std::byte* packed) const noexcept override;
  [[nodiscard]] const std::byte* turn(std::size_t index, const std::byte* packed,
                                      std::byte* spare) const noexcept override;
  [[nodiscard]] submitted read(queue& on, std::size_t index, std::byte* packed,
                               wait_list after) const override;
  [[nodiscard]] submitted write(queue& on, std::size_t index, const std::byte* packed,
                                wait_list after) const override;

 private:
  // What `read` has left to be done.
  [[nodiscard]] element_move rest_of(std::size_t index, const std::byte* packed) const noexcept;

  move_pieces pieces_;
};

}  // namespace isthmus
