// SPDX-License-Identifier: Apache-2.0
#pragma once
// The library's kernels, implemented as host functions of the stand-in.

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string_view>

#include "cuda_memory.hpp"

namespace stand_in {

// The memory that kernels of a device can access.
struct reach {
  memory& all;
  int device;
};

// The block that a kernel accessed last: saves a lookup for each access.
struct touched {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};

// Aborts unless the kernel may access the memory: a real kernel would break its context.
inline unsigned char* known_to_kernels(const reach& of, touched& last, std::uint64_t at,
                                       std::uint64_t nbytes) {
  if (at < last.begin || at + nbytes > last.end) {
    std::uintptr_t base = 0;
    block found;
    for (const auto end : {at + nbytes - 1, at}) {
      if (!of.all.find(end, base, found) || !of.all.may_touch(of.device, end, 1)) {
        std::fprintf(stderr, "a kernel touched %zu bytes of the host's own, or another device's\n",
                     static_cast<std::size_t>(nbytes));
        std::abort();
      }
    }
    last = {base, base + found.nbytes};
  }
  return reinterpret_cast<unsigned char*>(at);
}

// The kernel of src/backend/cuda/ranges_kernel_ptx.hpp, backwards: nothing may rely on the order.
inline void copy_ranges(const reach& of, std::uint64_t list, unsigned count) {
  struct entry {
    std::uint64_t destination, source, nbytes;
  };
  touched lists, written, read;
  const auto* const entries =
      reinterpret_cast<const entry*>(known_to_kernels(of, lists, list, count * sizeof(entry)));
  for (unsigned left = count; left != 0; --left) {
    const auto& [to, from, nbytes] = entries[left - 1];
    std::memcpy(known_to_kernels(of, written, to, nbytes), known_to_kernels(of, read, from, nbytes),
                nbytes);
  }
}

// The kernel of src/backend/cuda/strided_kernel_ptx.hpp, also backwards.
struct strided {
  struct dimension {
    std::uint64_t destination_stride, source_stride;
    unsigned count, unused;
  };
  std::uint64_t destination, source;
  unsigned units, rank, unit_bytes, unused;
  dimension dimensions[12];
};

inline void copy_strided(const reach& of, const strided& what) {
  touched written, read;
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
    std::memcpy(known_to_kernels(of, written, to, what.unit_bytes),
                known_to_kernels(of, read, from, what.unit_bytes), what.unit_bytes);
  }
}

// `bind` reads the parameters at the launch.
struct kernel {
  std::string_view name;
  std::function<void()> (*bind)(const reach& of, void** parameters);
};

template <class T>
T parameter(void** all, int index) {
  return *static_cast<T*>(all[index]);
}

inline constexpr kernel k_kernels[] = {
    {"isthmus_copy_ranges",
     [](const reach& of, void** given) -> std::function<void()> {
       return [of, list = parameter<std::uint64_t>(given, 0),
               count = parameter<unsigned>(given, 1)] { copy_ranges(of, list, count); };
     }},
    {"isthmus_copy_strided", [](const reach& of, void** given) -> std::function<void()> {
       return [of, what = parameter<strided>(given, 0)] { copy_strided(of, what); };
     }}};

// A kernel as loaded on one device.
struct loaded_kernel {
  const kernel& what;
  int device;
};

// The kernel whose text is in `image`, or null.
inline const loaded_kernel* kernel_in(const char* image, int device) {
  static const loaded_kernel all[][memory::k_devices] = {{{k_kernels[0], 0}, {k_kernels[0], 1}},
                                                         {{k_kernels[1], 0}, {k_kernels[1], 1}}};
  for (const auto& each : all) {
    const std::string entry = ".entry " + std::string{each[device].what.name} + "(";
    if (std::strstr(image, entry.c_str()) != nullptr) {
      return &each[device];
    }
  }
  return nullptr;
}

}  // namespace stand_in
