#pragma once
// A device of a platform: what it is, what it can do, how much memory it has.

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "core/device_losses.hpp"
#include "core/ref.hpp"
#include "core/status.hpp"

namespace isthmus {

class platform;
class queue;

using usm_kind = isthmus_kind_t;

[[nodiscard]] const char* kind_name(usm_kind kind) noexcept;
// The flag of `capabilities` that stands for a kind; 0 for anything that is no kind.
[[nodiscard]] std::uint64_t kind_capability(usm_kind kind) noexcept;

struct device_properties {
  std::string filter;  // "opencl:cpu:0"
  std::string name;
  std::string vendor;
  std::string driver_version;
  isthmus_device_type_t type = ISTHMUS_DEVICE_CPU;
  std::uint32_t compute_units = 0;
  std::uint32_t copy_engines = 0;
  std::uint64_t capabilities = 0;  // ISTHMUS_CAN_*
  std::uint64_t memory_bytes = 0;
  std::uint64_t max_allocation_bytes = 0;
  std::uint64_t base_alignment = 64;
  std::uint64_t max_alignment = 1;
  std::string pci_address;  // "0000:17:00.0"; empty: not told
  std::string lacks;        // what the driver lacks and what stands in for it
};

// Memory of a caller's.
struct host_range {
  std::byte* start = nullptr;
  std::size_t nbytes = 0;
  bool read_only = false;  // nobody writes there; the process may not be allowed to
};

struct memory_info {
  std::uint64_t free_bytes = 0;
  std::uint64_t total_bytes = 0;
};

class device : public ref_counted {
 public:
  // A device is a part of its platform, which outlives it.
  device(platform& home, device_properties properties);
  ~device() override;

  [[nodiscard]] platform& home() const noexcept { return home_; }
  [[nodiscard]] const device_properties& properties() const noexcept { return properties_; }
  [[nodiscard]] bool can(std::uint64_t capability) const noexcept {
    return (properties_.capabilities & capability) == capability;
  }
  // UNSUPPORTED where the driver does not tell.
  [[nodiscard]] virtual result<memory_info> memory() const;
  [[nodiscard]] virtual void* native() const noexcept { return nullptr; }
  // Whether a copy of `nbytes` between plain host memory, in [first, last], and memory of this
  // device's, of any context, goes faster by way of pinned memory, on queues of the default
  // context, than as it is.
  [[nodiscard]] virtual bool copies_better_staged(const void* first, const void* last,
                                                  std::size_t nbytes,
                                                  bool to_device) const noexcept;

  // The same of what is in many pieces, which the host gathers for one operation or scatters
  // behind it.
  [[nodiscard]] virtual bool copies_pieces_better_staged(const void* first,
                                                         const void* last) const noexcept;

  // Whether its queues copy short runs at regular distances, also of pinned memory, about as fast
  // as one run of as many bytes.
  [[nodiscard]] virtual bool copies_strided() const noexcept { return false; }

  // Whether its kernels and copies take any memory of the host's, and work on it as fast as on its
  // own.
  [[nodiscard]] virtual bool reaches_host_memory() const noexcept { return false; }

  // Whether its memory of device kind lies in the host's, too, where our own copies by the host are
  // cheaper than its commands.
  [[nodiscard]] virtual bool keeps_memory_on_host() const noexcept { return false; }

  // Whether plain host memory is copied better once it is registered with the driver.
  [[nodiscard]] virtual bool registers_host_memory() const noexcept { return false; }
  // For all devices of the platform, these bytes and no others of their pages. False: somebody else
  // has registered all of it, and it stays his. Pre: nothing in it is registered by us. Errors:
  // UNSUPPORTED, OUT_OF_MEMORY, INVALID_ARGUMENT, DEVICE_LOST, DRIVER.
  [[nodiscard]] virtual result<bool> register_host(const host_range& what);
  // Pre: `register_host` gave true for it, and no copy of it is in flight.
  virtual void unregister_host(void* start) noexcept;

  // The queue on the default context that serves whoever names none; made when first asked for.
  [[nodiscard]] result<ref<queue>> default_queue();

  // Bytes of a kind, of no pool's, that a thread of the library is to give back to the driver.
  void count_late(usm_kind kind, std::int64_t nbytes) noexcept { of(kind).late += nbytes; }
  // So many of these went back.
  void count_returned(usm_kind kind, std::int64_t nbytes) noexcept {
    of(kind).returned += static_cast<std::uint64_t>(nbytes);
    of(kind).late -= nbytes;  // last: who sees none late sees all that were returned
  }
  [[nodiscard]] bool has_late(usm_kind kind) const noexcept { return of(kind).late > 0; }
  // Whether an error since the last `note_alive`, or since this object was made, reported the loss
  // of a device: it may be this one. Two loads.
  [[nodiscard]] bool may_be_lost() const noexcept {
    return device_losses.load(std::memory_order_acquire) !=
           losses_ruled_out_.load(std::memory_order_relaxed);
  }
  // Its driver has answered since `device_losses` was `losses`.
  void note_alive(std::uint32_t losses) noexcept {
    losses_ruled_out_.store(losses, std::memory_order_relaxed);
  }
  // Since the beginning.
  [[nodiscard]] std::uint64_t returned_bytes(usm_kind kind) const noexcept {
    return of(kind).returned;
  }

 private:
  platform& home_;
  device_properties properties_;
  std::atomic<queue*> default_queue_{nullptr};
  std::atomic<std::uint32_t> losses_ruled_out_{device_losses.load(std::memory_order_acquire)};
  struct given_back {
    std::atomic<std::int64_t> late{0};
    std::atomic<std::uint64_t> returned{0};
  };
  // A kind that there is not, which is refused later, has none.
  [[nodiscard]] static std::size_t number_of(usm_kind kind) noexcept {
    return kind >= ISTHMUS_KIND_UNKNOWN && kind <= ISTHMUS_KIND_HOST
               ? static_cast<std::size_t>(kind)
               : std::size_t{ISTHMUS_KIND_UNKNOWN};
  }
  [[nodiscard]] given_back& of(usm_kind kind) noexcept { return given_back_[number_of(kind)]; }
  [[nodiscard]] const given_back& of(usm_kind kind) const noexcept {
    return given_back_[number_of(kind)];
  }

  std::array<given_back, ISTHMUS_KIND_HOST + 1> given_back_{};
};

}  // namespace isthmus
