// Pointers to either copy, for reading, for writing, and for writing exactly some bytes.

#include <utility>

#include "os/process.hpp"
#include "unified/unified_buffer.hpp"

namespace isthmus {

// Where nothing is owed or on its way this is a lock and some loads.
result<const std::byte*> unified_buffer::read_host(const byte_range& range) {
  const auto held = enter();
  if (auto bad = refuse(range)) {
    return bad;
  }
  if (!host_is_there_ || !owed_host_.empty() || !flights_.empty()) {
    ISTHMUS_TRY(download({range, nullptr, waiting::here}));
  }
  return host_->view() + range.begin;
}

result<std::byte*> unified_buffer::begin_host_view(const byte_range& range) {
  auto read = read_host(range);
  ISTHMUS_TRY(read);
  views_.fetch_add(1, std::memory_order_acq_rel);
  return const_cast<std::byte*>(*read);
}

// A look that finds no view any more finds `unseen_` set.
void unified_buffer::end_host_view() noexcept {
  unseen_.store(true, std::memory_order_seq_cst);
  if (views_.fetch_sub(1, std::memory_order_acq_rel) == 1 &&
      dead_.load(std::memory_order_acquire)) {
    free();
  }
}

result<std::byte*> unified_buffer::begin_host_write(const byte_range& range, bool keeps) {
  const auto held = enter();
  if (auto bad = refuse(range)) {
    return bad;
  }
  if (keeps) {
    ISTHMUS_TRY(download({range, nullptr, waiting::here}));
    ISTHMUS_TRY(host_->snapshot({range}));
  } else {
    ISTHMUS_TRY(need_host());
    if (!std::exchange(host_is_there_, true) && device_is_there_) {
      owed_host_ = {all()};
    }
    ISTHMUS_TRY(let_land(range));
  }
  return host_->library() + range.begin;
}

// All of a range that is not kept was written, whatever the device had there.
result<void> unified_buffer::end_host_write(const byte_range& range, bool kept) {
  const auto held = enter();
  if (auto bad = refuse(range)) {
    return bad;
  }
  ISTHMUS_TRY(settle());
  ISTHMUS_TRY(host_->publish({range}));
  host_->done({range});
  if (!kept || one_memory_) {
    owed_host_.remove({range});
  }
  return take_in({range});
}

result<ref<buffer>> unified_buffer::device(const sync_request& wanted) {
  const auto held = enter();
  if (auto bad = refuse(wanted.range)) {
    return bad;
  }
  ISTHMUS_TRY(upload(wanted));
  auto& on = chosen(wanted);
  return &on == on_.get() ? result<ref<buffer>>{device_} : device_->on_queue(on);
}

result<ref<buffer>> unified_buffer::begin_device_write(const sync_request& wanted) {
  const auto held = enter();
  auto made = device(wanted);
  ISTHMUS_TRY(made);
  if (host_is_there_ && !one_memory_) {
    range_set lost;
    host_->refine(wanted.range, lost);
    ISTHMUS_TRY(take_in(std::move(lost)));
  }
  return made;
}

}  // namespace isthmus
