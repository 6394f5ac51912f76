// SPDX-License-Identifier: Apache-2.0
#include "os/shared_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "core/expects.hpp"
#include "core/sizes.hpp"
#include "os/pages.hpp"

namespace isthmus::os {
namespace {

constexpr int k_populate_read = 22, k_populate_write = 23;  // Linux 5.14; older headers lack them

Error mapping_error(const char* call, std::size_t nbytes, int code) {
  return fail(ISTHMUS_ERROR_OUT_OF_MEMORY, "{} of {} failed: {}", call, describe_bytes(nbytes),
              std::strerror(code));
}

// Growing a file beyond the limit ends the process by a signal.
bool is_within_file_limit(std::size_t nbytes) noexcept {
  rlimit limit{};
  return nbytes <= SIZE_MAX / 2 &&
         (getrlimit(RLIMIT_FSIZE, &limit) != 0 || nbytes <= limit.rlim_cur);
}

// Creates a file that is sealed against execution: where vm.memfd_noexec is 2, the kernel refuses a
// file without this seal. Kernels before 6.3 do not know the flag.
int create_file() noexcept {
  constexpr unsigned k_noexec_seal = 8;
  const int descriptor = memfd_create("isthmus", MFD_CLOEXEC | k_noexec_seal);
  return descriptor >= 0 || errno != EINVAL ? descriptor : memfd_create("isthmus", MFD_CLOEXEC);
}

}  // namespace

Result<SharedFile> SharedFile::open(std::size_t nbytes) {
  if (!is_within_file_limit(nbytes)) {
    return mapping_error("memfd_create", nbytes, EFBIG);
  }
  SharedFile file{create_file()};
  if (file.descriptor_ < 0 || ftruncate(file.descriptor_, static_cast<off_t>(nbytes)) != 0) {
    return mapping_error("memfd_create", nbytes, errno);
  }
  return file;
}

SharedFile::SharedFile(SharedFile&& other) noexcept
    : descriptor_{std::exchange(other.descriptor_, -1)} {}

SharedFile::~SharedFile() {
  if (descriptor_ >= 0) {
    close(descriptor_);
  }
}

Result<void*> SharedFile::map(void* start, std::size_t offset, std::size_t nbytes) const {
  void* const mapped =
      mmap(start, nbytes, PROT_READ | PROT_WRITE, MAP_SHARED | (start != nullptr ? MAP_FIXED : 0),
           descriptor_, static_cast<off_t>(offset));
  if (mapped == MAP_FAILED) {
    return mapping_error("mmap", nbytes, errno);
  }
  return mapped;
}

void SharedFile::map_privately(void* start, std::size_t offset, std::size_t nbytes) const noexcept {
  constexpr int k_private = MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE;
  if (mmap(start, nbytes, PROT_READ | PROT_WRITE, k_private, descriptor_,
           static_cast<off_t>(offset)) == MAP_FAILED) {
    mmap(start, nbytes, PROT_NONE, k_private | MAP_ANONYMOUS, -1, 0);
  }
}

// The next user of the pages relies on zeros. If the kernel cannot punch a hole, zeros are written.
bool SharedFile::clear(std::size_t offset, std::size_t nbytes) const noexcept {
  ISTHMUS_EXPECTS(offset % page_size() == 0 && nbytes % page_size() == 0, offset, nbytes);
  static constexpr std::array<std::byte, std::size_t{64} << 10> k_zeros{};
  if (fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                static_cast<off_t>(nbytes)) == 0) {
    return true;
  }
  for (const auto end = offset + nbytes; offset < end;) {
    const auto chunk = std::min(k_zeros.size(), end - offset);
    const auto written = pwrite(descriptor_, k_zeros.data(), chunk, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) {
      continue;
    }
    // ENOSPC: there is no memory for a page that is a hole; the hole reads as zeros. Any other
    // failure may leave old contents.
    if (written <= 0 && errno != ENOSPC) {
      return false;
    }
    offset += written > 0 ? static_cast<std::size_t>(written) : chunk;
  }
  return true;
}

Result<void> populate_shared(void* start, std::size_t nbytes) {
  ISTHMUS_EXPECTS(are_whole_pages(start, nbytes), start, nbytes);
  while (madvise(start, nbytes, k_populate_write) != 0) {
    if (errno != EINTR) {
      return mapping_error("madvise", nbytes, errno == EFAULT ? ENOMEM : errno);
    }
  }
  return {};
}

void map_present_pages(void* start, std::size_t nbytes) noexcept {
  madvise(start, nbytes, k_populate_read);
}

}  // namespace isthmus::os
