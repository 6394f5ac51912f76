#pragma once
// Writes what goes through it to a file, as RMM's logs are: Thread,Time,Action,Pointer,Size,Stream.
//
// Rows are kept as records and written by whoever allocates when some thousands are due, else by
// `flush`, with the last reference, and at the end of the process. A free notes its row before the
// block goes back, so that rows of one address are in order, and strikes it out if it was refused.
// It never writes, and nearly always finds room: each allocation makes some for its free. Writing
// needs no memory. Some 100 ns an allocation with its free, behind one lock.

#include <array>
#include <cstdio>
#include <ctime>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "memory/adaptors/adaptor.hpp"
#include "os/sole_file.hpp"

namespace isthmus {

class log_resource final : public adaptor {
 public:
  // INVALID_ARGUMENT for a file that cannot be made, or that another log is written to; any other
  // that is there is emptied.
  [[nodiscard]] static result<ref<log_resource>> create(memory_resource& upstream,
                                                        const char* path);
  struct closes {
    void operator()(std::FILE* open) const noexcept { os::close_sole(open); }
  };
  using file = std::unique_ptr<std::FILE, closes>;
  // For `create`.
  log_resource(memory_resource& upstream, file open);

  [[nodiscard]] result<void*> allocate(std::size_t nbytes, std::size_t alignment,
                                       queue& on) override;
  result<void> deallocate(void* pointer, std::size_t nbytes, queue* behind) noexcept override;
  // All rows up to the first free that is still under way. DRIVER, once, where rows were lost since
  // the last time: the file took no more, or there was no memory for a row.
  result<void> flush() noexcept;

 private:
  ~log_resource() override;
  enum class action : std::uint8_t { allocate, failure, free, freeing, refused };
  struct row {
    std::timespec time;
    std::uint32_t thread;
    action what;
    const void* pointer;
    std::size_t nbytes;
    std::uintptr_t stream;
  };
  static constexpr std::size_t k_due = 4096;             // rows
  static constexpr std::size_t k_most_characters = 160;  // of a row's text

  [[nodiscard]] static row row_of(action what, const void* pointer, std::size_t nbytes,
                                  const queue* on) noexcept;
  void make_room(std::size_t rows);
  void note_allocation(const row& made);
  // Its number, for `end_free`.
  [[nodiscard]] std::uint64_t begin_free(const row& begun) noexcept;
  void end_free(std::uint64_t number, bool freed) noexcept;
  // Rows that are settled, the oldest first, as many as `taken_` has room for.
  [[nodiscard]] std::span<const row> take_settled() noexcept;
  void write_settled() noexcept;
  void write(std::span<const row> rows) noexcept;
  static void flush_all() noexcept;

  const file file_;
  std::mutex writing_;  // before `lock_`; of what follows up to there
  std::array<row, k_due> taken_;
  std::array<char, 64 * k_most_characters> text_;
  int failed_with_ = 0;
  std::uint64_t lost_rows_ = 0;
  std::mutex lock_;
  std::vector<row> rows_;  // with room for the frees of all that is live
  std::uint64_t first_number_ = 0;
  std::size_t live_ = 0;
  std::uint64_t rows_without_room_ = 0;
};

}  // namespace isthmus
