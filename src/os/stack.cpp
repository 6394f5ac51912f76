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

  [[nodiscard]] bool contains(std::uintptr_t address) const noexcept {
    return begin <= address && address < end;
  }
};

struct Walk {
  std::span<void*> out;
  Extent skipped;  // frames in this range are skipped until one lies elsewhere
  std::size_t count = 0;
};

_Unwind_Reason_Code visit(_Unwind_Context* context, void* argument) {
  auto& walk = *static_cast<Walk*>(argument);
  if (walk.count == walk.out.size()) {
    return _URC_END_OF_STACK;
  }
  const auto frame = _Unwind_GetIP(context);
  if (walk.count != 0 || !walk.skipped.contains(frame)) {
    walk.skipped = {};
    if (frame != 0) {
      walk.out[walk.count++] = reinterpret_cast<void*>(frame);
    }
  }
  return _URC_NO_REASON;
}

// The library that contains this function.
const Extent& own_library() noexcept {
  static const Extent own_extent = [] {
    Extent result;
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* out) {
          Extent extent{UINTPTR_MAX, 0};
          for (const auto& header : std::span{info->dlpi_phdr, info->dlpi_phnum}) {
            if (header.p_type == PT_LOAD) {
              const auto begin = info->dlpi_addr + header.p_vaddr;
              extent = {std::min<std::uintptr_t>(extent.begin, begin),
                        std::max<std::uintptr_t>(extent.end, begin + header.p_memsz)};
            }
          }
          const bool is_own = extent.contains(reinterpret_cast<std::uintptr_t>(&visit));
          if (is_own) {
            *static_cast<Extent*>(out) = extent;
          }
          return static_cast<int>(is_own);
        },
        &result);
    return result;
  }();
  return own_extent;
}

struct FreeDeleter {
  void operator()(char* text) const noexcept { std::free(text); }
};

std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, FreeDeleter> text{
      abi::__cxa_demangle(name, nullptr, nullptr, &status)};
  return text != nullptr ? text.get() : name;
}

}  // namespace

// In a program that links the library statically all frames may lie in the same extent. Then none
// is skipped.
[[gnu::noinline]] std::size_t capture_stack(std::span<void*> out) noexcept {
  Walk walk{out, own_library()};
  _Unwind_Backtrace(&visit, &walk);
  if (walk.count == 0) {
    walk.skipped = {};
    _Unwind_Backtrace(&visit, &walk);
  }
  return walk.count;
}

// If a call is the last instruction of its function, the return address lies after the function. So
// the address before it is looked up.
std::string describe_frame(void* frame) {
  Dl_info info{};
  const auto address = reinterpret_cast<std::uintptr_t>(frame);
  if (dladdr(reinterpret_cast<void*>(address - 1), &info) == 0 || info.dli_fname == nullptr) {
    return fmt::format("{}", frame);
  }
  if (info.dli_sname == nullptr) {
    return fmt::format("{:#x} in {}", address - reinterpret_cast<std::uintptr_t>(info.dli_fbase),
                       info.dli_fname);
  }
  return fmt::format("{}+{:#x} in {}", demangled(info.dli_sname),
                     address - reinterpret_cast<std::uintptr_t>(info.dli_saddr), info.dli_fname);
}

}  // namespace isthmus::os
