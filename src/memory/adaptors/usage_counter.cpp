#include "memory/adaptors/usage_counter.hpp"

namespace isthmus {

thread_local constinit char detail::thread_mark [[gnu::tls_model("initial-exec")]] = 0;

bool usage_counter::claim() noexcept {
  const char* nobody = nullptr;
  if (owner_.load(k_relaxed) == nullptr &&
      owner_.compare_exchange_strong(nobody, &detail::thread_mark, std::memory_order_acq_rel)) {
    nobody = nullptr;  // others may have come meanwhile
    alone_.compare_exchange_strong(nobody, &detail::thread_mark, std::memory_order_acq_rel);
    return true;
  }
  alone_.store(&k_several, k_relaxed);
  return false;
}

// An allocation that compared itself with the old peak, and was not counted yet, is looked for once
// the new one is there.
void usage_counter::quantity::reset() noexcept {
  forgotten.store(all_in(), k_relaxed);
  peak.exchange(current());
  note_peak();
}

usage_counter::counts usage_counter::read() noexcept {
  counts now;
  now.current = {bytes_.current(), count_.current()};
  note_peaks();
  now.peak = {std::max(bytes_.peak.load(k_relaxed), now.current.bytes),
              std::max(count_.peak.load(k_relaxed), now.current.count)};
  now.total = {bytes_.all_in() - bytes_.forgotten.load(k_relaxed),
               count_.all_in() - count_.forgotten.load(k_relaxed)};
  return now;
}

void usage_counter::reset() noexcept {
  bytes_.reset();
  count_.reset();
}

}  // namespace isthmus
