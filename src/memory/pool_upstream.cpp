// SPDX-License-Identifier: Apache-2.0
#include "memory/pool_upstream.hpp"

#include <algorithm>
#include <vector>

#include "core/sizes.hpp"
#include "memory/page_map.hpp"

namespace isthmus {
namespace {

bool is_a_pools(const allocation::facts& what) noexcept {
  const auto* at = static_cast<const std::byte*>(what.base);
  const auto* const last = at + what.nbytes - 1;
  bool found = process_page_map.find(last) != nullptr;
  for (; !found && at < last; at += k_grain_bytes) {
    found = process_page_map.find(at) != nullptr;
  }
  return found;
}

}  // namespace

result<void> pool_upstream::check(memory_resource& of) {
  const char* wrong = nullptr;
  std::vector<memory_resource*> bases;
  of.collect_bases(bases);
  if (std::any_of(bases.begin(), bases.end(),
                  [](auto* each) { return each->as_pool() != nullptr; })) {
    wrong =
        "is built on another pool, whose memory this one cannot manage: use the upstream of that "
        "pool";
  } else if (of.kinds() != memory_resource::set_of(of.kind())) {
    wrong =
        "returns memory of several kinds, which a pool cannot mix: put the fallback over the pool";
  } else if (std::any_of(bases.begin(), bases.end(),
                         [&](auto* each) { return &each->where() != &of.where(); })) {
    wrong =
        "returns memory of several devices, which a pool cannot mix: put the fallback over pools";
  } else if (of.may_take_back()) {
    wrong = "releases memory that was not freed, as monotonic resources do: put it over the pool";
  }
  if (wrong != nullptr) {
    return fail(ISTHMUS_ERROR_UNSUPPORTED, "the upstream of a pool, of {} memory on {}, {}",
                kind_name(of.kind()), of.where().properties().filter, wrong);
  }
  return {};
}

result<void> pool_upstream::open() {
  if (is_there()) {
    auto made = of_->home().create_queue(of_->where());
    ISTHMUS_TRY(made);
    quiet_ = *std::move(made);
  }
  return {};
}

// Waits for work that upstream submitted to the queue, for example a prefetch.
result<ref<allocation>> pool_upstream::allocate(const allocation_request& request) {
  auto chunk = allocation::create(*quiet_, request, of_.get());
  ISTHMUS_TRY(chunk);
  if (!quiet_->quiet()) {
    std::vector<ref<event>> running;
    ISTHMUS_TRY(quiet_->unfinished(running));
    ISTHMUS_TRY(let_end_interruptibly(running));
  }
  const auto& what = (*chunk)->what();
  if (is_a_pools(what)) {
    return fail(ISTHMUS_ERROR_CALLBACK,
                "the upstream of a pool returned {} at {}, which a pool manages already: return "
                "memory of the driver, or of a resource that is not a pool",
                describe_bytes(what.nbytes), what.base);
  }
  return chunk;
}

}  // namespace isthmus
