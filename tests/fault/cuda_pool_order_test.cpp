// SPDX-License-Identifier: Apache-2.0
// The model of pool ordering on a CUDA device, with a relay that makes driver calls fail.
#include "cuda_relay.hpp"
#include "pool_order_model.hpp"
#include "seeds.hpp"

namespace {

using namespace support;

class cuda_model_faults final : public model_faults {
 public:
  explicit cuda_model_faults(const cuda_relay& relay) : relay_{&relay} {}

  // Fails with out of memory or with an unknown error.
  void arm(std::minstd_rand& random) override {
    if (is_armed_) return;
    is_armed_ = true;
    constexpr int k_no_memory = 2;  // CUDA_ERROR_OUT_OF_MEMORY
    relay_->fail_after(static_cast<long>(random() % 40), relayed::takes,
                       random() % 4 == 0 ? k_no_memory : k_unknown);
  }
  bool disarm() override {
    const bool came =
        std::exchange(is_armed_, false) && relay_->fail_after(-1, relayed::takes, k_unknown) < 0;
    return came;
  }
  // The library tolerates or repeats most failed calls.
  [[nodiscard]] bool is_reported() const override { return false; }
  // The operation may already run when recording its event fails.
  [[nodiscard]] bool moves_nothing() const override { return false; }

 private:
  const cuda_relay* relay_;
  bool is_armed_ = false;
};

class cuda_pool_order : public on_cuda_relay {};

TEST_F(cuda_pool_order, holds_beside_failures_and_a_lack_of_memory) {
  pool_order_model::occasions seen;
  for (const unsigned seed : seeds(12)) {
    SCOPED_TRACE("ISTHMUS_SEED=" + std::to_string(seed));
    const watchdog guard{"ISTHMUS_SEED=" + std::to_string(seed), 60s};
    cuda_model_faults faults{relay_};
    pool_order_model model{device_, faults, seed};
    model.run(400);
    seen += model.seen();
    if (HasFailure()) return;
  }
  seen.expect_all();
}

}  // namespace
