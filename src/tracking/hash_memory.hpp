#pragma once
// Tracked memory of which only a hash of each 64 KiB is kept as it was last the same: where the
// kernel tells nothing. Every look reads all of it. `library` takes memory only where something was
// on its way while somebody could write; what nobody can write meanwhile goes straight from the
// view, is written there, and is hashed no sooner than somebody can.
//
// What was taken may be found again till it is the same.

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
  // How a chunk was last the same: by its hash; as it is, which nobody has hashed yet; or nobody
  // knows, so that it counts as written.
  enum class same : std::uint8_t { by_hash, as_it_is, unknown };
  struct chunk {
    same last = same::by_hash;
    bool is_written = false;  // as the last look found it
    // And its hash, unless the library has written there since.
    bool was_looked_at = false;
    hash last_same{};
    hash looked_at{};
  };

  explicit hash_memory(std::size_t nbytes);
  [[nodiscard]] static hash hash_of(const std::byte* bytes, std::size_t nbytes) noexcept;
  [[nodiscard]] byte_range range_of(std::size_t number) const noexcept;
  // Of a chunk's bytes, wherever they lie, with zeros for what is being written in place; of a copy
  // that may have them from then on.
  [[nodiscard]] hash hash_chunk(std::size_t number, const std::byte* bytes) const noexcept;
  [[nodiscard]] hash hash_copy(std::size_t number, chunk_copy& copy) const noexcept;
  [[nodiscard]] bool is_written_in_place(const byte_range& range) const noexcept;
  void is_same(std::size_t number, const hash& now) noexcept;
  void look_at(std::size_t number) noexcept;
  // Looks at it, and has `library` hold what was found to be written, or the view where nobody
  // writes that.
  void look_and_snap(std::size_t number) noexcept;
  void look_and_keep(std::size_t number) noexcept;
  void add_found(const byte_range& of, range_set& written) const;
  // What the view has of the chunk, which is known from here on only if that is as it was.
  void copy_chunk(std::size_t number, chunk_copy& copy) noexcept;
  // Of one chunk: the part that is to go, to `library` from the view, and back.
  void snap(std::size_t number, const byte_range& part) noexcept;
  void put(std::size_t number, const byte_range& part, writers who) noexcept;
  void leave_as_they_are(const byte_range& range) noexcept;
  // The same of less than all of it.
  void snap_part(std::size_t number, const byte_range& part) noexcept;
  // What the chunk will be like with that part of `library`.
  void learn_part(std::size_t number, const byte_range& part) noexcept;
  void end_in_place(std::size_t number, const byte_range& part) noexcept;

  std::vector<chunk> chunks_;
  bool all_hashed_ = true;            // none is the same as it is
  std::vector<byte_range> in_place_;  // begun writes that go to the view itself
};

}  // namespace isthmus::tracking
