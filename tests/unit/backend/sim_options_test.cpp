// SPDX-License-Identifier: Apache-2.0
// Options of simulated devices: parsing, and errors that name the key and value.

#include "backend/sim/options.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "backend/sim/open.hpp"
#include "core/text.hpp"
#include "unit/backend/sim_fixture.hpp"

namespace isthmus::sim {
namespace {

using sim_test::expect_failure;
using sim_test::expect_value;

Options read(std::string_view text, Source from = Source::creation) {
  return expect_value(parse_options(text, from));
}

TEST(sim_options, defaults) {
  for (const auto* text : {"", "   "}) {
    const auto chosen = read(text);
    EXPECT_EQ(chosen.devices, 1U);
    EXPECT_EQ(chosen.capacity, 1U << 30);
    EXPECT_EQ(chosen.bandwidth, 16'000'000'000U);
    EXPECT_EQ(chosen.device_bandwidth, 400'000'000'000U);
    EXPECT_EQ(chosen.latency_ns, 5'000U);
    EXPECT_EQ(chosen.engines, 2U);
    EXPECT_EQ(chosen.seed, 1U);
    EXPECT_EQ(chosen.effect, Effect::early);
    EXPECT_TRUE(chosen.wait_for_host);
    EXPECT_TRUE(chosen.usm);
    EXPECT_EQ(chosen.kinds, k_all_kinds);
    EXPECT_TRUE(chosen.faults.empty());
    EXPECT_FALSE(chosen.lost_after);
  }
}

TEST(sim_options, every_option) {
  const auto chosen = read(
      "devices=3,capacity=64MiB, bandwidth=12.5GB/s,device_bandwidth=2TiB/s,latency=1.5ms "
      ",engines=1,"
      "seed=18446744073709551615,effect=late,fail=copy:3,fail=any:1,lost=7,wait_for_host=0,"
      "kinds=host+device,usm=0,remap=0",
      Source::environment);
  EXPECT_EQ(chosen.devices, 3U);
  EXPECT_EQ(chosen.capacity, 64U << 20);
  EXPECT_EQ(chosen.bandwidth, 12'500'000'000U);
  EXPECT_EQ(chosen.device_bandwidth, std::uint64_t{2} << 40);
  EXPECT_EQ(chosen.latency_ns, 1'500'000U);
  EXPECT_EQ(chosen.engines, 1U);
  EXPECT_EQ(chosen.seed, std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(chosen.effect, Effect::late);
  ASSERT_EQ(chosen.faults.size(), 2U);
  EXPECT_EQ(chosen.faults[0].kind, Call::copy);
  EXPECT_EQ(chosen.faults[0].nth, 3U);
  EXPECT_EQ(chosen.faults[1].kind, Call::any);
  EXPECT_EQ(chosen.lost_after, 7U);
  EXPECT_FALSE(chosen.wait_for_host);
  EXPECT_FALSE(chosen.usm);
  EXPECT_FALSE(chosen.remap);
  EXPECT_EQ(chosen.kinds, std::uint64_t{ISTHMUS_CAN_DEVICE_KIND | ISTHMUS_CAN_HOST_KIND});
  EXPECT_EQ(read("lost=now").lost_after, 0U);
  EXPECT_EQ(read("effect=random").effect, Effect::random);
}

TEST(sim_options, none_clears_the_faults_before_it) {
  const auto chosen = read("fail=copy:3,fail=none,fail=fill:1");
  EXPECT_TRUE(chosen.clear_faults);
  ASSERT_EQ(chosen.faults.size(), 1U);
  EXPECT_EQ(chosen.faults[0].kind, Call::fill);
}

struct refusal {
  const char* text;
  const char* key;
  const char* value;
};

TEST(sim_options, refusals_name_key_and_value) {
  for (const auto& [text, key, value] : std::initializer_list<refusal>{
           {"colour=red", "colour", "use bandwidth, capacity"},
           {"capacity", "capacity", "key=value"},
           {"capacity=", "capacity", "''"},
           {"capacity=0", "capacity", "'0'"},
           {"capacity=1.5", "capacity", "'1.5'"},
           {"capacity=17592186044417", "capacity", "to 17592186044416"},
           {"capacity=-1", "capacity", "'-1'"},
           {"capacity=99999999999999999999", "capacity", "'99999999999999999999'"},
           {"bandwidth=16", "bandwidth", "'16'"},
           {"bandwidth=0B/s", "bandwidth", "'0B/s'"},
           {"device_bandwidth=x", "device_bandwidth", "'x'"},
           {"latency=5", "latency", "'5'"},
           {"latency=2000000000s", "latency", "'2000000000s'"},
           {"engines=3", "engines", "from 1 to 2"},
           {"engines=0", "engines", "'0'"},
           {"seed=-1", "seed", "'-1'"},
           {"effect=never", "effect", "early, late or random"},
           {"wait_for_host=yes", "wait_for_host", "0 or 1"},
           {"usm=2", "usm", "0 or 1"},
           {"kinds=", "kinds", "device+shared+host"},
           {"kinds=device+", "kinds", "'device+'"},
           {"kinds=device+device", "kinds", "each once"},
           {"fail=copy", "fail", "'copy'"},
           {"fail=copy:0", "fail", "'copy:0'"},
           {"fail=copy:", "fail", "'copy:'"},
           {"fail=jump:1", "fail", "copy_2d"},
           {"fail=violation:1", "fail", "'violation:1'"},
           {"lost=0", "lost", "'0'"},
           {"lost=soon", "lost", "'soon'"},
           {"devices=2", "devices", "ISTHMUS_SIM"},
           {"seed=1,seed=2", "seed", "once"},
           {",", "''", "key=value"},
           {"seed=1,", "''", "key=value"},
           {"seed=1,,usm=1", "''", "key=value"},
           {"a\nb=\x01", "a?b", "no option"}}) {
    const auto got = parse_options(text, Source::creation);
    expect_failure(got, ISTHMUS_ERROR_INVALID_ARGUMENT, key);
    expect_failure(got, ISTHMUS_ERROR_INVALID_ARGUMENT, value);
  }
}

TEST(sim_options, a_living_device_changes_only_what_can) {
  for (const auto* text :
       {"capacity=1GiB", "engines=1", "kinds=device", "usm=1", "wait_for_host=1", "devices=1"}) {
    expect_failure(parse_options(text, Source::change), ISTHMUS_ERROR_INVALID_ARGUMENT,
                   "cannot change");
  }
  const auto changed = read("latency=1us", Source::change);
  EXPECT_EQ(changed.latency_ns, 1'000U);
}

TEST(sim_options, no_text_breaks_the_reader) {
  std::mt19937 random{7};
  const std::string alphabet = "abcdefilnost_=,:+.0123456789KMGiB/s \xff";
  const std::vector<std::string> words = {"fail=", "capacity=", "copy:",   "KiB",
                                          "=",     ",",         "lost=now"};
  for (int round = 0; round < 20'000; ++round) {
    std::string text;
    for (auto left = random() % 12; left > 0; --left) {
      text += random() % 3 == 0 ? words[random() % words.size()]
                                : std::string(1, alphabet[random() % alphabet.size()]);
    }
    const auto got = parse_options(text, Source::environment);
    EXPECT_TRUE(got || got.failure().code() == ISTHMUS_ERROR_INVALID_ARGUMENT) << text;
  }
}

class sim_environment : public testing::Test {
 protected:
  void TearDown() override { unsetenv("ISTHMUS_SIM"); }
};

TEST_F(sim_environment, absent_unless_requested) {
  unsetenv("ISTHMUS_SIM");
  expect_failure(open(), ISTHMUS_ERROR_NOT_FOUND, "ISTHMUS_SIM");
}

TEST_F(sim_environment, lists_its_devices) {
  for (const auto& [text, count] :
       {std::pair{"", 1U}, {"1", 1U}, {"devices=3,capacity=1MiB", 3U}}) {
    setenv("ISTHMUS_SIM", text, 1);
    const auto found = expect_value(open());
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0]->properties().backend, "sim");
    ASSERT_EQ(found[0]->devices().size(), count);
    EXPECT_EQ(found[0]->devices().back()->properties().filter, formatted("sim:gpu:{}", count - 1));
  }
}

TEST_F(sim_environment, reports_what_is_wrong) {
  setenv("ISTHMUS_SIM", "capacity=lots", 1);
  expect_failure(open(), ISTHMUS_ERROR_INVALID_ARGUMENT,
                 "ISTHMUS_SIM: simulated device: capacity='lots'");
}

}  // namespace
}  // namespace isthmus::sim
