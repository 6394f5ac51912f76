// SPDX-License-Identifier: Apache-2.0
// Decodes bytes to pools that run out of memory: over the driver and over resources that fail, with
// work that does not complete, and with callbacks that free memory, allocate more, and are added
// and removed. Whatever the calls, each returns a documented status, counts are consistent, nothing
// is leaked, and nothing hangs.
#include <isthmus/experimental.h>

#include <cstdint>
#include <string>
#include <vector>

#include "callbacks.hpp"
#include "checks.hpp"
#include "devices.hpp"
#include "pools.hpp"

namespace {

using namespace fuzz;

constexpr std::size_t k_most = 6;  // objects of each type

class machine {
 public:
  machine(input& from, isthmus_device_t* device) : from_(from), device_(device) {
    choices = &from;
    require(isthmus_context_default(device_, &home_) == ISTHMUS_OK);
    for (isthmus_queue_t*& each : queues_) {
      require(isthmus_queue_create(home_, device_, &each) == ISTHMUS_OK);
    }
    isthmus_device_info_t info{};
    info.struct_size = sizeof info;
    require(isthmus_device_info(device_, &info) == ISTHMUS_OK);
    most_bytes_ = info.max_allocation_bytes;
    budget_ = new_budget(from);
  }
  ~machine() {
    choices = nullptr;
    while (!oom_callbacks_.empty()) remove_oom_callback(oom_callbacks_.size() - 1, 1);
    require(callbacks_ == 0);
    (void)isthmus_no_wait_swap(0);
    // Destroying a gate fails what waits for it.
    for (isthmus_event_t* each : gates_) isthmus_event_release(each);
    while (!blocks_.empty()) give_back(blocks_.size() - 1);
    for (isthmus_queue_t* each : queues_) {
      require(isthmus_queue_wait(each, 20'000'000'000) != ISTHMUS_ERROR_TIMEOUT);
    }
    for (isthmus_resource_t* each : pools_) isthmus_resource_release(each);
    for (isthmus_resource_t* each : upstreams_) isthmus_resource_release(each);
    if (budget_ != nullptr) expect_soon([this] { return info_of(budget_).held_bytes == 0; });
    isthmus_budget_release(budget_);
    for (isthmus_queue_t* each : queues_) isthmus_queue_release(each);
    isthmus_context_release(home_);
  }

  void step() {
    switch (from_.byte() % 16) {
      case 0: return new_provider();
      case 1: return new_upstream();
      case 2: return new_pool();
      case 3: return new_pool_over();
      case 4: return add_oom_callback();
      case 5: return remove_oom_callback();
      case 6: return swap_no_wait();
      case 7: return hold();
      case 8: return let_go();
      case 9: return look();
      case 10: return trim();
      case 11: return record();
      case 12: return give_back();
      default: return take();
    }
  }

 private:
  isthmus_queue_t* queue() { return queues_[from_.byte() % 2]; }
  bool keep(isthmus_status_t code, std::vector<isthmus_resource_t*>& in, isthmus_resource_t* made) {
    expect_documented(code);
    require((code == ISTHMUS_OK) == (made != nullptr));
    if (made != nullptr) from_.keep(in, k_most, made, isthmus_resource_release);
    return made != nullptr;
  }

  void new_provider() {
    isthmus_resource_t* made = nullptr;
    const auto kind = static_cast<isthmus_kind_t>(1 + from_.byte() % 3);
    keep(isthmus_resource_provider(home_, device_, kind, &made), upstreams_, made);
  }
  // Also over a pool, which makes it unusable below another pool.
  void new_upstream() {
    isthmus_resource_t* made = nullptr;
    isthmus_resource_t* under = from_.any(from_.byte() < 240 ? upstreams_ : pools_);
    switch (from_.byte() % 6) {
      case 0: return new_custom(under);
      case 1:
        keep(isthmus_resource_limit(under, from_.size() * 512, &made), upstreams_, made);
        break;
      case 2:
        keep(isthmus_resource_fallback(under, from_.any(upstreams_), &made), upstreams_, made);
        break;
      case 3: keep(isthmus_resource_statistics(under, &made), upstreams_, made); break;
      case 4:
        keep(isthmus_resource_arena(under, from_.size() * 4096, &made), upstreams_, made);
        break;
      default: keep(isthmus_resource_prefetch(under, &made), upstreams_, made);
    }
  }
  void new_custom(isthmus_resource_t* under) {
    isthmus_resource_info_t info{};
    info.struct_size = sizeof info;
    if (isthmus_resource_info(under, &info) != ISTHMUS_OK) return;
    const isthmus_resource_operations_t how{sizeof how, &source::allocate, &source::deallocate,
                                            &source::usage, &source::trim};
    isthmus_resource_retain(under);
    const isthmus_owner_t owner{new source{under}, &source::release};
    isthmus_resource_t* made = nullptr;
    keep(isthmus_resource_custom(home_, device_, info.kind, &how, owner, &made), upstreams_, made);
  }
  void new_pool() {
    isthmus_resource_t* made = nullptr;
    const isthmus_pool_options_t options = pool_options(from_, budget_);
    const auto kind = static_cast<isthmus_kind_t>(1 + from_.byte() % 3);
    keep(isthmus_resource_pool(home_, device_, kind, &options, &made), pools_, made);
  }
  void new_pool_over() {
    isthmus_resource_t* made = nullptr;
    const isthmus_pool_options_t options = pool_options(from_, budget_);
    isthmus_resource_t* upstream = from_.any(from_.byte() < 240 ? upstreams_ : pools_);
    keep(isthmus_resource_pool_over(upstream, &options, &made), pools_, made);
  }

  // The input decides what a callback does when it is called. It is never called recursively.
  struct giver {
    machine* of;

    static std::uint64_t give(void* object, const isthmus_oom_request_t* request) {
      machine& self = *static_cast<giver*>(object)->of;
      require(request->struct_size == sizeof *request && request->nbytes != 0);
      require(request->device == self.device_);
      require(!self.inside_ && !self.no_wait_);
      self.inside_ = true;
      self.release_in_callback();
      self.inside_ = false;
      return self.from_.size();
    }
    static void release(void* object) {
      --static_cast<giver*>(object)->of->callbacks_;
      delete static_cast<giver*>(object);
    }
  };
  void release_in_callback() {
    switch (from_.byte() % 10) {
      case 0: return trim();
      case 1: return take();
      case 2: return look();
      case 3: return add_oom_callback();
      case 4: return remove_oom_callback();
      case 5: return let_go();
      case 6: return new_pool();
      case 7: return hold();
      default: return give_back();
    }
  }
  void add_oom_callback() {
    if (oom_callbacks_.size() == k_most) return;
    isthmus_oom_callback_t* made = nullptr;
    ++callbacks_;
    const isthmus_owner_t owner{new giver{this}, &giver::release};
    const isthmus_status_t code =
        isthmus_oom_callback_add(from_.byte() == 255 ? nullptr : &giver::give, owner, &made);
    expect_documented(code);
    require((code == ISTHMUS_OK) == (made != nullptr));
    if (made != nullptr) oom_callbacks_.push_back(made);
  }
  void remove_oom_callback(std::size_t which, int wait) {
    isthmus_oom_callback_t* const gone = oom_callbacks_[which];
    oom_callbacks_.erase(oom_callbacks_.begin() + static_cast<std::ptrdiff_t>(which));
    isthmus_oom_callback_remove(gone, wait);
  }
  void remove_oom_callback() {
    if (oom_callbacks_.empty()) return isthmus_oom_callback_remove(nullptr, 1);
    remove_oom_callback(from_.byte() % oom_callbacks_.size(), from_.byte() % 2);
  }
  void swap_no_wait() {
    const int next = from_.byte() % 3;
    require(isthmus_no_wait_swap(next) == no_wait_);
    no_wait_ = next;
  }

  // Blocks the queue, so that memory freed on it is waiting.
  void hold() {
    isthmus_event_t* gate = nullptr;
    isthmus_event_t* event = nullptr;
    require(isthmus_event_create(&gate) == ISTHMUS_OK);
    expect_documented(isthmus_queue_fence(queue(), &gate, 1, &event));
    isthmus_event_release(event);
    from_.keep(gates_, k_most, gate, isthmus_event_release);
  }
  void let_go() {
    if (gates_.empty()) return;
    require(isthmus_event_complete(gates_.back(), ISTHMUS_OK, nullptr) == ISTHMUS_OK);
    isthmus_event_release(gates_.back());
    gates_.pop_back();
  }
  void record() {
    if (blocks_.empty()) return;
    const auto* const memory = static_cast<unsigned char*>(blocks_.back().memory);
    if (!gates_.empty()) {
      expect_documented(isthmus_record_event(memory, gates_[from_.byte() % gates_.size()]));
    }
    expect_documented(isthmus_record_queue(memory, queue()));
  }

  void look() {
    isthmus_resource_t* of = from_.any(pools_);
    isthmus_snapshot_t seen{};
    seen.struct_size = from_.byte() == 255 ? 1 : sizeof seen;
    const isthmus_status_t code = isthmus_resource_snapshot(of, &seen);
    expect_documented(code);
    if (code == ISTHMUS_OK) {
      expect_sound(seen);
      require(seen.requested_bytes == 0 && seen.oom_stages == 0 && seen.device == nullptr);
    }
    expect_stage_counts(from_, of, from_.byte() % 10 - 1);
    if (of != nullptr) require(isthmus_resource_verify(of) == ISTHMUS_OK);
    if (budget_ != nullptr) expect_sound(budget_);
  }
  void trim() {
    isthmus_resource_t* of = from_.any(from_.byte() % 4 == 0 ? upstreams_ : pools_);
    std::uint64_t given_back = 0;
    expect_documented(isthmus_resource_trim(of, from_.size() * 1024, &given_back));
  }

  void take() {
    isthmus_resource_t* from = from_.any(pools_);
    void* memory = nullptr;
    const std::size_t nbytes = from_.size() * (from_.byte() % 2 == 0 ? 1024 : 1);
    const std::size_t alignment = from_.byte() % 8 == 0 ? from_.size() : 0;
    isthmus_resource_retain(from);  // a callback may replace this pool by another one
    const isthmus_status_t code =
        isthmus_resource_allocate(from, nbytes, alignment, queue(), &memory);
    expect_documented(code);
    if (code == ISTHMUS_ERROR_OUT_OF_MEMORY) expect_told(nbytes);
    if (code != ISTHMUS_OK || memory == nullptr) return isthmus_resource_release(from);
    isthmus_pointer_info_t info{};
    info.struct_size = sizeof info;
    require(isthmus_pointer_info(nullptr, memory, &info) == ISTHMUS_OK);
    require(info.base == memory && info.nbytes >= nbytes && info.resource == from);
    expect_origin(info, memory);
    blocks_.push_back({from, memory, nbytes, nullptr, 0});
  }
  // The snapshot describes the failed request, whose message is kept. There is none if the request
  // is larger than any allocation, because then a pool does not look for memory.
  void expect_told(std::size_t nbytes) {
    const std::string message = isthmus_error_message();
    isthmus_snapshot_t told{};
    told.struct_size = sizeof told;
    const isthmus_status_t code = isthmus_error_snapshot(&told);
    require(message == isthmus_error_message());
    require(code == (nbytes > most_bytes_ ? ISTHMUS_ERROR_NOT_FOUND : ISTHMUS_OK));
    if (code != ISTHMUS_OK) return;
    expect_sound(told);
    require(told.requested_bytes >= nbytes);
    require(told.device != nullptr && told.advice != nullptr);
    if (no_wait_ != 0) require(told.oom_stages < 2U << ISTHMUS_OOM_STAGE_GROW);
  }
  void give_back(std::size_t which) {
    const block gone = blocks_[which];
    blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(which));
    require(isthmus_resource_deallocate(gone.resource, gone.memory, gone.nbytes, 0, queue()) ==
            ISTHMUS_OK);
    isthmus_resource_release(gone.resource);
  }
  void give_back() {
    if (!blocks_.empty()) give_back(from_.byte() % blocks_.size());
  }

  input& from_;
  isthmus_device_t* device_;
  isthmus_context_t* home_ = nullptr;
  isthmus_queue_t* queues_[2] = {};
  isthmus_budget_t* budget_ = nullptr;
  std::vector<isthmus_resource_t*> upstreams_;
  std::vector<isthmus_resource_t*> pools_;
  std::vector<isthmus_oom_callback_t*> oom_callbacks_;
  std::vector<isthmus_event_t*> gates_;
  std::vector<block> blocks_;
  std::uint64_t most_bytes_ = 0;  // of one allocation
  int callbacks_ = 0;             // callbacks whose owners were not released yet
  int no_wait_ = 0;
  bool inside_ = false;  // whether a callback is running
};

// Memory freed on a queue is released soon after the queue's work has completed.
void expect_nothing_left(isthmus_device_t* device) {
  expect_soon([device] {
    isthmus_sim_info_t info{};
    info.struct_size = sizeof info;
    const isthmus_status_t code = isthmus_sim_info(device, &info);
    return code != ISTHMUS_OK || (info.device_bytes == 0 && info.host_bytes == 0);
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  input from(data, size);
  isthmus_device_t* device = open_device(from.byte(), "capacity=1MiB");
  {
    machine calls(from, device);
    for (int i = 0; i < 200 && from.more(); ++i) calls.step();
  }
  expect_nothing_left(device);
  std::uint64_t violations = 0;
  if (isthmus_sim_calls(device, "violation", &violations) == ISTHMUS_OK) require(violations == 0);
  isthmus_device_release(device);
  return 0;
}
