// SPDX-License-Identifier: Apache-2.0
#include "memory/resources/log_resource.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/lock_guard.hpp"
#include "core/mutex.hpp"
#include "core/never_destroyed.hpp"
#include "core/thread_safety.hpp"
#include "os/process.hpp"

namespace isthmus {
namespace {

constexpr std::uint64_t k_no_row = UINT64_MAX;

// The open logs, which are flushed when the process exits. Never destroyed.
struct OpenLogs {
  Mutex lock;
  std::vector<LogResource*> all ISTHMUS_GUARDED_BY(lock);
};
OpenLogs& process_logs() {
  static NeverDestroyed<OpenLogs> only;
  return *only;
}

std::uint32_t logged_thread() noexcept {
  static std::atomic<std::uint32_t> threads{0};
  thread_local const auto number = threads.fetch_add(1, std::memory_order_relaxed) + 1;
  return number;
}

}  // namespace

Result<Ref<LogResource>> LogResource::create(MemoryResource& upstream, const char* path) {
  File file{os::open_exclusive(path)};
  if (!file && errno == EWOULDBLOCK) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "cannot create the log {}: another log, of this or another process, is being "
                "written to it: use another file, or close that log first",
                path);
  }
  // Unbuffered, since a forked child would write the content of a buffer a second time.
  if (!file || std::setvbuf(file.get(), nullptr, _IONBF, 0) != 0 ||
      std::fputs("Thread,Time,Action,Pointer,Size,Stream\n", file.get()) < 0) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "cannot create the log {}: {}", path,
                std::strerror(errno));
  }
  return make_ref<LogResource>(upstream, std::move(file));
}

LogResource::LogResource(MemoryResource& upstream, File file)
    : Adaptor{upstream}, file_{std::move(file)} {
  auto& logs = process_logs();
  const LockGuard hold{logs.lock};
  [[maybe_unused]] static const int is_registered = std::atexit([] { flush_all(); });
  logs.all.push_back(this);
}

LogResource::~LogResource() {
  auto& logs = process_logs();
  {
    const LockGuard hold{logs.lock};
    std::erase(logs.all, this);
  }
  static_cast<void>(flush());
}

void LogResource::flush_all() noexcept {
  if (os::is_forked_child()) {
    return;
  }
  auto& logs = process_logs();
  const LockGuard hold{logs.lock};
  for (auto* each : logs.all) {
    static_cast<void>(each->flush());
  }
}

LogResource::Row LogResource::row_of(Action action, const void* pointer, std::size_t nbytes,
                                     const Queue* queue) noexcept {
  Row row{{}, logged_thread(), action, pointer, nbytes, queue == nullptr ? 0 : queue->key()};
  std::timespec_get(&row.time, TIME_UTC);
  return row;
}

Result<void*> LogResource::allocate(std::size_t nbytes, std::size_t alignment, Queue& queue) {
  auto memory = Adaptor::allocate(nbytes, alignment, queue);
  try {
    log_allocation(row_of(memory ? Action::allocate : Action::failure, memory ? *memory : nullptr,
                          nbytes, &queue));
    return memory;
  } catch (const std::bad_alloc&) {
    if (memory) {
      static_cast<void>(Adaptor::deallocate(*memory, nbytes, &queue));
    }
    throw;
  }
}

void LogResource::reserve_rows(std::size_t rows) {
  if (rows_.capacity() < rows) {
    rows_.reserve(std::max(rows, 2 * rows_.capacity()));
  }
}

void LogResource::log_allocation(const Row& row) {
  bool should_flush = false;
  {
    const LockGuard hold{lock_};
    reserve_rows(rows_.size() + live_ + 2);  // this row, and those of the frees of all live blocks
    rows_.push_back(row);
    live_ += row.action == Action::allocate ? 1 : 0;
    should_flush = rows_.size() >= k_flush_rows;
  }
  if (should_flush && writing_.try_lock()) {
    write_complete_rows();
    writing_.unlock();
  }
}

// Reserves again, since rows of refused frees may have used the capacity reserved for other frees.
std::uint64_t LogResource::begin_free(const Row& row) noexcept {
  const LockGuard hold{lock_};
  try {
    reserve_rows(rows_.size() + 1);
    rows_.push_back(row);
    return first_number_ + rows_.size() - 1;
  } catch (const std::bad_alloc&) {
    return k_no_row;
  }
}

void LogResource::end_free(std::uint64_t number, bool freed) noexcept {
  const LockGuard hold{lock_};
  live_ -= freed && live_ != 0 ? 1 : 0;  // memory of another resource was not counted
  if (number == k_no_row) {
    dropped_rows_ += freed ? 1 : 0;
    return;
  }
  auto& row = rows_[number - first_number_];
  row.action = freed ? Action::free : Action::refused;
  if (!freed && &row == &rows_.back()) {
    rows_.pop_back();
  }
}

Result<void> LogResource::deallocate(void* pointer, std::size_t nbytes, Queue* after) noexcept {
  const auto number = begin_free(row_of(Action::freeing, pointer, nbytes, after));
  auto freed = Adaptor::deallocate(pointer, nbytes, after);
  end_free(number, static_cast<bool>(freed));
  return freed;
}

std::span<const LogResource::Row> LogResource::take_complete_rows() noexcept {
  const LockGuard hold{lock_};
  lost_rows_ += std::exchange(dropped_rows_, 0);
  const auto max_rows = std::min(rows_.size(), batch_.size());
  const auto end =
      std::find_if(rows_.begin(), rows_.begin() + static_cast<std::ptrdiff_t>(max_rows),
                   [](const Row& each) { return each.action == Action::freeing; });
  const auto count = static_cast<std::size_t>(end - rows_.begin());
  std::copy(rows_.begin(), end, batch_.begin());
  rows_.erase(rows_.begin(), end);
  first_number_ += count;
  return {batch_.data(), count};
}

void LogResource::write_complete_rows() noexcept {
  std::span<const Row> rows;
  do {
    rows = take_complete_rows();
    for (std::size_t done = 0; done < rows.size(); done += text_.size() / k_max_characters) {
      write(rows.subspan(done, std::min(rows.size() - done, text_.size() / k_max_characters)));
    }
  } while (rows.size() == batch_.size());
}

void LogResource::write(std::span<const Row> rows) noexcept {
  char* end = text_.data();
  for (const auto& each : rows) {
    if (each.action == Action::refused) {
      continue;
    }
    std::tm local{};
    localtime_r(&each.time.tv_sec, &local);
    const char* label = each.action == Action::allocate ? "allocate"
                        : each.action == Action::free   ? "free"
                                                        : "allocate failure";
    end = fmt::format_to_n(end, k_max_characters, "{},{:02}:{:02}:{:02}.{:06},{},{},{},{:#x}\n",
                           each.thread, local.tm_hour, local.tm_min, local.tm_sec,
                           each.time.tv_nsec / 1000, label, each.pointer, each.nbytes, each.stream)
              .out;
  }
  const auto size = static_cast<std::size_t>(end - text_.data());
  if (std::fwrite(text_.data(), 1, size, file_.get()) != size) {
    write_errno_ = errno;
    lost_rows_ += rows.size();
  }
}

Result<void> LogResource::flush() noexcept {
  const LockGuard hold{writing_};
  write_complete_rows();
  const auto lost = std::exchange(lost_rows_, 0);
  const auto error = std::exchange(write_errno_, 0);
  return lost == 0 ? Result<void>{}
                   : fail(ISTHMUS_ERROR_DRIVER, "{} rows of the log were lost: {}", lost,
                          error != 0 ? std::strerror(error) : "no memory to buffer them");
}

}  // namespace isthmus
