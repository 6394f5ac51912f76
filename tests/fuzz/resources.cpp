// SPDX-License-Identifier: Apache-2.0
// Decodes bytes to memory resources over one another, on the host and on simulated devices, which
// are made, used, misused and released in any order. Whatever the order, every call returns a
// documented status, counts match what is live, nothing is leaked, and ASan and UBSan find no
// error.
#include <isthmus/experimental.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "callbacks.hpp"
#include "checks.hpp"
#include "devices.hpp"
#include "infos.hpp"
#include "pools.hpp"

namespace {

using namespace fuzz;

constexpr std::size_t k_most = 10;  // objects of each type
constexpr isthmus_status_t k_invalid = ISTHMUS_ERROR_INVALID_ARGUMENT;

class machine {
 public:
  machine(input& from, isthmus_device_t* device) : from_(from), device_(device) {
    choices = &from;
    require(isthmus_context_default(device_, &home_) == ISTHMUS_OK);
    for (isthmus_queue_t*& each : queues_) {
      require(isthmus_queue_create(home_, device_, &each) == ISTHMUS_OK);
    }
  }
  ~machine() {
    choices = nullptr;
    isthmus_scope_swap(nullptr);
    isthmus_tag_swap(nullptr);
    for (isthmus_buffer_t* each : buffers_) isthmus_buffer_release(each);
    while (!blocks_.empty()) require(give_back(blocks_.size() - 1) == ISTHMUS_OK);
    for (isthmus_queue_t* each : queues_) {
      require(isthmus_queue_wait(each, 20'000'000'000) != ISTHMUS_ERROR_TIMEOUT);
    }
    for (isthmus_scope_t* each : scopes_) isthmus_scope_release(each);
    for (isthmus_resource_t* each : resources_) isthmus_resource_release(each);
    for (isthmus_resource_t* each : monotonic_) isthmus_resource_release(each);
    // In reverse order, because resources over a counter, which may keep memory of it, were made
    // later.
    for (; !counting_.empty(); counting_.pop_back()) {
      expect_nothing_counted(counting_.back());
      isthmus_resource_release(counting_.back());
    }
    for (isthmus_queue_t* each : queues_) isthmus_queue_release(each);
    isthmus_context_release(home_);
  }

  void step() {
    switch (from_.byte() % 25) {
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
      case 13:
      case 14: return give_back();
      case 15: return new_tracker();
      case 16: return new_cutter();
      case 17: return new_prefetch_or_debug();
      case 18: return look_at_tracked();
      case 19: return verify();
      case 20: return swap_tag();
      case 21: return release_monotonic();
      case 22: return new_pool_over();
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
  // `over`: the upstreams of the new resource.
  bool keep(isthmus_status_t code, isthmus_resource_t* made,
            const std::vector<isthmus_resource_t*>& over, traits known = {}) {
    expect_documented(code);
    require((code == ISTHMUS_OK) == (made != nullptr));
    if (code != ISTHMUS_OK) return false;
    for (isthmus_resource_t* each : over) {
      known.over_monotonic |= each != nullptr && known_[each].over_monotonic;
    }
    known_[made] = known;
    keep(resources_, made, isthmus_resource_release);
    return true;
  }
  isthmus_queue_t* queue() { return queues_[from_.byte() % 2]; }

  void new_base() {
    const auto kind = static_cast<isthmus_kind_t>(from_.byte() % 5);
    isthmus_resource_t* made = nullptr;
    if (from_.byte() % 2 == 0) {
      keep(isthmus_resource_provider(home_, device_, kind, &made), made, {});
      return;
    }
    const isthmus_pool_options_t options = checked_pool_options(from_, nullptr);
    keep(isthmus_resource_pool(home_, device_, kind, &options, &made), made, {});
  }
  void new_pool_over() {
    const isthmus_pool_options_t options = checked_pool_options(from_, nullptr);
    isthmus_resource_t* upstream = any(resources_);
    isthmus_resource_t* made = nullptr;
    keep(isthmus_resource_pool_over(upstream, &options, &made), made, {upstream});
  }
  void new_custom() {
    isthmus_resource_t* under = any(resources_);
    isthmus_resource_info_t info{};
    info.struct_size = sizeof info;
    if (isthmus_resource_info(under, &info) != ISTHMUS_OK) return;
    isthmus_resource_operations_t how{};
    how.struct_size = from_.byte() == 255 ? 1 : sizeof how;
    how.allocate = &source::allocate;
    how.deallocate = from_.byte() == 255 ? nullptr : &source::deallocate;
    how.usage = from_.byte() % 2 == 0 ? nullptr : &source::usage;
    how.trim = from_.byte() % 2 == 0 ? nullptr : &source::trim;
    isthmus_resource_retain(under);
    isthmus_resource_t* made = nullptr;
    const isthmus_owner_t owner{new source{under}, &source::release};
    keep(isthmus_resource_custom(home_, device_, info.kind, &how, owner, &made), made, {under});
  }
  void new_counter() {
    isthmus_resource_t* upstream = any(resources_);
    isthmus_resource_t* made = nullptr;
    if (!keep(from_.byte() % 2 == 0 ? isthmus_resource_statistics(upstream, &made)
                                    : isthmus_resource_limit(upstream, from_.size(), &made),
              made, {upstream})) {
      return;
    }
    counting_.push_back(made);
    isthmus_resource_retain(made);
  }
  void new_chooser() {
    isthmus_resource_t* upstream = any(resources_);
    isthmus_resource_t* made = nullptr;
    switch (from_.byte() % 3) {
      case 0: {
        isthmus_resource_t* second = any(resources_);
        keep(isthmus_resource_fallback(upstream, second, &made), made, {upstream, second});
        return;
      }
      case 1: {
        const std::size_t alignment = std::size_t{1} << from_.byte() % 20;
        keep(isthmus_resource_aligned(upstream, alignment - (from_.byte() == 255 ? 1 : 0),
                                      from_.size(), &made),
             made, {upstream});
        return;
      }
      default: {
        isthmus_bin_t bins[3];
        for (isthmus_bin_t& each : bins) each = {from_.size(), any(resources_)};
        keep(isthmus_resource_binning(upstream, bins, from_.byte() % 4, &made), made,
             {upstream, bins[0].resource, bins[1].resource, bins[2].resource});
      }
    }
  }
  void new_asker() {
    isthmus_resource_t* made = nullptr;
    const isthmus_owner_t owner{new patience{from_.byte()}, &patience::release};
    const isthmus_failure_function_t ask = from_.byte() == 255 ? nullptr : &patience::call;
    isthmus_resource_t* upstream = any(resources_);
    keep(isthmus_resource_failure_callback(upstream, ask, owner, &made), made, {upstream});
  }
  void new_log() {
    isthmus_resource_t* made = nullptr;
    const char* const path = from_.byte() % 8 == 0 ? "/none/there" : "/dev/null";
    isthmus_resource_t* upstream = any(resources_);
    keep(isthmus_resource_log(upstream, path, &made), made, {upstream});
  }
  void new_tracker() {
    isthmus_resource_t* upstream = any(resources_);
    isthmus_resource_t* made = nullptr;
    const std::uint32_t count = from_.byte() % 16 == 0 ? from_.byte() : from_.byte() % 3;
    const isthmus_owner_t owner{new frames, &frames::release};
    const isthmus_stack_function_t tell = from_.byte() % 2 == 0 ? nullptr : &frames::format;
    keep(isthmus_resource_allocation_tracker(upstream, count, tell, owner, &made), made, {upstream},
         {.tracks = true});
  }
  void new_cutter() {
    isthmus_resource_t* upstream = any(resources_);
    isthmus_resource_t* made = nullptr;
    const std::size_t size = from_.size();
    const std::uint8_t which = from_.byte() % 3;
    if (which == 0) {
      if (keep(isthmus_resource_monotonic(upstream, size, &made), made, {upstream},
               {.over_monotonic = true})) {
        monotonic_.push_back(made);
        isthmus_resource_retain(made);
      }
    } else if (which == 1) {
      keep(isthmus_resource_arena(upstream, from_.byte() % 2 == 0 ? 0 : size, &made), made,
           {upstream});
    } else {
      const std::size_t blocks = from_.byte() % 16 == 0 ? from_.size() : from_.byte() % 32;
      keep(isthmus_resource_fixed_size(upstream, size, blocks, &made), made, {upstream},
           {.largest = size});
    }
  }
  void new_prefetch_or_debug() {
    isthmus_resource_t* upstream = any(resources_);
    isthmus_resource_t* made = nullptr;
    if (from_.byte() % 4 == 0) {
      keep(isthmus_resource_prefetch(upstream, &made), made, {upstream});
    } else {
      keep(isthmus_resource_debug(upstream, from_.size(), &made), made, {upstream},
           {.debug = true});
    }
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
  void look() {
    isthmus_resource_t* of = any(resources_);
    isthmus_statistics_info_t counts{};
    counts.struct_size = from_.byte() == 255 ? 1 : sizeof counts;
    isthmus_status_t code = isthmus_statistics_info(of, &counts);
    expect_documented(code);
    if (code == ISTHMUS_OK) expect_sound(counts);
    code = isthmus_scope_info(any(scopes_), &counts);
    expect_documented(code);
    if (code == ISTHMUS_OK) expect_sound(counts);
    if (from_.byte() % 4 == 0) expect_documented(isthmus_statistics_reset(of));
    isthmus_limit_info_t limit{};
    (void)read_info(from_, limit, isthmus_limit_info, of);
    require(limit.in_use_bytes <= limit.limit_bytes);
    isthmus_resource_info_t held{};
    require(read_info(from_, held, isthmus_resource_info, of) ==
            (of != nullptr ? ISTHMUS_OK : k_invalid));
    expect_documented(isthmus_log_flush(of));
  }
  void look_at_tracked() {
    isthmus_resource_t* of = any(resources_);
    visited seen;
    const isthmus_status_t code = isthmus_allocation_tracker_visit(of, &visited::see, &seen);
    expect_documented(code);
    require((code == ISTHMUS_OK) == (of != nullptr && known_[of].tracks));
    if (code != ISTHMUS_OK) return;
    expect_reported(seen, of, blocks_, known_[of].first_reported);
    expect_report(of, from_.byte());
    expect_usage(of);
    if (from_.byte() % 4 != 0) return;
    require(isthmus_allocation_tracker_reset(of) == ISTHMUS_OK);
    known_[of].first_reported = taken_;
  }
  void verify() {
    isthmus_resource_t* of = any(resources_);
    require(isthmus_resource_verify(of) == (of != nullptr ? ISTHMUS_OK : k_invalid));
    if (blocks_.empty()) return;
    const block& one = blocks_[from_.byte() % blocks_.size()];
    if (known_[one.resource].debug) expect_corruption_detected(one);
  }
  void swap_tag() {
    const char* const names[] = {"layer", "layer1", "", nullptr};
    const char* const name = names[from_.byte() % 4];
    const char* next = nullptr;
    const char* again = nullptr;
    const isthmus_status_t code = isthmus_tag_find(name, &next);
    expect_documented(code);
    require((code == ISTHMUS_OK) == (name != nullptr && *name != '\0'));
    if (name != nullptr) require(isthmus_tag_find(name, &again) == code && again == next);
    require(isthmus_tag_swap(next) == tag_);
    tag_ = next;
  }
  // Blocks of the resource must not be used after the release. A buffer may be, but resources over
  // this one could then no longer return its memory.
  void release_monotonic() {
    isthmus_resource_t* of = any(monotonic_);
    require(isthmus_monotonic_release(nullptr) == k_invalid);
    const bool used = buffers_over_monotonic_ ||
                      std::any_of(blocks_.begin(), blocks_.end(), [&](const block& each) {
                        return known_[each.resource].over_monotonic;
                      });
    if (of != nullptr && !used) require(isthmus_monotonic_release(of) == ISTHMUS_OK);
  }
  void trim() {
    isthmus_resource_t* of = any(resources_);
    expect_documented(isthmus_resource_trim(of, from_.size(), nullptr));
    isthmus_resource_info_t info{};
    info.struct_size = sizeof info;
    expect_documented(isthmus_resource_info(of, &info));
    require(info.free_bytes <= info.held_bytes);
  }
  void new_buffer() {
    isthmus_buffer_t* made = nullptr;
    const auto kind = static_cast<isthmus_kind_t>(1 + from_.byte() % 3);
    const std::size_t nbytes = from_.size();
    isthmus_resource_t* from = any(resources_);
    const isthmus_status_t code = isthmus_buffer_create(nbytes, kind, 0, queue(), from, &made);
    expect_documented(code);
    if (code != ISTHMUS_OK) return;
    buffers_over_monotonic_ |= from != nullptr && known_[from].over_monotonic &&
                               !std::count(monotonic_.begin(), monotonic_.end(), from);
    const isthmus_endpoint_t place{made, nullptr, 0};
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
    if (from != nullptr && nbytes > known_[from].largest) require(code == k_invalid);
    if (code != ISTHMUS_OK || memory == nullptr) return;
    isthmus_pointer_info_t info{};
    info.struct_size = sizeof info;
    require(isthmus_pointer_info(nullptr, memory, &info) == ISTHMUS_OK);
    const auto offset = static_cast<std::size_t>(static_cast<unsigned char*>(memory) -
                                                 static_cast<unsigned char*>(info.base));
    require(offset <= info.nbytes && nbytes <= info.nbytes - offset);
    expect_origin(info, memory);
    isthmus_resource_retain(from);
    blocks_.push_back({from, memory, nbytes, tag_, taken_++});
  }
  isthmus_status_t give_back(std::size_t which) {
    const block gone = blocks_[which];
    blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(which));
    const isthmus_status_t code =
        isthmus_resource_deallocate(gone.resource, gone.memory, gone.nbytes, 0, queues_[0]);
    isthmus_resource_release(gone.resource);
    return code;
  }
  void give_back() {
    if (blocks_.empty()) return;
    const std::size_t which = from_.byte() % blocks_.size();
    const block& one = blocks_[which];
    if (known_[one.resource].over_monotonic) return require(give_back(which) == ISTHMUS_OK);
    auto* const inside = static_cast<unsigned char*>(one.memory) + 1 + from_.byte() % 63;
    require(isthmus_resource_deallocate(one.resource, inside, one.nbytes, 0, queues_[0]) ==
            k_invalid);
    require(give_back(which) == ISTHMUS_OK);
  }
  input& from_;
  isthmus_device_t* device_;
  isthmus_context_t* home_ = nullptr;
  isthmus_queue_t* queues_[2] = {};
  std::vector<isthmus_resource_t*> resources_;
  std::map<isthmus_resource_t*, traits> known_;  // released ones included
  std::vector<isthmus_resource_t*> counting_;    // all that count or limit
  std::vector<isthmus_resource_t*> monotonic_;   // all of them
  std::vector<isthmus_scope_t*> scopes_;
  std::vector<isthmus_buffer_t*> buffers_;
  std::vector<block> blocks_;
  std::uint64_t taken_ = 0;
  const char* tag_ = nullptr;
  bool buffers_over_monotonic_ = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  input from(data, size);
  isthmus_device_t* device = open_device(from.byte(), "capacity=64KiB");
  {
    machine calls(from, device);
    for (int i = 0; i < 200 && from.more(); ++i) calls.step();
  }
  std::uint64_t violations = 0;
  if (isthmus_sim_calls(device, "violation", &violations) == ISTHMUS_OK) require(violations == 0);
  isthmus_device_release(device);
  return 0;
}
