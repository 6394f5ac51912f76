// Fills: the driver's own, and a kernel's for what it refuses.

#include <algorithm>
#include <cstring>
#include <numeric>

#include "backend/cuda/fill_kernel_ptx.hpp"
#include "backend/cuda/pointer.hpp"
#include "backend/cuda/submit.hpp"

namespace isthmus::cuda {
namespace {

// A fill by columns goes over the memory once for each of them. So only this much is filled so, and
// copied behind itself: 1.4 TB/s written, where a plain fill has 3.1 (H100).
constexpr std::size_t k_filled_by_columns = std::size_t{64} << 10;

template <class T>
T element(const fill_pattern& pattern, std::size_t offset) noexcept {
  T value;
  std::memcpy(&value, pattern.bytes + offset, sizeof value);
  return value;
}

// The shortest pattern that is the same.
fill_pattern shortened(fill_pattern pattern) noexcept {
  while (pattern.nbytes > 1 &&
         std::memcmp(pattern.bytes, pattern.bytes + pattern.nbytes / 2, pattern.nbytes / 2) == 0) {
    pattern.nbytes /= 2;
  }
  return pattern;
}

// One fill on one stream. CUDA fills with elements of 1, 2 or 4 bytes at a multiple of that; all
// else is columns of them.
class filling {
 public:
  filling(const api& calls, stream_handle on, place destination, const fill_pattern& pattern)
      : calls_{calls},
        on_{on},
        destination_{destination},
        pattern_{pattern},
        width_{static_cast<std::size_t>(
            std::gcd(std::gcd(destination, place{4}), static_cast<place>(pattern.nbytes)))} {}

  [[nodiscard]] bool is_plain() const noexcept { return width_ == pattern_.nbytes; }

  [[nodiscard]] code fill_plainly(std::size_t nbytes) const noexcept {
    const auto count = nbytes / width_;
    switch (width_) {
      case 1: return calls_.fill_8(destination_, element<unsigned char>(pattern_, 0), count, on_);
      case 2: return calls_.fill_16(destination_, element<unsigned short>(pattern_, 0), count, on_);
      default: return calls_.fill_32(destination_, element<unsigned>(pattern_, 0), count, on_);
    }
  }

  // Copies within the host's memory would make the caller wait for all before them.
  [[nodiscard]] code fill_oddly(std::size_t nbytes, bool is_on_device) const noexcept {
    const auto by_columns = is_on_device ? std::min(nbytes, k_filled_by_columns) : nbytes;
    const auto outcome = fill_columns(by_columns);
    return outcome == cu::k_success ? repeat(by_columns, nbytes) : outcome;
  }

 private:
  [[nodiscard]] code fill_columns(std::size_t nbytes) const noexcept {
    auto outcome = cu::k_success;
    for (std::size_t at = 0; at < pattern_.nbytes && outcome == cu::k_success; at += width_) {
      outcome = fill_column(at, nbytes / pattern_.nbytes);
    }
    return outcome;
  }

  // Twice as much with each copy, which never overlaps what it reads.
  [[nodiscard]] code repeat(std::size_t filled, std::size_t nbytes) const noexcept {
    auto outcome = cu::k_success;
    while (filled < nbytes && outcome == cu::k_success) {
      const auto next = std::min(filled, nbytes - filled);
      outcome = calls_.copy(destination_ + filled, destination_, next, on_);
      filled += next;
    }
    return outcome;
  }

  [[nodiscard]] code fill_column(std::size_t at, std::size_t rows) const noexcept {
    const auto pitch = pattern_.nbytes;
    const auto top = destination_ + at;
    switch (width_) {
      case 1:
        return calls_.fill_column_8(top, pitch, element<unsigned char>(pattern_, at), 1, rows, on_);
      case 2:
        return calls_.fill_column_16(top, pitch, element<unsigned short>(pattern_, at), 1, rows,
                                     on_);
      default:
        return calls_.fill_column_32(top, pitch, element<unsigned>(pattern_, at), 1, rows, on_);
    }
  }

  const api& calls_;
  stream_handle on_;
  place destination_;
  const fill_pattern pattern_;
  std::size_t width_;
};

// Threads of a block of the kernel's, each of which writes 16 bytes at a time.
constexpr number k_fill_threads = 256;
constexpr number k_fill_blocks_a_multiprocessor = 8;

// As the kernel takes it: which byte is an address' its last four bits tell.
struct pattern_by_address {
  alignas(16) std::byte bytes[16];

  pattern_by_address(place destination, const fill_pattern& pattern) noexcept {
    for (std::size_t i = 0; i < sizeof bytes; ++i) {
      bytes[(destination + i) % sizeof bytes] = pattern.bytes[i % pattern.nbytes];
    }
  }
};

}  // namespace

kernel make_fill_kernel() noexcept { return {k_fill_ptx, "isthmus_fill"}; }

// What the driver refuses without having done anything: host memory of several handles that others
// opened for the device first (chunks.cpp). The first one loads the kernel, which waits for what
// the device has to do.
code queue::fill_by_kernel(place destination, const fill_pattern& pattern,
                           std::size_t nbytes) const noexcept {
  if (!kernels_reach(device_, pointer_to(destination), nbytes)) {
    return cu::k_error_INVALID_VALUE;
  }
  auto* const function = device_.fill_kernel().loaded(calls());
  if (function == nullptr) {
    return cu::k_error_NOT_SUPPORTED;
  }
  auto end = destination + nbytes;
  pattern_by_address bytes{destination, pattern};
  void* parameters[] = {&destination, &end, &bytes};
  const auto units = nbytes / sizeof bytes + 2;
  const auto most =
      std::size_t{device_.properties().compute_units} * k_fill_blocks_a_multiprocessor;
  const auto blocks = std::clamp<std::size_t>(units / k_fill_threads + 1, 1, most);
  return calls().launch(function, static_cast<number>(blocks), 1, 1, k_fill_threads, 1, 1, 0,
                        stream(), parameters, nullptr);
}

result<ref<event>> queue::do_fill(void* destination, const fill_pattern& pattern,
                                  std::size_t nbytes, wait_list after) {
  if (device_.is_hosts_own(destination)) {
    return fail(ISTHMUS_ERROR_UNSUPPORTED,
                "{} is the host's own memory, which CUDA does not fill: fill it on the host, or "
                "take host-kind memory",
                destination);
  }
  const auto whole = shortened(pattern);
  return submit("a fill", after, [=, this] {
    const filling how{calls(), stream(), place_of(destination), whole};
    const auto kind_is = [&](usm_kind kind) {
      return ask_pointer(calls(), destination).kind == kind;
    };
    const auto outcome = how.is_plain() ? how.fill_plainly(nbytes)
                                        : how.fill_oddly(nbytes, kind_is(ISTHMUS_KIND_DEVICE));
    return outcome == cu::k_error_INVALID_VALUE && kind_is(ISTHMUS_KIND_HOST)
               ? fill_by_kernel(place_of(destination), whole, nbytes)
               : outcome;
  });
}

}  // namespace isthmus::cuda
