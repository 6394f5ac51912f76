#pragma once
// Memory for frameworks that name a CUDA device and a stream by their numbers: which resource
// serves each device, and which queue stands for each stream.
//
// Nothing here touches Python. Any thread may call it, with or without the interpreter's lock, also
// when the interpreter is gone: what is made is never unmade. A thread keeps the last places that
// it asked for, so that a warm request takes some nanoseconds more than the resource's own.
//
// A stream is known by its device and handle, as frameworks know it themselves: one that is
// destroyed must have no memory of theirs left that was allocated on it.

#include <isthmus/isthmus.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <stdexcept>

namespace isthmus::python {

// CUDA's stream as its run-time has it: null is the legacy default one.
using cuda_stream = void*;

// What frameworks make an exception of theirs of.
class allocator_failure final : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// As the library has it of this thread's last call; `what` may be empty.
[[noreturn]] void throw_last_failure(const char* what);

// The queue of a stream, made at its first use; it lives for ever. Throws allocator_failure.
[[nodiscard]] isthmus_queue_t* queue_of_stream_number(int device, cuda_stream stream);
// CUDA's number of a device; -1 for one of another back-end.
[[nodiscard]] int number_of_cuda_device(const isthmus_device_t* device) noexcept;

struct allocator_usage {
  isthmus_statistics_t counts;
  isthmus_resource_info_t resource;
  std::uint64_t peak_held_bytes;
  bool knows_peak;
};

struct followed_resources;

class stream_allocator {
 public:
  static constexpr int k_most_devices = 64;

  constexpr stream_allocator() noexcept = default;
  stream_allocator(const stream_allocator&) = delete;
  stream_allocator& operator=(const stream_allocator&) = delete;

  // What serves its device from here on, in place of a pool of its own. Before the first request.
  void serve_with(isthmus_resource_t* resource);
  [[nodiscard]] isthmus_resource_t* given() const noexcept { return given_; }

  // `resource` (null: a pool of its own) serves that device from here on. From the first call on
  // blocks go back to the resource that each came from, whichever serves then. Costs two locks more
  // for an allocation and one for a free. Throws std::bad_alloc.
  void follow(int device, isthmus_resource_t* resource);

  // All throw allocator_failure, but for `deallocate`, which says on the standard error stream what
  // it could not do.
  [[nodiscard]] void* allocate(std::size_t nbytes, int device, cuda_stream stream);
  void deallocate(void* pointer, std::size_t nbytes, int device, cuda_stream stream) noexcept;
  // Gives what is free back to the driver.
  void trim();
  // A pool of its own on that device has at most that share of the device's memory. Before the
  // first request there.
  void limit(double share, int device);
  [[nodiscard]] allocator_usage usage(int device);
  // What that device's memory comes from.
  [[nodiscard]] isthmus_resource_t* serving(int device) { return serve(device).from; }

  struct place {
    isthmus_resource_t* resource;
    isthmus_queue_t* queue;
  };
  // What one device's memory comes from.
  struct served {
    isthmus_resource_t* counted;  // statistics over the next
    isthmus_resource_t* from;
    isthmus_budget_t* budget;  // null where `from` was given
  };

 private:
  [[nodiscard]] place find(int device, cuda_stream stream);
  // Of `follow`: retained. Null where none serves that device.
  [[nodiscard]] isthmus_resource_t* followed(int device) noexcept;
  [[nodiscard]] void* allocate_followed(std::size_t nbytes, int device, cuda_stream stream);
  void deallocate_followed(void* pointer, std::size_t nbytes, cuda_stream stream, int device);
  [[nodiscard]] void* allocate_from(const place& at, std::size_t nbytes);
  [[nodiscard]] const served& serve(int device);
  [[nodiscard]] const served* make(int device) const;
  void make_pool(served& of, int device) const;

  std::mutex making_;
  isthmus_resource_t* given_ = nullptr;
  int given_device_ = -1;
  std::array<std::optional<double>, k_most_devices> shares_{};
  std::array<std::atomic<const served*>, k_most_devices> devices_{};
  std::atomic<followed_resources*> followed_{nullptr};  // made by the first `follow`, for good
};

// The block is used on that stream too: what frees it waits for all that the stream has then. For
// blocks of any allocator here; nothing for other memory.
void note_stream(void* pointer, cuda_stream stream);
// The whole block that holds an address, and where it begins; the address itself if unknown.
[[nodiscard]] void* find_block(void* pointer, std::size_t* nbytes) noexcept;

}  // namespace isthmus::python
