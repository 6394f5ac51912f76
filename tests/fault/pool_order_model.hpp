// SPDX-License-Identifier: Apache-2.0
#pragma once
// A random single-threaded program that allocates from small pools, compared with a model. Blocks
// change owners while work on them is blocked, fails or depends on work that fails; driver calls
// fail now and then, and memory is short. The outcome of every operation is checked:
// - An operation fails if an event in its `after` failed, or if the driver failed it. A conflict
//   with a failed operation does not make it fail.
// - A read returns the owner's bytes, so no operation of another owner has written there.
// - One event or call reports each failure, and what failed can be repeated.
#include <algorithm>
#include <functional>
#include <memory>
#include <optional>

#include "pool_order_faults.hpp"
#include "pool_order_shadow.hpp"
#include "pool_order_unified.hpp"
#include "support/watchdog.hpp"

namespace support {

class pool_order_model {
 public:
  pool_order_model(const im::device& device, model_faults& faults, unsigned seed)
      : faults_{&faults}, random_{seed + 1}, context_{im::context({device})} {
    for (int i = 0; i < 3; ++i) queues_.emplace_back(context_, device);
    const im::budget shared(k_pool_bytes * 3 / 2);
    for (const im::kind kind : {im::kind::device, im::kind::host}) {
      if (!device.offers(kind)) continue;
      pools_.push_back(im::resource::pool(context_, kind,
                                          {.growth_bytes = k_mib,
                                           .limit_bytes = k_pool_bytes,
                                           .budget = shared,
                                           .wait = 0s,
                                           .device_wait = below(2) == 0},
                                          device));
    }
    unified_.emplace(queues_[0], pools_[0]);
  }
  pool_order_model(const pool_order_model&) = delete;
  pool_order_model& operator=(const pool_order_model&) = delete;

  void run(int steps) {
    const im::oom_callback drop_cache{
        [this](const im::oom_request&) noexcept { return drop_cached(); }};
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
      step();
      if (i % k_steps_per_round == k_steps_per_round - 1) finish_round();
    }
    finish_round();
  }
  // How often the situations that this model tests have occurred.
  struct occasions {
    int reports = 0;              // of driver failures
    int dependents = 0;           // operations that failed with a dependency
    int refused_allocations = 0;  // for lack of memory
    int handed_over = 0;          // blocks that the previous owner's work might still use

    occasions& operator+=(const occasions& more) noexcept {
      reports += more.reports;
      dependents += more.dependents;
      refused_allocations += more.refused_allocations;
      handed_over += more.handed_over;
      return *this;
    }
    void expect_all() const {
      EXPECT_GT(reports, 0);
      EXPECT_GT(dependents, 0);
      EXPECT_GT(refused_allocations, 0);
      EXPECT_GT(handed_over, 0);
    }
  };
  [[nodiscard]] const occasions& seen() const noexcept { return seen_; }

 private:
  static constexpr std::size_t k_pool_bytes = 3 * k_mib;
  static constexpr int k_steps_per_round = 40;

  // A dependency: an operation of this round or a gate.
  struct predecessor {
    bool is_gate;
    std::size_t index;
  };
  struct operation {
    std::function<void()> apply;    // updates the shadows after success
    std::function<void()> distort;  // updates them if part of the operation may have run
    std::function<isthmus_status_t()> repeat = {};  // blocking; empty: not repeated
    std::vector<predecessor> after = {};
    im::event end = {};  // empty if the call failed
    isthmus_status_t outcome = ISTHMUS_PENDING;
    bool raises = false;
  };

  std::size_t below(std::size_t limit) { return random_() % limit; }
  std::byte some_value() { return static_cast<std::byte>(1 + below(255)); }
  const im::queue& some_queue() { return queues_[below(queues_.size())]; }

  void step() {
    switch (below(16)) {
      case 0:
      case 1:
      case 2: return allocate();
      case 3: return drop();
      case 4:
      case 5: return fill();
      case 6: return write();
      case 7:
      case 8: return copy();
      case 9:
      case 10: return read();
      case 11: return call_function();
      case 12: return add_gate();
      case 13: return below(2) == 0 ? resolve_gate() : record_gate();
      case 14: return below(3) == 0 ? (void)trim() : faults_->arm(random_);
      default: return below(4) == 0 ? use_unified() : cache();
    }
  }

  // ---- blocks ----

  void allocate() {
    static constexpr std::size_t k_sizes[] = {200, 4000, 70'000, 300'000, 1'000'000};
    const std::size_t nbytes = k_sizes[below(std::size(k_sizes))];
    const im::resource& pool = pools_[below(pools_.size())];
    const im::queue& on = some_queue();
    model_block made{nullptr, nullptr, pool, on, std::make_shared<shadow>(nbytes)};
    const bool is_bare = below(4) == 0;
    const auto status =
        is_bare
            ? isthmus_resource_allocate(pool.get(), nbytes, 0, on.get(), &made.pointer)
            : isthmus_buffer_create(nbytes, kind_of(pool), 0, on.get(), pool.get(), &made.buffer);
    if (status == ISTHMUS_OK) {
      seen_.handed_over += std::ranges::count(dropped_, made.start()) != 0 ? 1 : 0;
      live_.push_back(std::move(made));
      return;
    }
    note_refusal(status);
    if (status == ISTHMUS_ERROR_OUT_OF_MEMORY) ++seen_.refused_allocations;
  }
  void drop() {
    if (live_.empty()) return;
    std::swap(live_[below(live_.size())], live_.back());
    dropped_.push_back(live_.back().start());
    live_.pop_back();
  }
  // A cached block is dropped when memory is short.
  void cache() {
    if (live_.empty()) return;
    std::swap(live_[below(live_.size())], live_.back());
    cached_.push_back(std::move(live_.back()));
    live_.pop_back();
  }
  std::uint64_t drop_cached() noexcept {
    if (cached_.empty()) return 0;
    const std::uint64_t nbytes = cached_.back().content->size();
    cached_.pop_back();
    return nbytes;
  }
  std::uint64_t trim() { return pools_[below(pools_.size())].trim(below(2) * k_mib); }

  // ---- operations ----

  // Operations on a block without a buffer all use its queue; to order others is up to the caller.
  const im::queue& queue_for(const model_block& of) {
    return of.is_bare() ? of.queue : some_queue();
  }

  std::vector<predecessor> some_predecessors() {
    std::vector<predecessor> chosen;
    if (below(3) != 0) return chosen;
    if (gates_.size() != 0) chosen.push_back({true, below(gates_.size())});
    if (!log_.empty() && below(2) == 0) {
      const auto index = below(log_.size());
      if (log_[index].end) chosen.push_back({false, index});
    }
    return chosen;
  }
  // `submit(operation, event)` calls the C interface.
  template <class Submit>
  void submit_logged(operation submitted, Submit submit) {
    submitted.after = some_predecessors();
    std::vector<isthmus_event_t*> after;
    for (const auto& each : submitted.after) {
      after.push_back(each.is_gate ? gates_.event(each.index) : log_[each.index].end.get());
    }
    isthmus_operation_t options{};
    options.struct_size = sizeof options;
    options.after = after.data();
    options.after_count = after.size();
    isthmus_event_t* end = nullptr;
    submitted.outcome = submit(options, &end);
    submitted.end = im::event::take(end);
    log_.push_back(std::move(submitted));
  }

  void fill() {
    if (live_.empty()) return;
    const model_block& to = live_[below(live_.size())];
    const part where = some_part(to);
    const std::byte value = some_value();
    const auto content = to.content;
    const auto again = [this, content, where, value]() -> isthmus_status_t {
      const model_block* it = find(content);
      if (it == nullptr) return ISTHMUS_OK;
      const auto place = it->at(where.begin);
      return isthmus_fill(it->queue.get(), &place, &value, 1, where.nbytes, nullptr, nullptr);
    };
    submit_logged(
        {[content, where, value] { content->fill(where, value); },
         [content, where] { content->forget(where); }, again},
        [&, place = to.at(where.begin)](const isthmus_operation_t& how, isthmus_event_t** end) {
          return isthmus_fill(queue_for(to).get(), &place, &value, 1, where.nbytes, &how, end);
        });
  }
  void write() {
    if (live_.empty()) return;
    const model_block& to = live_[below(live_.size())];
    const part where = some_part(to);
    const auto content = to.content;
    const auto data =
        std::make_shared<bytes>(noise(where.nbytes, static_cast<unsigned>(random_())));
    const isthmus_endpoint_t source{nullptr, data->data(), 0};
    const auto again = [this, content, where, data, source]() -> isthmus_status_t {
      const model_block* it = find(content);
      if (it == nullptr) return ISTHMUS_OK;
      const auto place = it->at(where.begin);
      return isthmus_copy(it->queue.get(), &place, &source, where.nbytes, nullptr, nullptr);
    };
    submit_logged(
        {[content, where, data] { content->write(where, *data); },
         [content, where] { content->forget(where); }, again},
        [&, place = to.at(where.begin)](const isthmus_operation_t& how, isthmus_event_t** end) {
          return isthmus_copy(queue_for(to).get(), &place, &source, where.nbytes, &how, end);
        });
  }
  void copy() {
    if (live_.size() < 2) return;
    const model_block& to = live_[below(live_.size())];
    const model_block& from = live_[below(live_.size())];
    if (&to == &from || (to.is_bare() && from.is_bare())) return;
    const std::size_t nbytes = 1 + below(std::min(to.content->size(), from.content->size()));
    const part there{below(to.content->size() - nbytes + 1), nbytes};
    const part here{below(from.content->size() - nbytes + 1), nbytes};
    submit_logged({[target = to.content, source = from.content, there, here] {
                     target->copy(there, *source, here);
                   },
                   [target = to.content, there] { target->forget(there); }},
                  [&, destination = to.at(there.begin), source = from.at(here.begin)](
                      const isthmus_operation_t& how, isthmus_event_t** end) {
                    const im::queue& on = from.is_bare() ? from.queue : queue_for(to);
                    return isthmus_copy(on.get(), &destination, &source, nbytes, &how, end);
                  });
  }
  void read() {
    if (live_.empty()) return;
    const model_block& from = live_[below(live_.size())];
    const part where = some_part(from);
    const auto got = std::make_shared<bytes>(where.nbytes);
    const isthmus_endpoint_t target{nullptr, got->data(), 0};
    submit_logged(
        {[content = from.content, where, got] { content->expect(where, *got); },
         [got] { got->clear(); }},
        [&, source = from.at(where.begin)](const isthmus_operation_t& how, isthmus_event_t** end) {
          return isthmus_copy(queue_for(from).get(), &target, &source, where.nbytes, &how, end);
        });
  }
  // The function writes, or fails before it writes.
  void call_function() {
    if (live_.empty()) return;
    const model_block& to = live_[below(live_.size())];
    if (to.is_bare() || !to.functions_may_touch()) return;
    struct written {
      std::byte value;
      bool raises;
    };
    const bool raises = below(2) == 0;
    auto* const argument = new written{some_value(), raises};
    const part whole{0, to.content->size()};
    operation made{
        [content = to.content, whole, value = argument->value] { content->fill(whole, value); },
        [content = to.content, whole] { content->forget(whole); }};
    made.raises = raises;
    submit_logged(std::move(made), [&](const isthmus_operation_t& how, isthmus_event_t** end) {
      const auto function = [](void* object, const isthmus_view_t* all, std::size_t,
                               const char** message) -> isthmus_status_t {
        const auto* asked = static_cast<const written*>(object);
        *message = "the function raises";
        if (asked->raises) return ISTHMUS_ERROR_CALLBACK;
        std::fill_n(static_cast<std::byte*>(all->data), all->nbytes, asked->value);
        return ISTHMUS_OK;
      };
      return isthmus_queue_submit(some_queue().get(), function,
                                  {argument, [](void* it) { delete static_cast<written*>(it); }},
                                  &to.buffer, 1, how.after, how.after_count, end);
    });
  }
  part some_part(const model_block& of) {
    const std::size_t size = of.content->size();
    if (below(2) == 0) return {0, size};
    const std::size_t begin = below(size);
    return {begin, 1 + below(size - begin)};
  }
  const model_block* find(const std::shared_ptr<shadow>& content) const {
    for (const auto* among : {&live_, &cached_}) {
      const auto found = std::ranges::find(*among, content, &model_block::content);
      if (found != among->end()) return &*found;
    }
    return nullptr;
  }

  // ---- blocked and failing work ----

  void add_gate() {
    isthmus_event_t* const gate = gates_.add();
    if (below(2) == 0) return;  // only for use in `after`
    isthmus_event_t* reached = nullptr;
    note_refusal(isthmus_queue_fence(some_queue().get(), &gate, 1, &reached));
    isthmus_event_release(reached);
  }
  void record_gate() {
    if (live_.empty() || gates_.size() == 0) return;
    const model_block& on = live_[below(live_.size())];
    if (on.is_bare()) return;
    note_refusal(isthmus_buffer_record_event(on.buffer, gates_.event(below(gates_.size()))));
  }
  void resolve_gate() {
    if (gates_.size() != 0) gates_.resolve(below(gates_.size()), below(2) == 0);
  }
  void resolve_gates() {
    for (std::size_t i = 0; i < gates_.size(); ++i) gates_.resolve(i, below(2) == 0);
  }
  void use_unified() {
    resolve_gates();  // the call may wait for what the gates block
    reports_ += unified_->use(random_);
  }
  // The outcome of a call that has no event. Out of memory just means that a pool is full.
  void note_refusal(isthmus_status_t status) {
    if (status == ISTHMUS_ERROR_DRIVER) ++reports_;
    EXPECT_TRUE(status == ISTHMUS_OK || status == ISTHMUS_ERROR_DRIVER ||
                status == ISTHMUS_ERROR_OUT_OF_MEMORY)
        << isthmus_error_message();
  }

  // ---- outcomes ----

  void finish_round() {
    resolve_gates();
    for (operation& each : log_) {
      if (!each.end) continue;
      each.outcome = isthmus_event_wait(each.end.get(), 20'000'000'000);
      EXPECT_NE(each.outcome, ISTHMUS_ERROR_TIMEOUT) << "it hangs";
    }
    for (const im::queue& each : queues_) each.wait();
    reports_ += unified_->flush_errors();
    const bool failed = faults_->disarm();
    for (const operation& each : log_) account_for(each);
    EXPECT_LE(reports_, failed ? 1 : 0) << "reported more than once";
    if (failed && faults_->is_reported()) {
      EXPECT_EQ(reports_, 1) << "nobody reports the failure";
    }
    seen_.reports += reports_;
    reports_ = 0;
    repeat_failed();
    expect_all();
    log_.clear();
    dropped_.clear();
    gates_ = {};
  }
  [[nodiscard]] bool comes_after_failure(const operation& one) const {
    return std::ranges::any_of(one.after, [&](const predecessor& each) {
      return each.is_gate ? gates_.failed(each.index) : log_[each.index].outcome != ISTHMUS_OK;
    });
  }
  void account_for(const operation& one) {
    switch (one.outcome) {
      case ISTHMUS_OK:
        EXPECT_FALSE(comes_after_failure(one)) << "it depends on what failed";
        EXPECT_FALSE(one.raises);
        return one.apply();
      case ISTHMUS_ERROR_DEPENDENCY:
        EXPECT_TRUE(comes_after_failure(one)) << "it depends on nothing that failed";
        ++seen_.dependents;
        return;
      case ISTHMUS_ERROR_CALLBACK: EXPECT_TRUE(one.raises); return;
      default:
        EXPECT_TRUE(one.outcome == ISTHMUS_ERROR_DRIVER ||
                    one.outcome == ISTHMUS_ERROR_OUT_OF_MEMORY)
            << isthmus_status_name(one.outcome);
        ++reports_;
        if (!faults_->moves_nothing()) one.distort();
    }
  }
  void repeat_failed() {
    for (const operation& each : log_) {
      const bool was_refused = each.outcome == ISTHMUS_ERROR_DRIVER;
      if (!was_refused || !each.repeat || each.outcome == ISTHMUS_OK) continue;
      EXPECT_EQ(each.repeat(), ISTHMUS_OK) << isthmus_error_message();
      each.apply();
    }
  }
  void expect_all() {
    for (const auto* of : {&live_, &cached_}) {
      for (const model_block& each : *of) {
        bytes got(each.content->size());
        const auto source = each.at(0);
        const isthmus_endpoint_t target{nullptr, got.data(), 0};
        EXPECT_EQ(isthmus_copy(each.queue.get(), &target, &source, got.size(), nullptr, nullptr),
                  ISTHMUS_OK)
            << isthmus_error_message();
        each.content->expect({0, got.size()}, got);
      }
    }
    EXPECT_EQ(unified_->expect(), 0);
    for (const im::resource& each : pools_) EXPECT_NO_THROW(each.verify());
  }

  model_faults* faults_;
  std::minstd_rand random_;
  im::context context_;
  std::vector<im::queue> queues_;
  std::vector<im::resource> pools_;
  std::vector<model_block> live_;
  std::vector<model_block> cached_;
  std::optional<evicted_unified> unified_;
  model_gates gates_;
  std::vector<operation> log_;
  std::vector<void*> dropped_;  // in this round
  int reports_ = 0;             // in this round
  occasions seen_;
};

}  // namespace support
