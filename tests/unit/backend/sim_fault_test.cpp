// SPDX-License-Identifier: Apache-2.0
// Injected faults: the n-th call of a kind fails, and devices are lost.

#include "core/text.hpp"
#include "unit/backend/sim_fixture.hpp"

namespace isthmus {
namespace {

using sim_test::expect_failure;
using sim_test::expect_value;
using sim_test::rig;

struct trial {
  const char* kind;
  Status code;
  bool (*attempt)(rig&, Result<void>&);
};

template <class T>
bool keep(Result<void>& outcome, Result<T> got) {
  const bool good{got};
  outcome = good ? Result<void>{} : Result<void>{got.take_error()};
  return good;
}

unsigned char* shared_byte(rig& sim) {
  static unsigned char byte = 0;
  static_cast<void>(sim);
  return &byte;
}

const trial k_trials[] = {
    {"allocate", ISTHMUS_ERROR_OUT_OF_MEMORY,
     [](rig& sim, Result<void>& outcome) {
       auto got = sim.test_context->allocate(*sim.test_device, {ISTHMUS_KIND_DEVICE, 10, 0});
       if (got) {
         sim.free(*got, 10);
       }
       return keep(outcome, std::move(got));
     }},
    {"context", ISTHMUS_ERROR_DRIVER,
     [](rig& sim, Result<void>& outcome) {
       Device* const member = sim.test_device.get();
       return keep(outcome, sim.test_device->platform().create_context({&member, 1}));
     }},
    {"queue", ISTHMUS_ERROR_DRIVER,
     [](rig& sim, Result<void>& outcome) {
       return keep(outcome, Queue::create(*sim.test_context, *sim.test_device));
     }},
    {"copy", ISTHMUS_ERROR_DRIVER,
     [](rig& sim, Result<void>& outcome) {
       static unsigned char to = 0;
       return keep(outcome, sim.queue->copy(&to, shared_byte(sim), 1, {}));
     }},
    {"copy_2d", ISTHMUS_ERROR_DRIVER,
     [](rig& sim, Result<void>& outcome) {
       static unsigned char to = 0;
       return keep(outcome, sim.queue->copy_2d({&to, 1, shared_byte(sim), 1, 1, 1}, {}));
     }},
    {"fill", ISTHMUS_ERROR_DRIVER,
     [](rig& sim, Result<void>& outcome) {
       return keep(outcome, sim.queue->fill(shared_byte(sim), {}, 1, {}));
     }},
    {"fence", ISTHMUS_ERROR_DRIVER,
     [](rig& sim, Result<void>& outcome) { return keep(outcome, sim.queue->fence({})); }},
    {"event", ISTHMUS_ERROR_DRIVER,
     [](rig& sim, Result<void>& outcome) {
       const auto gate = make_ref<HostEvent>();
       const bool good = keep(outcome, sim.queue->fence(std::vector<Ref<Event>>{gate}));
       gate->finish({});
       return good;
     }},
    {"prefetch", ISTHMUS_ERROR_DRIVER,
     [](rig& sim, Result<void>& outcome) {
       return keep(outcome, sim.queue->prefetch(shared_byte(sim), 1, false, {}));
     }},
    {"advise", ISTHMUS_ERROR_DRIVER,
     [](rig& sim, Result<void>& outcome) {
       return keep(outcome, sim.queue->advise(shared_byte(sim), 1, 0, {}));
     }},
};

TEST(sim_fault, the_nth_call_of_each_kind_fails_once) {
  for (const auto& [kind, code, attempt] : k_trials) {
    rig sim;
    sim.configure(formatted("fail={}:2", kind));
    const auto before = sim.calls(kind);
    Result<void> outcome;
    EXPECT_TRUE(attempt(sim, outcome)) << kind;
    EXPECT_FALSE(attempt(sim, outcome)) << kind;
    expect_failure(outcome, code, formatted("{} call number {}", kind, before + 2));
    EXPECT_TRUE(attempt(sim, outcome)) << kind;
    EXPECT_EQ(sim.calls(kind), before + 3);
    EXPECT_TRUE(sim.queue->wait({}));
  }
}

TEST(sim_fault, any_counts_them_all) {
  rig sim;
  const auto before = sim.calls("any");
  sim.configure("fail=any:3,fail=fence:3");
  static_cast<void>(expect_value(sim.queue->fence({})));
  sim.free(sim.make(1), 1);  // the third call is a free, which cannot fail
  static_cast<void>(expect_value(sim.queue->fence({})));
  expect_failure(sim.queue->fence({}), ISTHMUS_ERROR_DRIVER);
  static_cast<void>(expect_value(sim.queue->fence({})));
  EXPECT_EQ(sim.calls("any"), before + 6);
  EXPECT_EQ(sim.calls("free"), 1U);
  sim.configure("fail=any:1,fail=none");
  EXPECT_TRUE(sim.queue->fence({}));
}

// The call itself succeeds. Dependents of the operation fail too; later operations of the queue
// run.
TEST(sim_fault, an_operation_may_fail_once_the_device_comes_to_it) {
  for (const auto* effect : {"effect=early", "effect=late"}) {
    rig sim{effect};
    const auto second = expect_value(Queue::create(*sim.test_context, *sim.test_device));
    const unsigned char from = 1;
    unsigned char first = 0;
    unsigned char failed = 0;
    unsigned char next = 0;
    const auto gate = make_ref<HostEvent>();
    sim.configure("fail=operation:2");
    EXPECT_TRUE(sim.copy(&first, &from, 1)->wait({}));
    static_cast<void>(expect_value(sim.queue->fence({})));  // moves nothing
    const auto refused = sim.copy(&failed, &from, 1, {gate});
    const auto dependent = expect_value(second->fence(std::vector{refused}));
    const auto follower = sim.copy(&next, &from, 1);
    gate->finish({});
    expect_failure(refused->wait({}), ISTHMUS_ERROR_DRIVER, "operation number 2");
    expect_failure(dependent->wait({}), ISTHMUS_ERROR_DEPENDENCY, "operation number 2");
    EXPECT_TRUE(follower->wait({}));
    EXPECT_EQ(first, 1);
    EXPECT_EQ(failed, 0);
    EXPECT_EQ(next, 1);
    EXPECT_EQ(sim.calls("operation"), 3U);
  }
}

TEST(sim_fault, a_device_can_begin_with_faults) {
  auto where = expect_value(create_simulated_device("fail=context:1"));
  expect_failure(Platform::default_queue(*where), ISTHMUS_ERROR_DRIVER, "context call number 1");
  EXPECT_TRUE(Platform::default_queue(*where));
}

TEST(sim_fault, unknown_kinds_and_devices) {
  rig sim;
  expect_failure(simulated_calls(*sim.test_device, "jump"), ISTHMUS_ERROR_INVALID_ARGUMENT, "jump");
  expect_failure(configure_simulated_device(*sim.test_device, "capacity=1"),
                 ISTHMUS_ERROR_INVALID_ARGUMENT, "capacity");
}

void expect_all_lost(rig& sim) {
  unsigned char byte = 0;
  Device* const member = sim.test_device.get();
  expect_failure(sim.test_context->allocate(*sim.test_device, {ISTHMUS_KIND_HOST, 1, 0}),
                 ISTHMUS_ERROR_DEVICE_LOST);
  expect_failure(sim.test_device->platform().create_context({&member, 1}),
                 ISTHMUS_ERROR_DEVICE_LOST);
  expect_failure(Queue::create(*sim.test_context, *sim.test_device), ISTHMUS_ERROR_DEVICE_LOST);
  expect_failure(sim.queue->fence({}), ISTHMUS_ERROR_DEVICE_LOST);
  expect_failure(sim.queue->fill(&byte, {}, 1, {}), ISTHMUS_ERROR_DEVICE_LOST);
  expect_failure(sim.test_device->memory(), ISTHMUS_ERROR_DEVICE_LOST);
}

TEST(sim_lost, pending_work_ends_and_only_frees_still_succeed) {
  for (const auto* effect : {"effect=early", "effect=late"}) {
    rig sim{effect};
    auto* const memory = sim.make(16);
    unsigned char byte = 0;
    const auto gate = make_ref<HostEvent>();
    const auto running = sim.copy(memory, &byte, 1);
    const auto blocked = sim.copy(memory, &byte, 1, {gate});
    const auto behind = expect_value(sim.queue->fence({}));
    sim.configure("lost=now");
    for (const auto& each : {running, blocked, behind}) {
      ASSERT_TRUE(each->settled());
      expect_failure(each->wait({}), ISTHMUS_ERROR_DEVICE_LOST, "lost");
      EXPECT_TRUE(each->times());
    }
    expect_all_lost(sim);
    sim.free(memory, 16);
    EXPECT_EQ(expect_value(state_of_simulated_device(*sim.test_device)).device_bytes, 0U);
    gate->finish({});
    EXPECT_TRUE(sim.queue->wait({}));
  }
}

TEST(sim_lost, after_so_many_calls) {
  rig sim;
  unsigned char from = 1;
  unsigned char to = 0;
  const auto done = sim.copy(&to, &from, 1);
  ASSERT_TRUE(done->wait({}));
  sim.configure("lost=2");
  static_cast<void>(expect_value(sim.queue->fence({})));
  const auto last = sim.copy(&to, &from, 1);
  expect_failure(last->wait({}), ISTHMUS_ERROR_DEVICE_LOST);
  expect_all_lost(sim);
  EXPECT_TRUE(done->wait({}));
}

TEST(sim_lost, fails_what_waits_on_other_devices) {
  rig sim{"effect=late"};
  rig other{"effect=late"};
  const auto lost = expect_value(sim.queue->fence({}));
  const auto waiting = expect_value(other.queue->fence(std::vector{lost}));
  sim.configure("lost=now");
  expect_failure(waiting->wait({}), ISTHMUS_ERROR_DEPENDENCY, "lost");
}

}  // namespace
}  // namespace isthmus
