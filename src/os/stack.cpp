#include "os/stack.hpp"

#include <cxxabi.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <unwind.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>

namespace isthmus::os {
namespace {

struct walk {
  std::span<void*> out;
  std::size_t skip;
  std::size_t count = 0;
};

_Unwind_Reason_Code visit(_Unwind_Context* at, void* given) {
  auto& so_far = *static_cast<walk*>(given);
  if (so_far.count == so_far.out.size()) {
    return _URC_END_OF_STACK;
  }
  if (so_far.skip != 0) {
    --so_far.skip;
  } else if (auto* frame = reinterpret_cast<void*>(_Unwind_GetIP(at)); frame != nullptr) {
    so_far.out[so_far.count++] = frame;
  }
  return _URC_NO_REASON;
}

// Null: nobody knows.
const void* library_of(void* frame) noexcept {
  Dl_info found{};
  return dladdr(frame, &found) != 0 ? found.dli_fbase : nullptr;
}

struct frees {
  void operator()(char* text) const noexcept { std::free(text); }
};

std::string readable(const char* name) {
  int status = 0;
  const std::unique_ptr<char, frees> text{abi::__cxa_demangle(name, nullptr, nullptr, &status)};
  return text != nullptr ? text.get() : name;
}

}  // namespace

[[gnu::noinline]] std::size_t capture_stack(std::span<void*> out) noexcept {
  walk so_far{out, 1};
  _Unwind_Backtrace(&visit, &so_far);
  return so_far.count;
}

std::span<void* const> callers(std::span<void* const> frames) noexcept {
  const auto* ours = library_of(reinterpret_cast<void*>(&visit));
  const auto first = std::find_if(frames.begin(), frames.end(),
                                  [&](void* each) { return library_of(each) != ours; });
  return first == frames.end() ? frames : std::span{first, frames.end()};
}

// A return address may be the first one behind its function.
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
