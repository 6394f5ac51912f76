// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/fill.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "backend/cuda/pointer.hpp"
#include "core/expects.hpp"

namespace isthmus::cuda {
namespace {

// A fill by columns writes the memory once for each column. Therefore only this many bytes are
// filled that way and then copied repeatedly. This writes 1.4 TB/s, a plain fill 3.1 TB/s (H100).
constexpr std::size_t k_max_filled_by_columns = std::size_t{64} << 10;

template <class T>
T element(const FillPattern& pattern, std::size_t offset) noexcept {
  T value;
  std::memcpy(&value, pattern.bytes + offset, sizeof value);
  return value;
}

// The shortest pattern with the same effect.
FillPattern shortened(FillPattern pattern) noexcept {
  while (pattern.nbytes > 1 &&
         std::memcmp(pattern.bytes, pattern.bytes + pattern.nbytes / 2, pattern.nbytes / 2) == 0) {
    pattern.nbytes /= 2;
  }
  return pattern;
}

// One fill on one stream. CUDA fills with elements of 1, 2 or 4 bytes, at addresses aligned to the
// element's size. Other patterns are written as several columns of such elements.
class FillCommand {
 public:
  FillCommand(const Api& calls, CUstream stream, CUdeviceptr destination,
              const FillPattern& pattern)
      : calls_{calls},
        stream_{stream},
        destination_{destination},
        pattern_{pattern},
        width_{static_cast<std::size_t>(std::gcd(std::gcd(destination, CUdeviceptr{4}),
                                                 static_cast<CUdeviceptr>(pattern.nbytes)))} {}

  [[nodiscard]] bool is_single_fill() const noexcept { return width_ == pattern_.nbytes; }

  [[nodiscard]] CUresult fill_elements(std::size_t nbytes) const noexcept {
    const auto count = nbytes / width_;
    switch (width_) {
      case 1:
        return calls_.fill_8(destination_, element<unsigned char>(pattern_, 0), count, stream_);
      case 2:
        return calls_.fill_16(destination_, element<unsigned short>(pattern_, 0), count, stream_);
      default: return calls_.fill_32(destination_, element<unsigned>(pattern_, 0), count, stream_);
    }
  }

  // Host memory is filled by columns entirely: copies within it would block the caller until all
  // earlier work has completed.
  [[nodiscard]] CUresult fill_by_columns(std::size_t nbytes, bool is_on_device) const noexcept {
    const auto column_bytes = is_on_device ? std::min(nbytes, k_max_filled_by_columns) : nbytes;
    const auto outcome = fill_columns(column_bytes);
    return outcome == cu::k_success ? repeat(column_bytes, nbytes) : outcome;
  }

 private:
  [[nodiscard]] CUresult fill_columns(std::size_t nbytes) const noexcept {
    auto outcome = cu::k_success;
    for (std::size_t offset = 0; offset < pattern_.nbytes && outcome == cu::k_success;
         offset += width_) {
      outcome = fill_column(offset, nbytes / pattern_.nbytes);
    }
    return outcome;
  }

  // Doubles the filled part with each copy. Source and destination never overlap.
  [[nodiscard]] CUresult repeat(std::size_t filled, std::size_t nbytes) const noexcept {
    auto outcome = cu::k_success;
    while (filled < nbytes && outcome == cu::k_success) {
      const auto next = std::min(filled, nbytes - filled);
      outcome = calls_.copy(destination_ + filled, destination_, next, stream_);
      filled += next;
    }
    return outcome;
  }

  [[nodiscard]] CUresult fill_column(std::size_t offset, std::size_t rows) const noexcept {
    const auto pitch = pattern_.nbytes;
    const auto column = destination_ + offset;
    switch (width_) {
      case 1:
        return calls_.fill_column_8(column, pitch, element<unsigned char>(pattern_, offset), 1,
                                    rows, stream_);
      case 2:
        return calls_.fill_column_16(column, pitch, element<unsigned short>(pattern_, offset), 1,
                                     rows, stream_);
      default:
        return calls_.fill_column_32(column, pitch, element<unsigned>(pattern_, offset), 1, rows,
                                     stream_);
    }
  }

  const Api& calls_;
  CUstream stream_;
  CUdeviceptr destination_;
  const FillPattern pattern_;
  std::size_t width_;
};

}  // namespace

CUresult enqueue_fill(const Api& calls, CUstream stream, void* destination,
                      const FillPattern& pattern, std::size_t nbytes) noexcept {
  ISTHMUS_EXPECTS(nbytes % pattern.nbytes == 0, nbytes, pattern.nbytes);
  const FillCommand command{calls, stream, to_deviceptr(destination), shortened(pattern)};
  return command.is_single_fill()
             ? command.fill_elements(nbytes)
             : command.fill_by_columns(
                   nbytes, query_pointer(calls, destination).kind == ISTHMUS_KIND_DEVICE);
}

}  // namespace isthmus::cuda
