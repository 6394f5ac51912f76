// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the model of pool ordering knows of blocks: their identity and the bytes that they must
// hold.

#include <memory>

#include "support/backends.hpp"
#include "support/bytes.hpp"
#include "support/unified.hpp"

namespace support {

struct part {
  std::size_t begin;
  std::size_t nbytes;
};

// The expected contents. Bytes are unknown if they were never written, or if the operation that
// wrote them failed halfway.
class shadow {
 public:
  explicit shadow(std::size_t nbytes) : value_(nbytes), known_(nbytes) {}
  [[nodiscard]] std::size_t size() const noexcept { return value_.size(); }

  void fill(const part& range, std::byte value) {
    std::fill_n(at(value_, range), range.nbytes, value);
    std::fill_n(at(known_, range), range.nbytes, k_known);
  }
  void write(const part& range, const bytes& data) {
    std::copy(data.begin(), data.end(), at(value_, range));
    std::fill_n(at(known_, range), range.nbytes, k_known);
  }
  void copy(const part& range, shadow& source, const part& from) {
    std::copy_n(at(source.value_, from), from.nbytes, at(value_, range));
    std::copy_n(at(source.known_, from), from.nbytes, at(known_, range));
  }
  void forget(const part& range) { std::fill_n(at(known_, range), range.nbytes, std::byte{0}); }

  // Known bytes must be equal; unknown ones are ignored.
  void expect(const part& range, bytes got) const {
    const auto* const known = known_.data() + range.begin;
    const auto* const value = value_.data() + range.begin;
    if (std::memchr(known, 0, got.size()) != nullptr) {
      for (std::size_t i = 0; i < got.size(); ++i) {
        if (known[i] != k_known) got[i] = value[i];
      }
    }
    EXPECT_TRUE(same(got, {value, got.size()})) << "in a block of " << size() << " bytes";
  }

 private:
  static constexpr std::byte k_known{1};
  static bytes::iterator at(bytes& of, const part& where) {
    return of.begin() + static_cast<std::ptrdiff_t>(where.begin);
  }

  bytes value_;
  bytes known_;
};

inline isthmus_kind_t kind_of(const im::resource& resource) {
  isthmus_resource_info_t info{};
  info.struct_size = sizeof info;
  im::detail::check(isthmus_resource_info(resource.get(), &info));
  return info.kind;
}

// A buffer, or a block of a pool without a buffer. It is freed with work in flight.
struct model_block {
  isthmus_buffer_t* buffer;
  void* pointer;
  im::resource resource;
  im::queue queue;
  std::shared_ptr<shadow> content;

  model_block(isthmus_buffer_t* made, void* block, im::resource of, im::queue used_queue,
              std::shared_ptr<shadow> bytes_of)
      : buffer{made},
        pointer{block},
        resource{std::move(of)},
        queue{std::move(used_queue)},
        content{std::move(bytes_of)} {}
  model_block(model_block&& other) noexcept
      : buffer{std::exchange(other.buffer, nullptr)},
        pointer{std::exchange(other.pointer, nullptr)},
        resource{std::move(other.resource)},
        queue{std::move(other.queue)},
        content{std::move(other.content)} {}
  model_block& operator=(model_block&& other) noexcept {
    std::swap(buffer, other.buffer);
    std::swap(pointer, other.pointer);
    std::swap(resource, other.resource);
    std::swap(queue, other.queue);
    std::swap(content, other.content);
    return *this;
  }
  // If the driver cannot report what is running, the free fails and the block still belongs to the
  // caller, so the free is repeated.
  ~model_block() {
    isthmus_buffer_release(buffer);
    while (pointer != nullptr &&
           isthmus_resource_deallocate(resource.get(), pointer, content->size(), 0, queue.get()) !=
               ISTHMUS_OK) {
    }
  }

  [[nodiscard]] void* start() const noexcept {
    return is_bare() ? pointer : isthmus_buffer_pointer(buffer);
  }
  [[nodiscard]] bool is_bare() const noexcept { return buffer == nullptr; }
  [[nodiscard]] bool functions_may_touch() const {
    return kind_of(resource) != ISTHMUS_KIND_DEVICE;
  }
  [[nodiscard]] isthmus_endpoint_t at(std::size_t offset) const noexcept {
    return {buffer, pointer, offset};
  }
};

}  // namespace support
