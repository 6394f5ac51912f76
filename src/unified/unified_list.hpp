#pragma once
// All unified buffers of the process: where memory is short they give up device copies that the
// host's is as good as.

#include <mutex>
#include <unordered_set>

#include "core/ref.hpp"
#include "unified/unified_buffer.hpp"

namespace isthmus {

// Never destroyed. Safe for threads.
class unified_list {
 public:
  // Asked by the ladder from here on, behind the program's own callbacks so far.
  unified_list();
  // Throws std::bad_alloc.
  void add(unified_buffer& made);
  void remove(unified_buffer& gone) noexcept;
  // Gives up device copies on that device till there are so many bytes, or none is left; how many.
  std::uint64_t give_up(const device& where, std::uint64_t nbytes) noexcept;

 private:
  [[nodiscard]] std::vector<ref<unified_buffer>> alive();

  std::mutex lock_;
  std::unordered_set<unified_buffer*> all_;
};
[[nodiscard]] unified_list& process_unified_buffers();

}  // namespace isthmus
