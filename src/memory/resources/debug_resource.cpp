// SPDX-License-Identifier: Apache-2.0
#include "memory/resources/debug_resource.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "core/lock_guard.hpp"
#include "core/sizes.hpp"
#include "core/threads.hpp"
#include "core/undo.hpp"
#include "memory/base/freed_before.hpp"
#include "memory/base/oom_stages.hpp"

namespace isthmus {
namespace {

// Byte values that occur in no address and in few counts.
constexpr std::byte k_zone{0xFB};
constexpr std::byte k_never_written{0xCB};
constexpr std::byte k_freed{0xDB};

void fill(std::byte* at, std::byte value, std::size_t count) noexcept {
  std::memset(at, std::to_integer<int>(value), count);
}

// The first byte that differs from `expected`; null if there is none.
const std::byte* find_mismatch(const std::byte* at, std::byte expected,
                               std::size_t count) noexcept {
  const auto* end = at + count;
  const auto* mismatch =
      std::find_if(at, end, [expected](std::byte each) { return each != expected; });
  return mismatch == end ? nullptr : mismatch;
}

// Whether no work on the queue can still use memory that was freed on it earlier. Waits for the
// work where waiting is allowed. CALLBACK if the thread's interrupt function ended the wait.
Result<bool> is_idle(Queue& queue) noexcept try {
  if (queue.is_known_idle()) {
    return true;
  }
  const bool may_wait = no_wait == 0 && !in_continuation() && !on_library_thread();
  std::vector<Ref<Event>> running;
  if (!may_wait || !queue.unfinished(running)) {
    return false;
  }
  ISTHMUS_TRY(wait_until_ended_interruptibly(running));
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

}  // namespace

Result<Ref<DebugResource>> DebugResource::create(MemoryResource& upstream,
                                                 std::size_t max_quarantined_bytes) {
  if ((upstream.kinds() & set_of(ISTHMUS_KIND_DEVICE)) != 0) {
    return fail(ISTHMUS_ERROR_UNSUPPORTED,
                "a debug resource inspects its blocks, and the host cannot access device memory: "
                "put it over a resource of shared or host memory");
  }
  if (upstream.may_release_early()) {
    return fail(ISTHMUS_ERROR_UNSUPPORTED,
                "a debug resource inspects blocks after they were freed, and a monotonic upstream "
                "may release them earlier: put the monotonic resource over the debug resource");
  }
  return make_ref<DebugResource>(upstream, max_quarantined_bytes);
}

// Returns damaged blocks to upstream, since they were not returned when they were freed.
DebugResource::~DebugResource() {
  release_oldest(0);
  live_.visit([this](const BlockRecord& record) {
    if (record.is_damaged) {
      auto copy = record;
      static_cast<void>(return_to_upstream(copy, nullptr));
    } else {
      process_cut_areas().remove(record.area);
    }
  });
}

// If upstream is out of memory, releases the quarantined blocks and retries.
Result<std::byte*> DebugResource::allocate_block(std::size_t nbytes, std::size_t alignment,
                                                 Queue& queue) {
  auto memory = Adaptor::allocate(nbytes, alignment, queue);
  if (is_out_of_memory(memory)) {
    release_oldest(0);
    memory = Adaptor::allocate(nbytes, alignment, queue);
  }
  ISTHMUS_TRY(memory);
  ensure_listed();
  return static_cast<std::byte*>(*memory);
}

Result<void*> DebugResource::allocate(std::size_t nbytes, std::size_t alignment, Queue& queue) {
  const auto zone =
      std::max(k_min_zone, alignment != 0 ? alignment : device().properties().base_alignment);
  const bool is_plain = (alignment & (alignment - 1)) == 0;
  if (!is_plain || nbytes > SIZE_MAX / 2 || zone > SIZE_MAX / 8) {
    return Adaptor::allocate(nbytes, alignment, queue);  // which reports the error
  }
  auto base = allocate_block(nbytes + 2 * zone, alignment, queue);
  ISTHMUS_TRY(base);
  Undo rollback{[&] { static_cast<void>(Adaptor::deallocate(*base, nbytes + 2 * zone, &queue)); }};
  auto idle = is_idle(queue);
  ISTHMUS_TRY(idle);
  auto record =
      *idle ? BlockRecord{*base + zone, nbytes, zone} : BlockRecord{*base, nbytes + 2 * zone, 0};
  if (record.zone != 0) {  // before another thread can find the record
    fill(record.base(), k_zone, zone);
    fill(record.start, k_never_written, nbytes);
    fill(record.start + nbytes, k_zone, zone);
  }
  insert(record);
  rollback.dismiss();
  return static_cast<void*>(record.start);
}

// Throws std::bad_alloc, without effect.
void DebugResource::insert(BlockRecord& record) {
  auto& areas = process_cut_areas();
  record.area = areas.add(
      {record.base(), record.all_bytes(), this, CutBlock{record.start, record.nbytes, true}});
  Undo rollback{[&] { areas.remove(record.area); }};
  live_.insert(record.start, record);
  rollback.dismiss();
}

Result<void> DebugResource::return_to_upstream(BlockRecord& record, Queue* after) noexcept {
  auto& areas = process_cut_areas();
  auto area = areas.extract(record.area);
  auto done = Adaptor::deallocate(record.base(), record.all_bytes(), after);
  if (!done) {
    record.area = areas.reinsert(std::move(area));
  }
  return done;
}

Result<void> DebugResource::deallocate(void* pointer, std::size_t, Queue*) noexcept {
  auto entry = live_.extract(pointer);
  if (entry.empty()) {
    return freed_.has(pointer)
               ? freed_before(pointer)
               : fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                      "{} is not a block of this resource, or lies inside one: free the pointer "
                      "that was allocated",
                      pointer);
  }
  const auto block = entry.mapped();
  Result<void> done = damage_of_live(block);
  if (!done) {
    report(done.failure());
    entry.mapped().is_damaged = true;
  } else if (block.zone == 0) {
    done = return_to_upstream(entry.mapped(), nullptr);
  } else {
    process_cut_areas().end_block(block.area);
    fill(block.start, k_freed, block.nbytes);
    quarantine(std::move(entry));
    release_oldest(max_quarantined_bytes_);
  }
  if (!done) {
    live_.reinsert(std::move(entry));
  }
  return done;
}

Error DebugResource::damage_of_live(const BlockRecord& record) noexcept {
  const auto* found = find_mismatch(record.base(), k_zone, record.zone);
  if (found == nullptr) {
    found = find_mismatch(record.start + record.nbytes, k_zone, record.zone);
  }
  return found == nullptr ? Error{}
                          : written_to(record, found, "outside of it, so the block is not freed");
}

Error DebugResource::damage_of_freed(const BlockRecord& record) noexcept {
  const auto* found = find_mismatch(record.start, k_freed, record.nbytes);
  return found == nullptr ? damage_of_live(record)
                          : written_to(record, found, "after it was freed");
}

Error DebugResource::written_to(const BlockRecord& record, const std::byte* at,
                                const char* text) noexcept {
  return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
              "something wrote to offset {} of the block of {} bytes at {}, {}", at - record.start,
              record.nbytes, static_cast<void*>(record.start), text);
}

void DebugResource::report(const Error& error) noexcept {
  std::fprintf(stderr, "isthmus: %s\n", error.message());
  const LockGuard hold{lock_};
  if (!first_error_) {
    first_error_ = error;
  }
}

// Inserts the record into `freed_` before linking it into the list: another thread may pop it from
// the list at once and then extracts it from `freed_`.
void DebugResource::quarantine(PointerTable<BlockRecord>::Entry freed) noexcept {
  auto& last = freed.mapped();
  freed_.reinsert(std::move(freed));
  const LockGuard hold{lock_};
  (newest_ == nullptr ? oldest_ : newest_->next) = &last;
  newest_ = &last;
  quarantined_bytes_ += last.all_bytes();
}

DebugResource::BlockRecord* DebugResource::pop_oldest(std::size_t max) noexcept {
  const LockGuard hold{lock_};
  auto* const first = quarantined_bytes_ > max ? oldest_ : nullptr;
  if (first != nullptr) {
    oldest_ = first->next;
    newest_ = oldest_ == nullptr ? nullptr : newest_;
    quarantined_bytes_ -= first->all_bytes();
  }
  return first;
}

std::size_t DebugResource::release_oldest(std::size_t max) noexcept {
  std::size_t nbytes = 0;
  while (auto* const oldest = pop_oldest(max)) {
    auto entry = freed_.extract(oldest->start);
    auto& block = entry.mapped();
    if (const auto bad = damage_of_freed(block)) {
      report(bad);
    }
    if (return_to_upstream(block, nullptr)) {
      nbytes += block.all_bytes();
    } else {
      process_cut_areas().remove(block.area);
    }
  }
  return nbytes;
}

std::size_t DebugResource::trim(std::size_t keep) noexcept {
  release_oldest(0);
  return Adaptor::trim(keep);
}

Result<void> DebugResource::verify() {
  Error error;
  const auto checker_of = [&error](Error (*damage)(const BlockRecord&) noexcept) {
    return [&error, damage](const BlockRecord& record) {
      if (!error) {
        error = damage(record);
      }
    };
  };
  live_.visit(checker_of(&damage_of_live));
  freed_.visit(checker_of(&damage_of_freed));
  {
    const LockGuard hold{lock_};
    error = first_error_ ? first_error_ : error;
  }
  return error ? Result<void>{std::move(error)} : Adaptor::verify();
}

}  // namespace isthmus
