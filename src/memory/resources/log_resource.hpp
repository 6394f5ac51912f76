// SPDX-License-Identifier: Apache-2.0
#pragma once
// A resource that logs allocations and deallocations to a file, in RMM's format:
// Thread,Time,Action,Pointer,Size,Stream.
//
// Rows are buffered in memory. They are written by the allocation that fills the buffer (some
// thousands of rows), by `flush`, when the last reference is dropped, and when the process exits. A
// free adds its row before the block returns to upstream, so that rows of one address are in order.
// If upstream refuses the block, the row is removed. A free never writes to the file, and nearly
// always has memory for its row, since each allocation reserves memory for the row of its free.
// Writing needs no memory. An allocation with its free costs about 100 ns, under one lock.

#include <array>
#include <cstdio>
#include <ctime>
#include <memory>
#include <span>
#include <vector>

#include "core/mutex.hpp"
#include "core/thread_safety.hpp"
#include "memory/resources/adaptor.hpp"
#include "os/sole_file.hpp"

namespace isthmus {

class LogResource final : public Adaptor {
 public:
  // INVALID_ARGUMENT if the file cannot be created, or if another log is being written to it. Any
  // other existing file is truncated.
  [[nodiscard]] static Result<Ref<LogResource>> create(MemoryResource& upstream, const char* path);
  struct Closer {
    void operator()(std::FILE* file) const noexcept { os::close_exclusive(file); }
  };
  using File = std::unique_ptr<std::FILE, Closer>;
  // Called by `create`.
  LogResource(MemoryResource& upstream, File file);

  [[nodiscard]] Result<void*> allocate(std::size_t nbytes, std::size_t alignment,
                                       Queue& queue) override;
  Result<void> deallocate(void* pointer, std::size_t nbytes, Queue* after) noexcept override;
  // Writes all rows up to the first free in progress. DRIVER, once, if rows were lost since the
  // last call: the file could not be written, or there was no memory for a row.
  Result<void> flush() noexcept;

 private:
  ~LogResource() override;
  enum class Action : std::uint8_t { allocate, failure, free, freeing, refused };
  struct Row {
    std::timespec time;
    std::uint32_t thread;
    Action action;
    const void* pointer;
    std::size_t nbytes;
    std::uintptr_t stream;
  };
  static constexpr std::size_t k_flush_rows = 4096;
  static constexpr std::size_t k_max_characters = 160;  // of a row's text

  [[nodiscard]] static Row row_of(Action action, const void* pointer, std::size_t nbytes,
                                  const Queue* queue) noexcept;
  void reserve_rows(std::size_t rows) ISTHMUS_REQUIRES(lock_);
  void log_allocation(const Row& row);
  // Returns the number of the row, for `end_free`.
  [[nodiscard]] std::uint64_t begin_free(const Row& row) noexcept;
  void end_free(std::uint64_t number, bool freed) noexcept;
  // Moves complete rows to `batch_`, the oldest first, as many as it can hold.
  [[nodiscard]] std::span<const Row> take_complete_rows() noexcept ISTHMUS_REQUIRES(writing_);
  void write_complete_rows() noexcept ISTHMUS_REQUIRES(writing_);
  void write(std::span<const Row> rows) noexcept ISTHMUS_REQUIRES(writing_);
  static void flush_all() noexcept;

  const File file_;
  Mutex writing_;  // locked before `lock_`
  std::array<Row, k_flush_rows> batch_ ISTHMUS_GUARDED_BY(writing_);
  std::array<char, 64 * k_max_characters> text_ ISTHMUS_GUARDED_BY(writing_);
  int write_errno_ ISTHMUS_GUARDED_BY(writing_) = 0;
  std::uint64_t lost_rows_ ISTHMUS_GUARDED_BY(writing_) = 0;
  Mutex lock_;
  // Has capacity for the frees of all live blocks.
  std::vector<Row> rows_ ISTHMUS_GUARDED_BY(lock_);
  std::uint64_t first_number_ ISTHMUS_GUARDED_BY(lock_) = 0;
  std::size_t live_ ISTHMUS_GUARDED_BY(lock_) = 0;
  std::uint64_t dropped_rows_ ISTHMUS_GUARDED_BY(lock_) = 0;
};

}  // namespace isthmus
