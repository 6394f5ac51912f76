#include "memory/adaptors/log_resource.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "os/process.hpp"

namespace isthmus {
namespace {

// Those to be written at the end of the process. Never destroyed.
struct open_logs {
  std::mutex lock;
  std::vector<log_resource*> all;
};
open_logs& process_logs() {
  static auto* const only = new open_logs;
  return *only;
}

std::uint32_t thread_number() noexcept {
  static std::atomic<std::uint32_t> threads{0};
  thread_local const auto mine = threads.fetch_add(1, std::memory_order_relaxed) + 1;
  return mine;
}

}  // namespace

result<ref<log_resource>> log_resource::create(memory_resource& upstream, const char* path) {
  auto* file = std::fopen(path, "we");
  if (file == nullptr) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "cannot make the log {}: {}", path,
                std::strerror(errno));
  }
  // A forked child would write what is left in a buffer a second time.
  std::setvbuf(file, nullptr, _IONBF, 0);
  std::fputs("Thread,Time,Action,Pointer,Size,Stream\n", file);
  return make_ref<log_resource>(upstream, file);
}

log_resource::log_resource(memory_resource& upstream, std::FILE* file)
    : adaptor{upstream}, file_{file} {
  auto& logs = process_logs();
  const std::lock_guard hold{logs.lock};
  [[maybe_unused]] static const int watches_end = std::atexit([] { flush_all(); });
  logs.all.push_back(this);
}

log_resource::~log_resource() {
  auto& logs = process_logs();
  {
    const std::lock_guard hold{logs.lock};
    std::erase(logs.all, this);
  }
  static_cast<void>(flush());
  std::fclose(file_);
}

void log_resource::flush_all() noexcept {
  if (os::is_forked_child()) {
    return;
  }
  auto& logs = process_logs();
  const std::lock_guard hold{logs.lock};
  for (auto* each : logs.all) {
    static_cast<void>(each->flush());
  }
}

log_resource::row log_resource::row_of(action what, const void* pointer, std::size_t nbytes,
                                       const queue* on) noexcept {
  row made{{}, thread_number(), what, pointer, nbytes, on == nullptr ? 0 : on->key()};
  std::timespec_get(&made.time, TIME_UTC);
  return made;
}

result<void*> log_resource::allocate(std::size_t nbytes, std::size_t alignment, queue& on) {
  auto memory = adaptor::allocate(nbytes, alignment, on);
  try {
    note_allocation(row_of(memory ? action::allocate : action::failure, memory ? *memory : nullptr,
                           nbytes, &on));
    return memory;
  } catch (const std::bad_alloc&) {
    if (memory) {
      static_cast<void>(adaptor::deallocate(*memory, nbytes, &on));
    }
    throw;
  }
}

void log_resource::note_allocation(const row& made) {
  bool due = false;
  {
    const std::lock_guard hold{lock_};
    const auto room = rows_.size() + live_ + 2;  // this row, and its free's
    if (rows_.capacity() < room) {
      rows_.reserve(std::max(room, 2 * rows_.capacity()));
    }
    rows_.push_back(made);
    live_ += made.what == action::allocate ? 1 : 0;
    due = rows_.size() >= k_due;
  }
  if (due && writing_.try_lock()) {
    const std::lock_guard hold{writing_, std::adopt_lock};
    write_settled();
  }
}

std::uint64_t log_resource::begin_free(const row& begun) noexcept {
  const std::lock_guard hold{lock_};
  // Only frees that were refused can have used up the room: their rows mean nothing.
  if (rows_.size() == rows_.capacity()) {
    return UINT64_MAX;
  }
  rows_.push_back(begun);
  return first_number_ + rows_.size() - 1;
}

void log_resource::end_free(std::uint64_t number, bool freed) noexcept {
  const std::lock_guard hold{lock_};
  if (number == UINT64_MAX) {
    return;
  }
  auto& mine = rows_[number - first_number_];
  mine.what = freed ? action::free : action::refused;
  live_ -= freed ? 1 : 0;
  if (!freed && &mine == &rows_.back()) {
    rows_.pop_back();
  }
}

result<void> log_resource::deallocate(void* pointer, std::size_t nbytes, queue* behind) noexcept {
  const auto number = begin_free(row_of(action::freeing, pointer, nbytes, behind));
  auto freed = adaptor::deallocate(pointer, nbytes, behind);
  end_free(number, static_cast<bool>(freed));
  return freed;
}

void log_resource::take_settled(std::vector<row>& out) noexcept {
  const std::lock_guard hold{lock_};
  const auto until = std::find_if(rows_.begin(), rows_.end(),
                                  [](const row& each) { return each.what == action::freeing; });
  const auto count =
      std::min<std::size_t>(static_cast<std::size_t>(until - rows_.begin()), out.capacity());
  const auto end = rows_.begin() + static_cast<std::ptrdiff_t>(count);
  out.assign(rows_.begin(), end);
  rows_.erase(rows_.begin(), end);
  first_number_ += count;
}

// Pre: `writing_` is held.
void log_resource::write_settled() {
  std::vector<row> taken;
  taken.reserve(k_due);
  do {
    take_settled(taken);
    write(taken);
  } while (taken.size() == k_due);
}

void log_resource::write(const std::vector<row>& rows) {
  fmt::memory_buffer text;
  for (const auto& each : rows) {
    if (each.what == action::refused) {
      continue;
    }
    std::tm local{};
    localtime_r(&each.time.tv_sec, &local);
    const char* did = each.what == action::allocate ? "allocate"
                      : each.what == action::free   ? "free"
                                                    : "allocate failure";
    fmt::format_to(std::back_inserter(text), "{},{:02}:{:02}:{:02}.{:06},{},{},{},{:#x}\n",
                   each.thread, local.tm_hour, local.tm_min, local.tm_sec, each.time.tv_nsec / 1000,
                   did, each.pointer, each.nbytes, each.stream);
  }
  if (std::fwrite(text.data(), 1, text.size(), file_) != text.size()) {
    failed_with_ = errno;
  }
}

result<void> log_resource::flush() try {
  const std::lock_guard hold{writing_};
  write_settled();
  if (failed_with_ != 0) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "the log could not be written: {}",
                std::strerror(failed_with_));
  }
  return {};
} catch (const std::bad_alloc&) {
  return error::no_memory();
}

}  // namespace isthmus
