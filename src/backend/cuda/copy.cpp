// Copies and fills.
//
// The driver tells by the addresses what is to be copied where. What plain host memory takes part
// in goes through a buffer of the driver's own: from there on the source may change, but the call
// returns only when as much has been copied, so that it may block the submitting thread.

#include <algorithm>
#include <cstring>
#include <numeric>

#include "backend/cuda/pointer.hpp"
#include "backend/cuda/submit.hpp"
#include "core/sizes.hpp"

namespace isthmus::cuda {
namespace {

// A fill by columns goes over the memory once for each of them. So only this much is filled so, and
// copied behind itself: 1.4 TB/s written, where a plain fill has 3.1 (H100).
constexpr std::size_t k_filled_by_columns = std::size_t{64} << 10;

// From here on a copy of plain host memory takes longer by the driver's own staging than by ours.
// To the device 256 KiB took 30 us against 35 and 1 MiB 100 against 92; from there 1 MiB 98 against
// 116 and 4 MiB 334 against 232 (H100).
constexpr std::size_t k_staged_to_device = std::size_t{512} << 10;
constexpr std::size_t k_staged_from_device = std::size_t{2} << 20;

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

 private:
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

number memory_type(const api& calls, const void* pointer) noexcept {
  return ask_pointer(calls, pointer).kind == ISTHMUS_KIND_UNKNOWN ? cu::k_memory_host
                                                                  : cu::k_memory_unified;
}

}  // namespace

bool device::is_hosts_own(const void* pointer) const noexcept {
  const made_current here{calls_, known_primary()};
  return ask_pointer(calls_, pointer).kind == ISTHMUS_KIND_UNKNOWN;
}

// Of memory that is registered in part, too.
bool device::copies_better_staged(const void* first, const void* last, std::size_t nbytes,
                                  bool to_device) const noexcept {
  return nbytes >= (to_device ? k_staged_to_device : k_staged_from_device) &&
         (is_hosts_own(first) || is_hosts_own(last));
}

namespace {

// As far as it is of one piece to the driver.
std::size_t piece_at(const api& calls, place at, std::size_t nbytes) noexcept {
  const auto known = ask_pointer(calls, pointer_to(at));
  return known.kind == ISTHMUS_KIND_HOST
             ? std::min<std::size_t>(nbytes, place_of(known.base) + known.nbytes - at)
             : nbytes;
}

}  // namespace

// A copy that begins in memory that was registered, by whomever, and goes beyond it is refused; one
// that begins before it is not.
code queue::copy_bytes(place to, place from, std::size_t nbytes) const noexcept {
  auto outcome = calls().copy(to, from, nbytes, stream());
  if (outcome != cu::k_error_INVALID_VALUE) {
    return outcome;
  }
  outcome = cu::k_success;
  for (std::size_t done = 0; done < nbytes && outcome == cu::k_success;) {
    const auto piece = std::min(piece_at(calls(), to + done, nbytes - done),
                                piece_at(calls(), from + done, nbytes - done));
    outcome = calls().copy(to + done, from + done, piece, stream());
    done += piece;
  }
  return outcome;
}

result<ref<event>> queue::do_copy(void* destination, const void* source, std::size_t nbytes,
                                  wait_list after) {
  return submit("cuMemcpyAsync", after,
                [=, this] { return copy_bytes(place_of(destination), place_of(source), nbytes); });
}

code queue::copy_pitched(const copy_2d_shape& shape) const noexcept {
  copy_2d_parameters how;
  how.source_type = memory_type(calls(), shape.source);
  how.source_host = shape.source;
  how.source = place_of(shape.source);
  how.source_pitch = shape.source_pitch;
  how.destination_type = memory_type(calls(), shape.destination);
  how.destination_host = shape.destination;
  how.destination = place_of(shape.destination);
  how.destination_pitch = shape.destination_pitch;
  how.width = shape.width;
  how.height = shape.height;
  return calls().copy_2d(&how, stream());
}

code queue::copy_rows(const copy_2d_shape& shape) const noexcept {
  auto outcome = cu::k_success;
  for (std::size_t row = 0; row < shape.height && outcome == cu::k_success; ++row) {
    outcome = copy_bytes(place_of(shape.destination) + row * shape.destination_pitch,
                         place_of(shape.source) + row * shape.source_pitch, shape.width);
  }
  return outcome;
}

result<ref<event>> queue::do_copy_2d(const copy_2d_shape& shape, wait_list after) {
  const bool contiguous = shape.height == 1 || (shape.width == shape.destination_pitch &&
                                                shape.width == shape.source_pitch);
  if (contiguous) {
    return do_copy(shape.destination, shape.source, shape.width * shape.height, after);
  }
  const auto widest = static_cast<std::size_t>(device_.traits().max_pitch);
  return submit("cuMemcpy2DAsync", after, [=, this] {
    const bool fits = std::max(shape.source_pitch, shape.destination_pitch) <= widest;
    const auto outcome = fits ? copy_pitched(shape) : cu::k_error_INVALID_VALUE;
    return outcome == cu::k_error_INVALID_VALUE ? copy_rows(shape) : outcome;
  });
}

result<ref<event>> queue::do_fill(void* destination, const fill_pattern& pattern,
                                  std::size_t nbytes, wait_list after) {
  if (device_.is_hosts_own(destination)) {
    return fail(ISTHMUS_ERROR_UNSUPPORTED,
                "{} is the host's own memory, which CUDA does not fill: fill it on the host, or "
                "take host-kind memory",
                destination);
  }
  return submit("a fill", after, [=, this, unit = shortened(pattern)] {
    const filling how{calls(), stream(), place_of(destination), unit};
    if (how.is_plain()) {
      return how.fill_plainly(nbytes);
    }
    // Copies within the host's memory make the caller wait for all before them.
    const bool copies = ask_pointer(calls(), destination).kind == ISTHMUS_KIND_DEVICE;
    const auto by_columns = copies ? std::min(nbytes, k_filled_by_columns) : nbytes;
    const auto outcome = how.fill_columns(by_columns);
    return outcome == cu::k_success ? how.repeat(by_columns, nbytes) : outcome;
  });
}

}  // namespace isthmus::cuda
