// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory of the stand-in's devices: host memory whose kind and device are recorded. No device
// accesses another's memory unless a test enables it (`let_peers`).

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <string>

#include "cuda_ipc.hpp"

namespace stand_in {

enum class sort : std::uint8_t {
  device,
  managed,
  host,
  registered,
  reserved,
  mapped,
  mapped_host,
  opened
};
enum class addition : std::uint8_t { made, there_already, not_there };

using device_set = unsigned;  // one bit each

struct block {
  std::size_t nbytes = 0;
  sort of = sort::device;
  int where = 0;  // the device whose memory it is
  device_set users = ~device_set{0};
  bool write_combined = false;
  bool device_came_first = false;  // opened for the device before the host
  int file = -1;                   // mapped there
  bool for_rdma = false;
  unsigned handle_types = 0;
};

class memory {
 public:
  static constexpr int k_devices = 2;
  static constexpr std::size_t k_device_bytes = std::size_t{2} << 30;
  static constexpr std::size_t k_granularity = std::size_t{2} << 20;
  static constexpr std::size_t k_used_by_context = std::size_t{64} << 20;

  // Returns 0 if there is not enough memory.
  [[nodiscard]] std::uintptr_t allocate(std::size_t nbytes, sort of, int where) {
    const std::lock_guard hold{lock_};
    if (of != sort::host && nbytes > k_device_bytes - used(where)) {
      return 0;
    }
    const auto at = pages(nbytes, PROT_READ | PROT_WRITE);
    if (at != 0) {
      blocks_[at] = {nbytes, of, where, of == sort::device ? only(where) : all_devices()};
      used(where) += of != sort::host ? nbytes : 0;
    }
    return at;
  }
  bool free(std::uintptr_t at) {
    const std::lock_guard hold{lock_};
    const auto found = blocks_.find(at);
    if (found == blocks_.end() || found->second.of == sort::reserved ||
        found->second.of == sort::opened) {
      return false;
    }
    if (found->second.file >= 0) {
      close(found->second.file);
    }
    munmap(pointer(at), found->second.nbytes);
    used(found->second.where) -= found->second.of != sort::host ? found->second.nbytes : 0;
    blocks_.erase(found);
    return true;
  }
  // Whether the range begins in registered memory of the caller and extends beyond it.
  [[nodiscard]] bool goes_beyond(std::uintptr_t at, std::size_t nbytes) {
    const std::lock_guard hold{lock_};
    std::uintptr_t base = 0;
    block found;
    return find_in(registered_, at, base, found) && at + nbytes > base + found.nbytes;
  }
  // Whether the range is host memory of several handles, opened for the device before the host.
  [[nodiscard]] bool refuses_fill(std::uintptr_t at, std::size_t nbytes) {
    const std::lock_guard hold{lock_};
    std::uintptr_t base = 0;
    block found;
    return find_in(mapped_, at, base, found) && found.of == sort::mapped_host &&
           found.device_came_first && at + nbytes > base + found.nbytes;
  }
  // Registers memory of the caller. Each byte can be registered once, and the process must be able
  // to write it unless `read_only`.
  [[nodiscard]] addition add(std::uintptr_t at, std::size_t nbytes, bool read_only) {
    const std::lock_guard hold{lock_};
    if (nbytes == 0 || lies_in_blocks(at, nbytes)) {
      return addition::not_there;
    }
    const auto next = registered_.lower_bound(at);
    std::uintptr_t base = 0;
    block found;
    if (find_in(registered_, at, base, found) ||
        (next != registered_.end() && next->first < at + nbytes)) {
      return addition::there_already;
    }
    if (!is_mapped(at, nbytes, read_only)) {
      return addition::not_there;
    }
    registered_[at] = {nbytes, sort::registered};
    return addition::made;
  }
  bool remove(std::uintptr_t at) {
    const std::lock_guard hold{lock_};
    return registered_.erase(at) != 0;
  }
  [[nodiscard]] std::size_t registered() {
    const std::lock_guard hold{lock_};
    return registered_.size();
  }
  void note_write_combined(std::uintptr_t at) {
    const std::lock_guard hold{lock_};
    blocks_[at].write_combined = true;
  }
  [[nodiscard]] bool is_write_combined(std::uintptr_t at) {
    const std::lock_guard hold{lock_};
    std::uintptr_t base = 0;
    block found;
    return find_in(blocks_, at, base, found) && found.write_combined;
  }
  // The block that contains an address. Like the driver, reports all of a reservation if something
  // is mapped at the address.
  [[nodiscard]] bool find(std::uintptr_t at, std::uintptr_t& base, block& found) {
    const std::lock_guard hold{lock_};
    if (find_in(mapped_, at, base, found)) {
      block whole;
      static_cast<void>(find_in(blocks_, at, base, whole));
      found.nbytes = whole.nbytes;
      return true;
    }
    return find_in(registered_, at, base, found) ||
           (find_in(blocks_, at, base, found) && found.of != sort::reserved);
  }
  [[nodiscard]] std::size_t free_bytes(int where) {
    const std::lock_guard hold{lock_};
    return k_device_bytes - used(where);
  }
  // Whether work of a device may access the memory. Unknown memory is the host's own.
  [[nodiscard]] bool may_touch(int device, std::uintptr_t at, std::size_t nbytes) {
    const std::lock_guard hold{lock_};
    const auto is_open = [&](std::uintptr_t end) {
      std::uintptr_t base = 0;
      block found;
      const bool known = find_in(mapped_, end, base, found) || find_in(blocks_, end, base, found);
      return !known || (found.users & only(device)) != 0;
    };
    return is_open(at) && is_open(at + nbytes - 1);
  }

  // False for anything but a block of device memory that was allocated here.
  bool share(std::uintptr_t at, ipc_name& name) {
    const std::lock_guard hold{lock_};
    std::uintptr_t base = 0;
    block in;
    if (!find_in(blocks_, at, base, in) || in.of != sort::device) {
      return false;
    }
    auto& block = blocks_[base];
    if (block.file < 0) {
      block.file = into_file(pointer(base), block.nbytes);
    }
    name = name_of(block.file, block.nbytes);
    return block.file >= 0;
  }
  // Returns 0 if there is none. The address stays the same until it is closed as often as it was
  // opened.
  [[nodiscard]] std::uintptr_t open_shared(const ipc_name& name, int where) {
    const std::lock_guard hold{lock_};
    for (auto& [at, each] : opened_) {
      if (each.name.inode == name.inode) {
        ++each.times;
        return at;
      }
    }
    const auto at = reinterpret_cast<std::uintptr_t>(open_by_name(name));
    if (at != 0) {
      opened_[at] = {name, 1};
      blocks_[at] = {name.nbytes, sort::opened, where, only(where)};
    }
    return at;
  }
  bool close_shared(std::uintptr_t at) {
    const std::lock_guard hold{lock_};
    const auto found = opened_.find(at);
    if (found == opened_.end()) {
      return false;
    }
    if (--found->second.times == 0) {
      munmap(pointer(at), found->second.name.nbytes);
      opened_.erase(found);
      blocks_.erase(at);
    }
    return true;
  }

  // Returns 0 if there is not enough address space.
  [[nodiscard]] std::uintptr_t reserve(std::size_t nbytes, std::size_t alignment) {
    const std::lock_guard hold{lock_};
    const auto at = pages(nbytes + alignment, PROT_NONE);
    if (at == 0) {
      return 0;
    }
    const auto start = (at + alignment - 1) / alignment * alignment;
    if (start != at) {
      munmap(pointer(at), start - at);
    }
    munmap(pointer(start + nbytes), at + alignment - start);
    blocks_[start] = {nbytes, sort::reserved};
    return start;
  }
  bool release(std::uintptr_t at, std::size_t nbytes) {
    const std::lock_guard hold{lock_};
    const auto found = blocks_.find(at);
    if (found == blocks_.end() || found->second.nbytes != nbytes || maps_within(at, nbytes)) {
      return false;
    }
    munmap(pointer(at), nbytes);
    blocks_.erase(found);
    return true;
  }
  // Returns a file descriptor, or -1.
  [[nodiscard]] int create(std::size_t nbytes, bool of_host, bool for_rdma, int where,
                           unsigned handle_types = 0) {
    const std::lock_guard hold{lock_};
    if (!of_host && nbytes > k_device_bytes - used(where)) {
      return -1;
    }
    const int file = memfd_create("stand-in", MFD_CLOEXEC);
    if (file >= 0 && ftruncate(file, static_cast<off_t>(nbytes)) == 0) {
      used(where) += of_host ? 0 : nbytes;
      handles_[file] = {nbytes, where, of_host, for_rdma, handle_types};
    }
    return file;
  }
  void release_handle(int file) {
    const std::lock_guard hold{lock_};
    handles_[file].is_released = true;
    free_if_unused(file);
  }
  // Makes the next `count` mappings fail.
  void refuse_maps(long count) {
    const std::lock_guard hold{lock_};
    maps_to_refuse_ = count;
  }
  bool map(std::uintptr_t at, std::size_t nbytes, int file) {
    const std::lock_guard hold{lock_};
    std::uintptr_t base = 0;
    block in;
    if (maps_to_refuse_ > 0) {
      --maps_to_refuse_;
      return false;
    }
    if (!find_in(blocks_, at, base, in) || in.of != sort::reserved ||
        at + nbytes > base + in.nbytes || maps_within(at, nbytes) ||
        handles_[file].nbytes != nbytes) {
      return false;
    }
    mmap(pointer(at), nbytes, PROT_NONE, MAP_SHARED | MAP_FIXED, file, 0);
    mapped_[at] = {.nbytes = nbytes,
                   .of = handles_[file].of_host ? sort::mapped_host : sort::mapped,
                   .where = handles_[file].where,
                   .users = 0,
                   .file = file,
                   .for_rdma = handles_[file].for_rdma,
                   .handle_types = handles_[file].handle_types};
    ++handles_[file].maps;
    return true;
  }
  // Whether a device can access another one's memory.
  void enable_peers(bool may) {
    const std::lock_guard hold{lock_};
    peers_ = may;
  }
  [[nodiscard]] bool peers() {
    const std::lock_guard hold{lock_};
    return peers_;
  }
  // The devices that may access what is mapped there.
  [[nodiscard]] device_set users_of(std::uintptr_t at) {
    const std::lock_guard hold{lock_};
    std::uintptr_t base = 0;
    block found;
    return find_in(mapped_, at, base, found) ? found.users : 0;
  }
  // Opens a mapping. Host memory must be opened for the host as well as for devices. Device memory
  // cannot be opened for the host, and for another device only where peers are enabled.
  bool open(std::uintptr_t at, std::size_t nbytes, device_set users, bool to_host,
            bool device_came_first) {
    const std::lock_guard hold{lock_};
    std::uintptr_t base = 0;
    block found;
    if (!find_in(mapped_, at, base, found) ||
        (found.of == sort::mapped && (to_host || (!peers_ && (users & ~only(found.where)) != 0)))) {
      return false;
    }
    mapped_[base].device_came_first = device_came_first;
    mapped_[base].users = users;
    const bool is_open = users != 0 && (to_host || found.of == sort::mapped);
    return !is_open || mprotect(pointer(at), nbytes, PROT_READ | PROT_WRITE) == 0;
  }
  bool unmap(std::uintptr_t at, std::size_t nbytes) {
    const std::lock_guard hold{lock_};
    const auto found = mapped_.find(at);
    if (found == mapped_.end() || found->second.nbytes != nbytes) {
      return false;
    }
    mmap(pointer(at), nbytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE,
         -1, 0);
    const int file = found->second.file;
    mapped_.erase(found);
    --handles_[file].maps;
    free_if_unused(file);
    return true;
  }

 private:
  using blocks = std::map<std::uintptr_t, block>;
  struct opening {
    ipc_name name;
    int times = 0;
  };
  struct handle {
    std::size_t nbytes = 0;
    int where = 0;
    bool of_host = false;
    bool for_rdma = false;
    unsigned handle_types = 0;
    int maps = 0;
    bool is_released = false;
  };

  // Like the driver, keeps the memory while it is mapped anywhere.
  void free_if_unused(int file) {
    const auto& of = handles_[file];
    if (of.is_released && of.maps == 0) {
      used(of.where) -= of.of_host ? 0 : of.nbytes;
      handles_.erase(file);
      close(file);
    }
  }

  [[nodiscard]] static device_set only(int device) { return device_set{1} << device; }
  [[nodiscard]] static device_set all_devices() { return ~device_set{0}; }
  // Pre: the lock is held.
  [[nodiscard]] std::size_t& used(int where) { return used_.at(static_cast<std::size_t>(where)); }
  static void* pointer(std::uintptr_t at) { return reinterpret_cast<void*>(at); }
  static std::uintptr_t pages(std::size_t nbytes, int rights) {
    void* const at =
        mmap(nullptr, nbytes, rights, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at != MAP_FAILED ? reinterpret_cast<std::uintptr_t>(at) : 0;
  }
  static bool find_in(const blocks& all, std::uintptr_t at, std::uintptr_t& base, block& found) {
    auto next = all.upper_bound(at);
    if (next == all.begin() || at >= std::prev(next)->first + std::prev(next)->second.nbytes) {
      return false;
    }
    --next;
    base = next->first;
    found = next->second;
    return true;
  }
  [[nodiscard]] bool lies_in_blocks(std::uintptr_t at, std::size_t nbytes) const {
    std::uintptr_t base = 0;
    block found;
    const auto next = blocks_.lower_bound(at);
    return find_in(blocks_, at, base, found) ||
           (next != blocks_.end() && next->first < at + nbytes);
  }
  // Checks the kernel's list of mappings.
  [[nodiscard]] static bool is_mapped(std::uintptr_t at, std::size_t nbytes, bool read_only) {
    std::ifstream all{"/proc/self/maps"};
    const auto end = at + nbytes;
    for (std::string line; at < end && std::getline(all, line);) {
      std::uintptr_t from = 0;
      std::uintptr_t to = 0;
      char rights[5] = {};
      if (std::sscanf(line.c_str(), "%lx-%lx %4s", &from, &to, rights) == 3 && from <= at &&
          at < to && rights[0] == 'r' && (rights[1] == 'w' || read_only)) {
        at = to;
      }
    }
    return at >= end;
  }
  [[nodiscard]] bool maps_within(std::uintptr_t at, std::size_t nbytes) const {
    const auto next = mapped_.lower_bound(at);
    return next != mapped_.end() && next->first < at + nbytes;
  }

  std::mutex lock_;
  blocks blocks_;
  blocks registered_;
  blocks mapped_;
  std::map<int, handle> handles_;
  std::map<std::uintptr_t, opening> opened_;
  long maps_to_refuse_ = 0;
  bool peers_ = false;
  std::array<std::size_t, k_devices> used_{k_used_by_context, k_used_by_context};
};

}  // namespace stand_in
