// SPDX-License-Identifier: Apache-2.0
#pragma once
// System calls that fail from now on, for all threads of the process and until it ends: as if a
// container forbade them, an older kernel lacked them, or the kernel had no memory.

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace support {

// A system call, restricted to those calls that have `value` as one argument.
struct denied_call {
  std::uint32_t number;
  std::uint32_t argument;  // its index, from 0; k_any: whatever the arguments are
  std::uint32_t value;
  std::uint32_t code;  // errno

  static constexpr std::uint32_t k_any = 6;
};

inline denied_call deny_call(long number, int code) {
  return {static_cast<std::uint32_t>(number), denied_call::k_any, 0,
          static_cast<std::uint32_t>(code)};
}
inline denied_call deny_ioctl(unsigned long request, int code) {
  return {SYS_ioctl, 1, static_cast<std::uint32_t>(request), static_cast<std::uint32_t>(code)};
}
inline denied_call deny_advice(int advice, int code) {
  return {SYS_madvise, 2, static_cast<std::uint32_t>(advice), static_cast<std::uint32_t>(code)};
}
inline denied_call deny_mapping(int flags, int code) {
  return {SYS_mmap, 3, static_cast<std::uint32_t>(flags), static_cast<std::uint32_t>(code)};
}

// Since Linux 6.7; missing in older headers.
inline constexpr unsigned long k_pagemap_scan = _IOC(_IOC_READ | _IOC_WRITE, 'f', 16, 96);
inline constexpr int k_collapse = 25, k_populate_write = 23;

// Installs the filter. Returns whether that succeeded.
inline bool deny(const denied_call& call) {
  const auto load = [](std::size_t offset) {
    return sock_filter{BPF_LD | BPF_W | BPF_ABS, 0, 0, static_cast<std::uint32_t>(offset)};
  };
  const auto skip_unless = [](std::uint32_t value, std::uint8_t steps) {
    return sock_filter{BPF_JMP | BPF_JEQ | BPF_K, 0, steps, value};
  };
  std::vector<sock_filter> program{load(offsetof(seccomp_data, nr))};
  if (call.argument == denied_call::k_any) {
    program.push_back(skip_unless(call.number, 1));
  } else {
    program.push_back(skip_unless(call.number, 3));
    program.push_back(load(offsetof(seccomp_data, args) + 8 * call.argument));
    program.push_back(skip_unless(call.value, 1));
  }
  program.push_back({BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | call.code});
  program.push_back({BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW});
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) == 0;
}

}  // namespace support
