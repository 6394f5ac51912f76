#include "memory/adaptors/statistics_resource.hpp"

#include <utility>

namespace isthmus {
namespace {

thread_local constinit counting_scope* thread_scope [[gnu::tls_model("initial-exec")]] = nullptr;

}  // namespace

void usage_counter::flow::enter(std::uint64_t amount) noexcept {
  const auto now = current.fetch_add(amount, std::memory_order_relaxed) + amount;
  auto most = peak.load(std::memory_order_relaxed);
  while (now > most && !peak.compare_exchange_weak(most, now, std::memory_order_relaxed)) {
  }
  total.fetch_add(amount, std::memory_order_relaxed);
}

void usage_counter::flow::reset() noexcept {
  total.store(0, std::memory_order_relaxed);
  peak.store(current.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

void usage_counter::add(std::size_t nbytes) noexcept {
  bytes_.enter(nbytes);
  count_.enter(1);
}

void usage_counter::remove(std::size_t nbytes) noexcept {
  bytes_.current.fetch_sub(nbytes, std::memory_order_relaxed);
  count_.current.fetch_sub(1, std::memory_order_relaxed);
}

usage_counter::counts usage_counter::read() const noexcept {
  const auto now = [](const auto& value) { return value.load(std::memory_order_relaxed); };
  return {{now(bytes_.current), now(count_.current)},
          {now(bytes_.peak), now(count_.peak)},
          {now(bytes_.total), now(count_.total)}};
}

void usage_counter::reset() noexcept {
  bytes_.reset();
  count_.reset();
}

counting_scope::counting_scope(statistics_resource& of, counting_scope* outer)
    : of_{&of}, outer_{outer}, next_{innermost_of(of, outer)} {}

counting_scope* counting_scope::innermost_of(const statistics_resource& of,
                                             counting_scope* from) noexcept {
  while (from != nullptr && from->of_.get() != &of) {
    from = from->outer_.get();
  }
  return from;
}

counting_scope* counting_scope::swap_current(counting_scope* next) noexcept {
  return std::exchange(thread_scope, next);
}

counting_scope* counting_scope::current_of(const statistics_resource& of) noexcept {
  return innermost_of(of, thread_scope);
}

void counting_scope::add(std::size_t nbytes) noexcept {
  for (auto* each = this; each != nullptr; each = each->next_) {
    each->counter_.add(nbytes);
  }
}

void counting_scope::remove(std::size_t nbytes) noexcept {
  for (auto* each = this; each != nullptr; each = each->next_) {
    each->counter_.remove(nbytes);
  }
}

result<void*> statistics_resource::allocate(std::size_t nbytes, std::size_t alignment, queue& on) {
  auto* within = counting_scope::current_of(*this);
  auto memory = adaptor::allocate(nbytes, alignment, on);
  ISTHMUS_TRY(memory);
  if (within != nullptr) [[unlikely]] {
    try {
      scopes_.put(*memory, ref<counting_scope>{within});
    } catch (const std::bad_alloc&) {
      static_cast<void>(adaptor::deallocate(*memory, nbytes, &on));
      throw;
    }
    within->add(nbytes);
  }
  counter_.add(nbytes);
  return memory;
}

// The note goes first: as soon as upstream has the block it may be somebody else's.
result<void> statistics_resource::deallocate(void* pointer, std::size_t nbytes,
                                             queue* behind) noexcept {
  auto noted = scopes_.take(pointer);
  auto freed = adaptor::deallocate(pointer, nbytes, behind);
  if (!freed) {
    scopes_.put_back(std::move(noted));
    return freed;
  }
  if (!noted.empty()) {
    noted.mapped()->remove(nbytes);
  }
  counter_.remove(nbytes);
  return freed;
}

}  // namespace isthmus
