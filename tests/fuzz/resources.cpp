// Bytes decoded to memory resources over one another, on the host and on simulated devices: made,
// used, misused and let go in any order. Whatever they are: a documented status, counts that hold
// what lives, nothing left at the end, and nothing that ASan or UBSan minds.
#include <isthmus/isthmus.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "input.hpp"

namespace {

using fuzz::expect_documented;
using fuzz::require;

constexpr std::size_t k_most = 10;  // of each noun

// Where callbacks find out what to do; null once the input is over.
fuzz::input* choices = nullptr;

// A resource of the caller's own: has what another gives, and now and then does what nobody may.
struct source {
  isthmus_resource_t* under;
  std::atomic<std::size_t> live{0};

  static source& in(void* object) { return *static_cast<source*>(object); }

  static isthmus_status_t allocate(void* object, std::size_t nbytes, std::size_t alignment,
                                   isthmus_queue_t* queue, void** pointer, const char** message) {
    require(nbytes != 0 && alignment != 0 && queue != nullptr && *pointer == nullptr);
    switch (choices == nullptr ? 255 : choices->byte()) {
      case 0: return ISTHMUS_OK;  // and NULL
      case 1: return ISTHMUS_ERROR_OUT_OF_MEMORY;
      case 2: return static_cast<isthmus_status_t>(-1000);
      case 3: return ISTHMUS_PENDING;
      case 4: *message = "none of these"; return ISTHMUS_ERROR_UNSUPPORTED;
      default: break;
    }
    const isthmus_status_t code =
        isthmus_resource_allocate(in(object).under, nbytes, alignment, queue, pointer);
    *message = isthmus_error_message();
    in(object).live += code == ISTHMUS_OK ? 1 : 0;
    return code;
  }
  static void deallocate(void* object, void* pointer, std::size_t nbytes, isthmus_queue_t* queue) {
    source& self = in(object);
    require(isthmus_resource_deallocate(self.under, pointer, nbytes, 0, queue) == ISTHMUS_OK);
    --self.live;
  }
  static void usage(void*, std::uint64_t* held, std::uint64_t* free) { *held = 2, *free = 1; }
  static std::uint64_t trim(void*, std::uint64_t keep) { return keep == 0 ? 1 : 0; }
  static void release(void* object) {
    require(in(object).live == 0);
    isthmus_resource_release(in(object).under);
    delete &in(object);
  }
};

// What is asked where there is no memory: tries again some times, or fails.
struct patience {
  std::uint8_t tries;

  static isthmus_status_t ask(void* object, std::size_t nbytes, int* retry, const char** message) {
    auto& self = *static_cast<patience*>(object);
    require(nbytes != 0 && *retry == 0);
    if (self.tries == 255) {
      *message = "no patience";
      return ISTHMUS_ERROR_CALLBACK;
    }
    *retry = self.tries != 0 ? 1 : 0;
    self.tries -= self.tries != 0 ? 1 : 0;
    return ISTHMUS_OK;
  }
  static void release(void* object) { delete static_cast<patience*>(object); }
};

class machine {
 public:
  machine(fuzz::input& from, isthmus_device_t* device) : from_(from), device_(device) {
    choices = &from;
    require(isthmus_context_default(device_, &home_) == ISTHMUS_OK);
    for (isthmus_queue_t*& each : queues_) {
      require(isthmus_queue_create(home_, device_, &each) == ISTHMUS_OK);
    }
  }
  ~machine() {
    choices = nullptr;
    isthmus_scope_swap(nullptr);
    for (isthmus_buffer_t* each : buffers_) isthmus_buffer_release(each);
    while (!blocks_.empty()) require(give_back(blocks_.size() - 1) == ISTHMUS_OK);
    for (isthmus_queue_t* each : queues_) {
      require(isthmus_queue_wait(each, 20'000'000'000) != ISTHMUS_ERROR_TIMEOUT);
    }
    for (isthmus_resource_t* each : counting_) expect_nothing_counted(each);
    for (isthmus_scope_t* each : scopes_) isthmus_scope_release(each);
    for (isthmus_resource_t* each : counting_) isthmus_resource_release(each);
    for (isthmus_resource_t* each : resources_) isthmus_resource_release(each);
    for (isthmus_queue_t* each : queues_) isthmus_queue_release(each);
    isthmus_context_release(home_);
  }

  void step() {
    switch (from_.byte() % 16) {
      case 0: return new_base();
      case 1: return new_custom();
      case 2: return new_counter();
      case 3: return new_chooser();
      case 4: return new_asker();
      case 5: return new_log();
      case 6: return new_scope();
      case 7: return swap_scope();
      case 8: return look();
      case 9: return trim();
      case 10: return new_buffer();
      case 11: return drop_buffer();
      case 12:
      case 13: return give_back();
      default: return take();
    }
  }

 private:
  template <class T>
  T* any(const std::vector<T*>& all) {
    return from_.any(all);
  }
  template <class T>
  void keep(std::vector<T*>& all, T* made, void (*release)(T*) noexcept) {
    from_.keep(all, k_most, made, release);
  }
  bool keep(isthmus_status_t code, isthmus_resource_t* made) {
    expect_documented(code);
    require((code == ISTHMUS_OK) == (made != nullptr));
    if (code == ISTHMUS_OK) keep(resources_, made, isthmus_resource_release);
    return code == ISTHMUS_OK;
  }
  isthmus_queue_t* queue() { return queues_[from_.byte() % 2]; }

  void new_base() {
    const auto kind = static_cast<isthmus_kind_t>(from_.byte() % 5);
    isthmus_resource_t* made = nullptr;
    const isthmus_status_t code = from_.byte() % 2 == 0
                                      ? isthmus_resource_pool(home_, device_, kind, nullptr, &made)
                                      : isthmus_resource_provider(home_, device_, kind, &made);
    keep(code, made);
  }
  void new_custom() {
    isthmus_resource_t* under = any(resources_);
    isthmus_resource_info_t info{};
    info.struct_size = sizeof info;
    if (isthmus_resource_query(under, &info) != ISTHMUS_OK) return;
    isthmus_resource_operations_t how{};
    how.struct_size = from_.byte() == 255 ? 1 : sizeof how;
    how.allocate = &source::allocate;
    how.deallocate = from_.byte() == 255 ? nullptr : &source::deallocate;
    how.usage = from_.byte() % 2 == 0 ? nullptr : &source::usage;
    how.trim = from_.byte() % 2 == 0 ? nullptr : &source::trim;
    isthmus_resource_retain(under);
    isthmus_resource_t* made = nullptr;
    const isthmus_owner_t owner{new source{under}, &source::release};
    keep(isthmus_resource_custom(home_, device_, info.kind, &how, owner, &made), made);
  }
  void new_counter() {
    isthmus_resource_t* upstream = any(resources_);
    isthmus_resource_t* made = nullptr;
    if (!keep(from_.byte() % 2 == 0 ? isthmus_resource_statistics(upstream, &made)
                                    : isthmus_resource_limit(upstream, from_.size(), &made),
              made)) {
      return;
    }
    counting_.push_back(made);
    isthmus_resource_retain(made);
  }
  void new_chooser() {
    isthmus_resource_t* upstream = any(resources_);
    isthmus_resource_t* made = nullptr;
    switch (from_.byte() % 3) {
      case 0: keep(isthmus_resource_fallback(upstream, any(resources_), &made), made); return;
      case 1: {
        const std::size_t alignment = std::size_t{1} << from_.byte() % 20;
        keep(isthmus_resource_aligned(upstream, alignment - (from_.byte() == 255 ? 1 : 0),
                                      from_.size(), &made),
             made);
        return;
      }
      default: {
        isthmus_bin_t bins[3];
        for (isthmus_bin_t& each : bins) each = {from_.size(), any(resources_)};
        keep(isthmus_resource_binning(upstream, bins, from_.byte() % 4, &made), made);
      }
    }
  }
  void new_asker() {
    isthmus_resource_t* made = nullptr;
    const isthmus_owner_t owner{new patience{from_.byte()}, &patience::release};
    const isthmus_failure_function_t ask = from_.byte() == 255 ? nullptr : &patience::ask;
    keep(isthmus_resource_failure_callback(any(resources_), ask, owner, &made), made);
  }
  void new_log() {
    isthmus_resource_t* made = nullptr;
    const char* const path = from_.byte() % 8 == 0 ? "/none/there" : "/dev/null";
    keep(isthmus_resource_log(any(resources_), path, &made), made);
  }
  void new_scope() {
    if (scopes_.size() == k_most) return;
    isthmus_scope_t* made = nullptr;
    const isthmus_status_t code =
        isthmus_scope_create(any(resources_), any(scopes_), from_.byte() == 255 ? nullptr : &made);
    expect_documented(code);
    if (code == ISTHMUS_OK) scopes_.push_back(made);
  }
  void swap_scope() {
    isthmus_scope_t* next = any(scopes_);
    isthmus_scope_t* was = isthmus_scope_swap(next);
    require(was == nullptr || std::find(scopes_.begin(), scopes_.end(), was) != scopes_.end());
  }
  static void expect_sound(const isthmus_statistics_t& of) {
    require(of.current_bytes <= of.peak_bytes && of.current_count <= of.peak_count);
    require((of.current_bytes == 0) == (of.current_count == 0));
  }
  void look() {
    isthmus_resource_t* of = any(resources_);
    isthmus_statistics_t counts{};
    counts.struct_size = from_.byte() == 255 ? 1 : sizeof counts;
    isthmus_status_t code = isthmus_statistics_query(of, &counts);
    expect_documented(code);
    if (code == ISTHMUS_OK) expect_sound(counts);
    code = isthmus_scope_query(any(scopes_), &counts);
    expect_documented(code);
    if (code == ISTHMUS_OK) expect_sound(counts);
    if (from_.byte() % 4 == 0) expect_documented(isthmus_statistics_reset(of));
    std::uint64_t most = 0;
    std::uint64_t in_use = 0;
    code = isthmus_limit_query(of, &most, &in_use);
    expect_documented(code);
    require(in_use <= most);
    expect_documented(isthmus_log_flush(of));
  }
  void trim() {
    isthmus_resource_t* of = any(resources_);
    expect_documented(isthmus_resource_trim(of, from_.size(), nullptr));
    isthmus_resource_info_t info{};
    info.struct_size = sizeof info;
    expect_documented(isthmus_resource_query(of, &info));
    require(info.free_bytes <= info.held_bytes);
  }
  void new_buffer() {
    isthmus_buffer_t* made = nullptr;
    const auto kind = static_cast<isthmus_kind_t>(1 + from_.byte() % 3);
    const std::size_t nbytes = from_.size();
    const isthmus_status_t code =
        isthmus_buffer_create(nbytes, kind, 0, queue(), any(resources_), &made);
    expect_documented(code);
    if (code != ISTHMUS_OK) return;
    const isthmus_place_t place{made, nullptr, 0};
    (void)isthmus_fill(queue(), &place, "x", 1, nbytes, nullptr, nullptr);
    keep(buffers_, made, isthmus_buffer_release);
  }
  void drop_buffer() {
    if (buffers_.empty()) return;
    isthmus_buffer_release(buffers_.back());
    buffers_.pop_back();
  }
  void take() {
    isthmus_resource_t* from = any(resources_);
    void* memory = nullptr;
    const std::size_t nbytes = from_.size();
    const std::size_t alignment = from_.byte() % 8 == 0 ? from_.size() : 0;
    const isthmus_status_t code =
        isthmus_resource_allocate(from, nbytes, alignment, queue(), &memory);
    expect_documented(code);
    if (code != ISTHMUS_OK || memory == nullptr) return;
    isthmus_pointer_info_t info{};
    info.struct_size = sizeof info;
    require(isthmus_pointer_query(nullptr, memory, &info) == ISTHMUS_OK);
    const auto offset = static_cast<std::size_t>(static_cast<unsigned char*>(memory) -
                                                 static_cast<unsigned char*>(info.base));
    require(offset <= info.nbytes && nbytes <= info.nbytes - offset);
    isthmus_resource_retain(from);
    blocks_.push_back({from, memory, nbytes});
  }
  isthmus_status_t give_back(std::size_t which) {
    const block gone = blocks_[which];
    blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(which));
    const isthmus_status_t code =
        isthmus_resource_deallocate(gone.from, gone.memory, gone.nbytes, 0, queues_[0]);
    isthmus_resource_release(gone.from);
    return code;
  }
  void give_back() {
    if (blocks_.empty()) return;
    const std::size_t which = from_.byte() % blocks_.size();
    const block& one = blocks_[which];
    auto* const inside = static_cast<unsigned char*>(one.memory) + 1 + from_.byte() % 63;
    require(isthmus_resource_deallocate(one.from, inside, one.nbytes, 0, queues_[0]) ==
            ISTHMUS_ERROR_INVALID_ARGUMENT);
    require(give_back(which) == ISTHMUS_OK);
  }
  // Memory of buffers goes back soon after the work on it has ended.
  static void expect_nothing_counted(isthmus_resource_t* counts) {
    for (int patience_ms = 10'000;; --patience_ms) {
      isthmus_statistics_t now{};
      now.struct_size = sizeof now;
      std::uint64_t in_use = 0;
      (void)isthmus_statistics_query(counts, &now);
      (void)isthmus_limit_query(counts, nullptr, &in_use);
      if (now.current_bytes == 0 && now.current_count == 0 && in_use == 0) return;
      require(patience_ms != 0);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  struct block {
    isthmus_resource_t* from;
    void* memory;
    std::size_t nbytes;
  };

  fuzz::input& from_;
  isthmus_device_t* device_;
  isthmus_context_t* home_ = nullptr;
  isthmus_queue_t* queues_[2] = {};
  std::vector<isthmus_resource_t*> resources_;
  std::vector<isthmus_resource_t*> counting_;  // all that count or limit
  std::vector<isthmus_scope_t*> scopes_;
  std::vector<isthmus_buffer_t*> buffers_;
  std::vector<block> blocks_;
};

isthmus_device_t* open(std::uint8_t which) {
  isthmus_device_t* device = nullptr;
  const char* const options[] = {"effect=late", "effect=random", "capacity=64KiB"};
  require((which % 4 == 3 ? isthmus_device_find("host", &device)
                          : isthmus_sim_create(options[which % 4], &device)) == ISTHMUS_OK);
  return device;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  fuzz::input from(data, size);
  isthmus_device_t* device = open(from.byte());
  {
    machine calls(from, device);
    for (int i = 0; i < 200 && from.more(); ++i) calls.step();
  }
  std::uint64_t violations = 0;
  if (isthmus_sim_calls(device, "violation", &violations) == ISTHMUS_OK) require(violations == 0);
  isthmus_device_release(device);
  return 0;
}
