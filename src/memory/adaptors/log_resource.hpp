#pragma once
// Writes what goes through it to a file, as RMM's logs are: Thread,Time,Action,Pointer,Size,Stream.
//
// Rows are kept as records and written by whoever allocates when some thousands are due, else by
// `flush`, with the last reference, and at the end of the process. A free notes its row before the
// block goes back, so that rows of one address are in order, and strikes it out if it was refused.
// It never writes and needs no memory: each allocation makes room for its free. Some 100 ns an
// allocation with its free, behind one lock.

#include <ctime>
#include <mutex>
#include <string>
#include <vector>

#include "memory/adaptors/adaptor.hpp"

namespace isthmus {

class log_resource final : public adaptor {
 public:
  // INVALID_ARGUMENT for a file that cannot be made; one that is there is emptied.
  [[nodiscard]] static result<ref<log_resource>> create(memory_resource& upstream,
                                                        const char* path);
  // Takes the open file over.
  log_resource(memory_resource& upstream, std::FILE* file);

  [[nodiscard]] result<void*> allocate(std::size_t nbytes, std::size_t alignment,
                                       queue& on) override;
  result<void> deallocate(void* pointer, std::size_t nbytes, queue* behind) noexcept override;
  // INVALID_ARGUMENT if the file takes no more.
  result<void> flush();

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
  static constexpr std::size_t k_due = 4096;  // rows

  [[nodiscard]] static row row_of(action what, const void* pointer, std::size_t nbytes,
                                  const queue* on) noexcept;
  void note_allocation(const row& made);
  // Its number, for `end_free`.
  [[nodiscard]] std::uint64_t begin_free(const row& begun) noexcept;
  void end_free(std::uint64_t number, bool freed) noexcept;
  // Rows that are settled, the oldest first, leave for `out`.
  void take_settled(std::vector<row>& out) noexcept;
  void write_settled();
  void write(const std::vector<row>& rows);
  static void flush_all() noexcept;

  std::FILE* const file_;
  std::mutex writing_;  // before `lock_`
  int failed_with_ = 0;
  std::mutex lock_;
  std::vector<row> rows_;  // with room for the frees of all that is live
  std::uint64_t first_number_ = 0;
  std::size_t live_ = 0;
};

}  // namespace isthmus
