// SPDX-License-Identifier: Apache-2.0
// The model of pool ordering on simulated devices, which delay work as long as its order allows.
#include "pool_order_model.hpp"
#include "seeds.hpp"

namespace {

using namespace support;

class sim_model_faults final : public model_faults {
 public:
  explicit sim_model_faults(im::sim_device device) : device_{std::move(device)} {}

  void arm(std::minstd_rand& random) override {
    static constexpr const char* k_kinds[] = {"operation", "copy",     "fill", "fence",
                                              "event",     "allocate", "map"};
    if (fails_at_ != 0) return;
    kind_ = k_kinds[random() % std::size(k_kinds)];
    const auto next = 1 + random() % 6;
    fails_at_ = device_.calls(kind_) + next;
    device_.configure("fail=" + kind_ + ":" + std::to_string(next));
  }
  bool disarm() override {
    device_.configure("fail=none");
    const auto at = std::exchange(fails_at_, 0);
    return at != 0 && device_.calls(kind_) >= at;
  }
  [[nodiscard]] bool is_reported() const override {
    return kind_ == "operation" || kind_ == "copy" || kind_ == "fill";
  }
  [[nodiscard]] bool moves_nothing() const override { return true; }

 private:
  const im::sim_device device_;
  std::string kind_;
  std::uint64_t fails_at_ = 0;  // the number of the call that is to fail; 0: none
};

class sim_pool_order : public leak_checked, public ::testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(effects, sim_pool_order, ::testing::Values("early", "late", "random"));

TEST_P(sim_pool_order, holds_beside_failures_and_a_lack_of_memory) {
  pool_order_model::occasions seen;
  for (const unsigned seed : seeds(12)) {
    SCOPED_TRACE("ISTHMUS_SEED=" + std::to_string(seed));
    const watchdog guard{"ISTHMUS_SEED=" + std::to_string(seed), 60s};
    const im::sim_device device("capacity=64MiB,effect=" + std::string{GetParam()} +
                                ",seed=" + std::to_string(seed));
    sim_model_faults faults{device};
    pool_order_model model{device, faults, seed};
    model.run(400);
    seen += model.seen();
    EXPECT_EQ(device.calls("violation"), 0u);
    if (HasFailure()) return;
  }
  seen.expect_all();
}

}  // namespace
