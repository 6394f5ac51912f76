// SPDX-License-Identifier: Apache-2.0
#include "os/stack.hpp"

#include <cxxabi.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <unwind.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>

namespace isthmus::os {
namespace {

// The address range of a library, code and data.
struct Extent {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;

  [[nodiscard]] bool has(std::uintptr_t at) const noexcept { return begin <= at && at < end; }
};

struct Walk {
  std::span<void*> out;
  Extent skipped;  // frames in this range are skipped until one lies elsewhere
  std::size_t count = 0;
};

_Unwind_Reason_Code visit(_Unwind_Context* at, void* given) {
  auto& so_far = *static_cast<Walk*>(given);
  if (so_far.count == so_far.out.size()) {
    return _URC_END_OF_STACK;
  }
  const auto frame = _Unwind_GetIP(at);
  if (so_far.count != 0 || !so_far.skipped.has(frame)) {
    so_far.skipped = {};
    if (frame != 0) {
      so_far.out[so_far.count++] = reinterpret_cast<void*>(frame);
    }
  }
  return _URC_NO_REASON;
}

// The library that contains this function.
const Extent& own_library() noexcept {
  static const Extent found = [] {
    Extent ours;
    dl_iterate_phdr(
        [](dl_phdr_info* each, std::size_t, void* out) {
          Extent its{UINTPTR_MAX, 0};
          for (const auto& part : std::span{each->dlpi_phdr, each->dlpi_phnum}) {
            if (part.p_type == PT_LOAD) {
              const auto begin = each->dlpi_addr + part.p_vaddr;
              its = {std::min<std::uintptr_t>(its.begin, begin),
                     std::max<std::uintptr_t>(its.end, begin + part.p_memsz)};
            }
          }
          const bool is_ours = its.has(reinterpret_cast<std::uintptr_t>(&visit));
          if (is_ours) {
            *static_cast<Extent*>(out) = its;
          }
          return static_cast<int>(is_ours);
        },
        &ours);
    return ours;
  }();
  return found;
}

struct Frees {
  void operator()(char* text) const noexcept { std::free(text); }
};

std::string readable(const char* name) {
  int status = 0;
  const std::unique_ptr<char, Frees> text{abi::__cxa_demangle(name, nullptr, nullptr, &status)};
  return text != nullptr ? text.get() : name;
}

}  // namespace

// In a program that links the library statically all frames may lie in the "library".
[[gnu::noinline]] std::size_t capture_stack(std::span<void*> out) noexcept {
  Walk so_far{out, own_library()};
  _Unwind_Backtrace(&visit, &so_far);
  if (so_far.count == 0) {
    so_far.skipped = {};
    _Unwind_Backtrace(&visit, &so_far);
  }
  return so_far.count;
}

// A return address may be the first one after its function, when the call is its last instruction.
std::string describe_frame(void* frame) {
  Dl_info found{};
  const auto at = reinterpret_cast<std::uintptr_t>(frame);
  if (dladdr(reinterpret_cast<void*>(at - 1), &found) == 0 || found.dli_fname == nullptr) {
    return fmt::format("{}", frame);
  }
  if (found.dli_sname == nullptr) {
    return fmt::format("{:#x} in {}", at - reinterpret_cast<std::uintptr_t>(found.dli_fbase),
                       found.dli_fname);
  }
  return fmt::format("{}+{:#x} in {}", readable(found.dli_sname),
                     at - reinterpret_cast<std::uintptr_t>(found.dli_saddr), found.dli_fname);
}

}  // namespace isthmus::os
