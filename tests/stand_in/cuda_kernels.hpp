#pragma once
// The library's kernels, as functions of the stand-in's.

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string_view>

#include "cuda_memory.hpp"

namespace stand_in {

// What a kernel may touch: a real one would end its context.
inline unsigned char* known_to_kernels(memory& all, std::uint64_t at, std::uint64_t nbytes) {
  std::uintptr_t base = 0;
  block found;
  for (const auto end : {at, at + nbytes - 1}) {
    if (!all.find(end, base, found)) {
      std::fprintf(stderr, "a kernel touched %zu bytes of the host's own\n",
                   static_cast<std::size_t>(nbytes));
      std::abort();
    }
  }
  return reinterpret_cast<unsigned char*>(at);
}

// As src/backend/cuda/ranges_kernel_ptx.hpp says it, backwards: nothing may rest on an order.
inline void copy_ranges(memory& all, std::uint64_t list, unsigned count) {
  struct entry {
    std::uint64_t destination, source, nbytes;
  };
  const auto* const entries =
      reinterpret_cast<const entry*>(known_to_kernels(all, list, count * sizeof(entry)));
  for (unsigned left = count; left != 0; --left) {
    const auto& [to, from, nbytes] = entries[left - 1];
    std::memcpy(known_to_kernels(all, to, nbytes), known_to_kernels(all, from, nbytes), nbytes);
  }
}

// As src/backend/cuda/strided_kernel_ptx.hpp says it, backwards too.
struct strided {
  struct dimension {
    std::uint64_t destination_stride, source_stride;
    unsigned count, unused;
  };
  std::uint64_t destination, source;
  unsigned units, rank, unit_bytes, unused;
  dimension dimensions[12];
};

inline void copy_strided(memory& all, const strided& what) {
  for (unsigned left = what.units; left != 0; --left) {
    auto to = what.destination;
    auto from = what.source;
    auto rest = left - 1;
    for (unsigned i = 0; i < what.rank; ++i) {
      const auto& along = what.dimensions[i];
      const auto digit = i + 1 == what.rank ? rest : rest % along.count;
      to += digit * along.destination_stride;
      from += digit * along.source_stride;
      rest /= along.count;
    }
    std::memcpy(known_to_kernels(all, to, what.unit_bytes),
                known_to_kernels(all, from, what.unit_bytes), what.unit_bytes);
  }
}

// The parameters are read when it is launched.
struct kernel {
  std::string_view name;
  std::function<void()> (*bind)(memory& all, void** parameters);
};

template <class T>
T parameter(void** all, int index) {
  return *static_cast<T*>(all[index]);
}

inline constexpr kernel k_kernels[] = {
    {"isthmus_copy_ranges",
     [](memory& all, void** given) -> std::function<void()> {
       return [&all, list = parameter<std::uint64_t>(given, 0),
               count = parameter<unsigned>(given, 1)] { copy_ranges(all, list, count); };
     }},
    {"isthmus_copy_strided", [](memory& all, void** given) -> std::function<void()> {
       return [&all, what = parameter<strided>(given, 0)] { copy_strided(all, what); };
     }}};

// That of which `image` is the text, or null.
inline const kernel* kernel_in(const char* image) {
  for (const auto& each : k_kernels) {
    if (std::strstr(image, (".entry " + std::string{each.name} + "(").c_str()) != nullptr) {
      return &each;
    }
  }
  return nullptr;
}

}  // namespace stand_in
