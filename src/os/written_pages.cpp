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

#include "core/expects.hpp"
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
  std::uint64_t size, flags, begin, end, walk_end, vec, vec_len, max_pages, category_inverted,
      category_mask, category_anyof_mask, return_mask;
};
constexpr auto k_scan = _IOWR('f', 16, ScanRequest);
constexpr std::uint64_t k_wp_matching = 1;
constexpr std::uint64_t k_is_written = 2;
constexpr std::uint64_t k_wp_unpopulated = 1U << 13U;
constexpr std::uint64_t k_wp_async = 1U << 15U;
constexpr int k_user_mode_only = 1;
constexpr int k_collapse = 25;  // MADV_COLLAPSE, Linux 6.1

static_assert(sizeof(ScanRequest) == 96);

Error unavailable_error(const char* call, int code) {
  return fail(ISTHMUS_ERROR_UNSUPPORTED, "the kernel does not report written pages: {}: {}", call,
              std::strerror(code));
}

}  // namespace

Result<WrittenPages> WrittenPages::open() {
  const auto uffd =
      static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | k_user_mode_only));
  if (uffd < 0) {
    return unavailable_error("userfaultfd", errno);
  }
  uffdio_api api_request{};
  api_request.api = UFFD_API;
  api_request.features = k_wp_async | k_wp_unpopulated | UFFD_FEATURE_PAGEFAULT_FLAG_WP;
  if (ioctl(uffd, UFFDIO_API, &api_request) != 0) {
    auto failure = unavailable_error("UFFDIO_API (needs Linux 6.7)", errno);
    close(uffd);
    return failure;
  }
  const int pagemap = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  if (pagemap < 0) {
    auto failure = unavailable_error("/proc/self/pagemap", errno);
    close(uffd);
    return failure;
  }
  return WrittenPages{uffd, pagemap};
}

// The descriptors of the object remain open until the process ends.
Result<WrittenPages*> WrittenPages::only() {
  watch_forks();
  static auto opened = open();
  if (is_forked_child()) {
    return unavailable_error("after a fork", EPERM);
  }
  if (!opened) {
    return opened.failure();
  }
  return &*opened;
}

bool WrittenPages::watch(void* start, std::size_t nbytes) const noexcept {
  if (is_forked_child()) {
    return false;
  }
  uffdio_register range{};
  range.range = {address(start), nbytes};
  range.mode = UFFDIO_REGISTER_MODE_WP;
  return ioctl(uffd_, UFFDIO_REGISTER, &range) == 0 && scan(start, nbytes, [](void*, void*) {});
}

// The kernel protects the listed pages in the same step. Pages that do not fit the list are
// reported by the next ioctl.
bool WrittenPages::scan(void* start, std::size_t nbytes, const Visitor& visit,
                        const std::function<void()>& prepare) const {
  std::array<PageRun, k_max_runs> runs;
  ScanRequest request{};
  request.size = sizeof request;
  request.flags = k_wp_matching;
  request.begin = address(start);
  request.end = request.begin + nbytes;
  request.vec = address(runs.data());
  request.vec_len = runs.size();
  request.category_mask = k_is_written;
  request.return_mask = k_is_written;
  while (request.begin < request.end) {
    if (is_forked_child()) {
      return false;
    }
    prepare();
    const auto run_count = ioctl(pagemap_, k_scan, &request);
    if (run_count < 0 && errno == EINTR) {
      continue;
    }
    if (run_count < 0) {
      return false;
    }
    for (const auto& run : std::span{runs}.first(static_cast<std::size_t>(run_count))) {
      visit(reinterpret_cast<void*>(run.begin), reinterpret_cast<void*>(run.end));
    }
    request.begin = request.walk_end;
  }
  return true;
}

bool WrittenPages::split(void* start, std::size_t nbytes) const noexcept {
  uffdio_writeprotect range{};
  range.range = {address(start), nbytes};
  range.mode = UFFDIO_WRITEPROTECT_MODE_WP;
  return !is_forked_child() && ioctl(uffd_, UFFDIO_WRITEPROTECT, &range) == 0;
}

// The memory is shared, so its contents survive the removal from the page table, and a huge page is
// mapped whole again.
bool WrittenPages::merge(void* start, std::size_t nbytes) const noexcept {
  ISTHMUS_EXPECTS(are_whole_pages(start, nbytes, k_huge_page), start, nbytes);
  uffdio_writeprotect range{};
  range.range = {address(start), nbytes};
  if (is_forked_child() || ioctl(uffd_, UFFDIO_WRITEPROTECT, &range) != 0 ||
      madvise(start, nbytes, MADV_DONTNEED) != 0) {
    return false;
  }
  for (std::size_t next = 0; next < nbytes; next += k_huge_page) {
    map_present_pages(advance(start, next), page_size());
  }
  return true;
}

// The kernel returns EAGAIN if a page is pinned for a moment.
bool collapse_pages(void* start, std::size_t nbytes) noexcept {
  ISTHMUS_EXPECTS(are_whole_pages(start, nbytes, k_huge_page), start, nbytes);
  for (int attempt = 0; attempt < 4; ++attempt) {
    if (madvise(start, nbytes, k_collapse) == 0) {
      return true;
    }
    if (errno != EAGAIN) {
      return false;
    }
  }
  return false;
}

}  // namespace isthmus::os
