#pragma once
// Which pages of shared memory were written, told by the kernel: userfaultfd's asynchronous write
// protection, read and put on again by PAGEMAP_SCAN. A first write to a page costs a fault that the
// kernel serves by itself: no thread, signal or privilege. Its own writes, of read(2) say, count
// too; those of devices do not, nor do those by way of another mapping of the same memory.
//
// Linux 6.7. What containers forbid, Docker's default profile say, is told as not there. Of memory
// in huge pages one write counts for 2 MiB, and the page stays whole: 1 GiB is looked through in
// 0.01 ms where nothing was written, and a write costs 1.3 us; in small pages it is 0.2 ms, and 0.6
// us for each 4 KiB (H200). Linux' own documents: admin-guide/mm/userfaultfd.rst and pagemap.rst.

#include <cstddef>
#include <functional>

#include "core/status.hpp"

namespace isthmus::os {

// The process's own, safe for threads. A forked child has none, as the kernel would look through
// the parent's memory: there `only` and all calls fail.
class written_pages {
 public:
  // UNSUPPORTED, with the reason, where there is none.
  [[nodiscard]] static result<written_pages*> only();

  // From here on all of a mapping of shared memory, in whole pages, counts as unwritten, till it is
  // unmapped. What is to be told by huge pages must lie in such before. False where the kernel
  // refuses.
  [[nodiscard]] bool watch(void* at, std::size_t nbytes) const noexcept;
  // Gives the runs of what was written, in order, and has each count as unwritten from the moment
  // that it is looked at: a later write is told the next time. So who copies what was written loses
  // nothing if he copies after this. False where the kernel fails: then, and where `visit` throws,
  // who asked must take all for written. Pre: watched.
  using visitor = std::function<void(void* begin, void* end)>;
  [[nodiscard]] bool take(void* at, std::size_t nbytes, const visitor& visit) const {
    return take(at, nbytes, visit, [] {});
  }
  // The same, where `prepare` is called before each step, which gives `k_most_runs` at most. If it
  // throws, that step is not made: what was not given yet still counts as written.
  static constexpr std::size_t k_most_runs = 512;
  [[nodiscard]] bool take(void* at, std::size_t nbytes, const visitor& visit,
                          const std::function<void()>& prepare) const;
  // What lies in huge pages is told by small ones from here on. All of it counts as unwritten, what
  // was not taken too: who calls must take it for written.
  [[nodiscard]] bool split(void* at, std::size_t nbytes) const noexcept;
  // What was split is told by huge pages again where the kernel can. All of it counts as written,
  // and is to be taken once more for writes to be told. Pre: whole huge pages.
  [[nodiscard]] bool merge(void* at, std::size_t nbytes) const noexcept;

 private:
  written_pages(int faults, int pages) noexcept : faults_{faults}, pages_{pages} {}
  [[nodiscard]] static result<written_pages> open();

  int faults_;  // userfaultfd
  int pages_;   // /proc/self/pagemap
};

// Has memory lie in huge pages, where the kernel has some now. Pre: aligned to them, whole ones,
// each touched, not watched.
bool collapse_pages(void* at, std::size_t nbytes) noexcept;

}  // namespace isthmus::os
