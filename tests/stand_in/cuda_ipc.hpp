// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory of the stand-in shared between processes: an unnamed file, which another process opens
// through the descriptors of the process that owns it (/proc/PID/fd).

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace stand_in {

// The content of an IPC handle. All zero: no handle.
struct ipc_name {
  std::uint64_t sign = 0;
  pid_t process = 0;
  int file = -1;
  std::uint64_t inode = 0;
  std::uint64_t nbytes = 0;

  static constexpr std::uint64_t k_sign = 0x6970632068616e64;
};

// Moves the memory at `at` into a file, at the same address. Returns -1 if that fails.
inline int into_file(void* at, std::size_t nbytes) {
  const int file = memfd_create("stand-in, shared", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(nbytes)) != 0 ||
      pwrite(file, at, nbytes, 0) != static_cast<ssize_t>(nbytes) ||
      mmap(at, nbytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED) {
    close(file);
    return -1;
  }
  return file;
}

inline ipc_name name_of(int file, std::size_t nbytes) {
  struct stat info {};
  fstat(file, &info);
  return {ipc_name::k_sign, getpid(), file, info.st_ino, nbytes};
}

// Returns null if there is no such memory.
inline void* open_by_name(const ipc_name& name) {
  if (name.sign != ipc_name::k_sign) {
    return nullptr;
  }
  const auto path = "/proc/" + std::to_string(name.process) + "/fd/" + std::to_string(name.file);
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  struct stat info {};
  void* at = MAP_FAILED;
  if (file >= 0 && fstat(file, &info) == 0 && info.st_ino == name.inode) {
    at = mmap(nullptr, name.nbytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  close(file);
  return at != MAP_FAILED ? at : nullptr;
}

}  // namespace stand_in
