// SPDX-License-Identifier: Apache-2.0
#include "os/written_pages.hpp"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <span>

#include "core/sizes.hpp"
#include "os/process.hpp"
#include "os/shared_file.hpp"
#include "os/virtual_memory.hpp"

namespace isthmus::os {
namespace {

// Declarations of <linux/fs.h> and <linux/userfaultfd.h> since Linux 6.7; older headers lack them.
struct PageRun {
  std::uint64_t begin, end, categories;
};
struct ScanRequest {
  std::uint64_t size, flags, begin, end, walk_end, runs, most_runs, most_pages, inverted, all_of,
      any_of, returned;
};
constexpr auto k_scan = _IOWR('f', 16, ScanRequest);
constexpr std::uint64_t k_protect_what_matches = 1;
constexpr std::uint64_t k_is_written = 2;
constexpr std::uint64_t k_protects_holes = 1U << 13U;
constexpr std::uint64_t k_asynchronous = 1U << 15U;
constexpr int k_user_mode_only = 1;
constexpr int k_collapse = 25;  // MADV_COLLAPSE, Linux 6.1

static_assert(sizeof(ScanRequest) == 96);

Error not_here(const char* call, int code) {
  return fail(ISTHMUS_ERROR_UNSUPPORTED, "the kernel does not report written pages: {}: {}", call,
              std::strerror(code));
}

}  // namespace

Result<WrittenPages> WrittenPages::open() {
  const auto faults =
      static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | k_user_mode_only));
  if (faults < 0) {
    return not_here("userfaultfd", errno);
  }
  uffdio_api wanted{};
  wanted.api = UFFD_API;
  wanted.features = k_asynchronous | k_protects_holes | UFFD_FEATURE_PAGEFAULT_FLAG_WP;
  if (ioctl(faults, UFFDIO_API, &wanted) != 0) {
    auto failure = not_here("UFFDIO_API (needs Linux 6.7)", errno);
    close(faults);
    return failure;
  }
  const int pages = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  if (pages < 0) {
    auto failure = not_here("/proc/self/pagemap", errno);
    close(faults);
    return failure;
  }
  return WrittenPages{faults, pages};
}

// Its descriptors stay open until the process ends.
Result<WrittenPages*> WrittenPages::only() {
  watch_forks();
  static auto opened = open();
  if (is_forked_child()) {
    return not_here("after a fork", EPERM);
  }
  if (!opened) {
    return opened.failure();
  }
  return &*opened;
}

bool WrittenPages::watch(void* at, std::size_t nbytes) const noexcept {
  if (is_forked_child()) {
    return false;
  }
  uffdio_register range{};
  range.range = {address(at), nbytes};
  range.mode = UFFDIO_REGISTER_MODE_WP;
  return ioctl(faults_, UFFDIO_REGISTER, &range) == 0 && take(at, nbytes, [](void*, void*) {});
}

// The kernel protects the listed pages in the same step. What does not fit the list remains for the
// next call.
bool WrittenPages::take(void* at, std::size_t nbytes, const Visitor& visit,
                        const std::function<void()>& prepare) const {
  std::array<PageRun, k_most_runs> runs;
  ScanRequest request{};
  request.size = sizeof request;
  request.flags = k_protect_what_matches;
  request.begin = address(at);
  request.end = request.begin + nbytes;
  request.runs = address(runs.data());
  request.most_runs = runs.size();
  request.all_of = k_is_written;
  request.returned = k_is_written;
  while (request.begin < request.end) {
    if (is_forked_child()) {
      return false;
    }
    prepare();
    const auto found = ioctl(pages_, k_scan, &request);
    if (found < 0 && errno == EINTR) {
      continue;
    }
    if (found < 0) {
      return false;
    }
    for (const auto& each : std::span{runs}.first(static_cast<std::size_t>(found))) {
      visit(reinterpret_cast<void*>(each.begin), reinterpret_cast<void*>(each.end));
    }
    request.begin = request.walk_end;
  }
  return true;
}

bool WrittenPages::split(void* at, std::size_t nbytes) const noexcept {
  uffdio_writeprotect range{};
  range.range = {address(at), nbytes};
  range.mode = UFFDIO_WRITEPROTECT_MODE_WP;
  return !is_forked_child() && ioctl(faults_, UFFDIO_WRITEPROTECT, &range) == 0;
}

// The memory is shared, so its contents survive the removal from the page table, and a huge page is
// mapped whole again.
bool WrittenPages::merge(void* at, std::size_t nbytes) const noexcept {
  uffdio_writeprotect range{};
  range.range = {address(at), nbytes};
  if (is_forked_child() || ioctl(faults_, UFFDIO_WRITEPROTECT, &range) != 0 ||
      madvise(at, nbytes, MADV_DONTNEED) != 0) {
    return false;
  }
  for (std::size_t next = 0; next < nbytes; next += k_huge_page) {
    map_present_pages(advance(at, next), page_size());
  }
  return true;
}

// The kernel returns EAGAIN if a page is pinned for a moment.
bool collapse_pages(void* at, std::size_t nbytes) noexcept {
  for (int tries = 0; tries < 4; ++tries) {
    if (madvise(at, nbytes, k_collapse) == 0) {
      return true;
    }
    if (errno != EAGAIN) {
      return false;
    }
  }
  return false;
}

}  // namespace isthmus::os
