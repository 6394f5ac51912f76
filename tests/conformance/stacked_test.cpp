// SPDX-License-Identifier: Apache-2.0
// Resources over one another, in all combinations: which block an address belongs to, and which
// resource may free it.
#include <unistd.h>

#include <cstdio>
#include <functional>

#include "support/bytes.hpp"
#include "support/upstreams.hpp"

namespace {

using namespace support;

// A kind of resource to put over another, and whether it cuts blocks out of those of its upstream.
struct layer {
  std::string name;
  bool cuts;
  std::function<im::resource(const im::resource& upstream)> over;
};

// Each log has a file of its own. The log lives until the last work on its blocks has completed.
im::resource logged(const im::resource& upstream) {
  static int number = 0;
  const auto path = ::testing::TempDir() + "isthmus_stacked_" + std::to_string(::getpid()) + "_" +
                    std::to_string(++number) + ".log";
  auto made = im::resource::log(upstream, path);
  std::remove(path.c_str());
  return made;
}

// A custom resource that allocates from a resource of the library.
struct passed_on {
  im::resource upstream;
  void* allocate(std::size_t nbytes, std::size_t alignment, const im::queue& on) {
    return upstream.allocate(nbytes, alignment, on);
  }
  void deallocate(void* pointer, std::size_t nbytes, const im::queue& on) noexcept {
    if (isthmus_resource_deallocate(upstream.get(), pointer, nbytes, 0, on.get()) != ISTHMUS_OK) {
      ADD_FAILURE() << isthmus_error_message();
    }
  }
};

class stacked : public on_upstreams {
 protected:
  static std::vector<layer> cutting_layers(im::kind kind) {
    std::vector<layer> all{
        {"arena", true, [](const im::resource& up) { return im::resource::arena(up); }},
        {"fixed_size", true,
         [](const im::resource& up) { return im::resource::fixed_size(up, 1024, 4); }},
        {"monotonic", true,
         [](const im::resource& up) { return im::resource::monotonic(up, 8 * k_kib); }},
        {"binning", true,
         [](const im::resource& up) {
           const im::resource cut = im::resource::fixed_size(up, 1024, 4);
           return im::resource::binning(im::resource::arena(up), {{1024, cut}});
         }},
    };
    if (kind != im::kind::device) {
      all.push_back(
          {"debug", true, [](const im::resource& up) { return im::resource::debug(up); }});
    }
    return all;
  }
  // Resources that return blocks of their upstream unchanged.
  static std::vector<layer> passing_layers() {
    return {
        {"statistics", false, [](const im::resource& up) { return im::resource::statistics(up); }},
        {"limit", false,
         [](const im::resource& up) { return im::resource::limit(up, k_mib * k_kib); }},
        {"fallback", false, [](const im::resource& up) { return im::resource::fallback(up, up); }},
        {"aligned", false, [](const im::resource& up) { return im::resource::aligned(up, 64); }},
        {"prefetch", false, [](const im::resource& up) { return im::resource::prefetch(up); }},
        {"log", false, logged},
        {"tracking", false, [](const im::resource& up) { return im::resource::tracking(up); }},
        {"failure", false,
         [](const im::resource& up) {
           return im::resource::failure_callback(up, [](std::size_t) { return false; });
         }},
    };
  }
  std::vector<layer> all_layers(im::kind kind) const {
    auto all = cutting_layers(kind);
    for (auto& each : passing_layers()) all.push_back(std::move(each));
    all.push_back({"pool", true, [](const im::resource& up) { return im::resource::pool(up); }});
    all.push_back({"custom", false, [kind, this](const im::resource& up) {
                     return im::resource::custom(queue_.context(), kind, passed_on{up}, device_);
                   }});
    return all;
  }
  // Null if the one is not supported over the other.
  static im::resource stand(const layer& upper, const im::resource& lower) try {
    return upper.over(lower);
  } catch (const im::unsupported&) {
    return {};
  }
  // The resources that a block of `upper`, or of `tracked` over it, may be freed by. Empty for a
  // binning resource, which has resources of its own below.
  std::vector<im::resource> owners_of(const layer& two, const im::resource& upper,
                                      const im::resource& tracked,
                                      const im::resource& lower) const {
    if (two.name == "binning") return {};
    std::vector<im::resource> owners{upper, tracked};
    if (!two.cuts) {
      void* const block = lower.allocate(100, 0, queue_);
      owners.push_back(im::query(block).resource);
      lower.deallocate(block, 100, 0, queue_);
    }
    return owners;
  }
  isthmus_status_t fill(void* pointer, std::size_t nbytes) const {
    const isthmus_endpoint_t to{nullptr, pointer, 0};
    const unsigned char one = 1;
    return isthmus_fill(queue_.get(), &to, &one, 1, nbytes, nullptr, nullptr);
  }
  isthmus_status_t copy(void* to, void* from, std::size_t nbytes) const {
    const isthmus_endpoint_t destination{nullptr, to, 0};
    const isthmus_endpoint_t source{nullptr, from, 0};
    return isthmus_copy(queue_.get(), &destination, &source, nbytes, nullptr, nullptr);
  }
  static bool is_live(const void* pointer) {
    return im::query(pointer).state == im::memory_state::live;
  }

  // Checks what queries return for a block of `from` and addresses inside it, while it is live and
  // after it was freed.
  void expect_answers_for_its_block(const im::resource& from, std::size_t nbytes) const {
    auto* const block = static_cast<std::byte*>(from.allocate(nbytes, 0, queue_));
    auto* const other = static_cast<std::byte*>(from.allocate(nbytes, 0, queue_));
    for (const std::size_t offset : {std::size_t{0}, nbytes / 2, nbytes - 1}) {
      const im::pointer_info known = im::query(block + offset, queue_.context());
      EXPECT_EQ(known.state, im::memory_state::live) << "offset " << offset;
      EXPECT_EQ(known.base, block);
      EXPECT_GE(known.nbytes, nbytes);
      EXPECT_LT(known.nbytes, nbytes + 1024) << "and not the piece that it was cut out of";
      EXPECT_EQ(known.device, device_);
    }
    from.deallocate(block, nbytes, 0, queue_);
    queue_.wait();
    EXPECT_FALSE(is_live(block)) << "it was freed";
    EXPECT_FALSE(is_live(block + nbytes - 1));
    EXPECT_TRUE(is_live(other)) << "which was not";
    from.deallocate(other, nbytes, 0, queue_);
    EXPECT_FALSE(is_live(other));
  }
  // What a query may return for a live block.
  struct block_facts {
    im::kind kind;
    std::size_t nbytes;
    bool is_tracked;                   // by a resource whose blocks no other one cuts
    std::vector<im::resource> owners;  // the block belongs to one of these; empty: not checked
  };
  void expect_facts(const std::byte* block, const block_facts& facts, const im::queue& on) const {
    for (const std::size_t offset : {std::size_t{0}, facts.nbytes - 1}) {
      const im::pointer_info known = im::query(block + offset);
      EXPECT_EQ(known.state, im::memory_state::live);
      EXPECT_EQ(known.kind, facts.kind);
      EXPECT_EQ(known.base, block);
      EXPECT_GE(known.nbytes, facts.nbytes);
      EXPECT_LT(known.nbytes, facts.nbytes + 1024);
      EXPECT_EQ(known.device, device_);
      EXPECT_EQ(known.context, queue_.context());
      EXPECT_TRUE(facts.owners.empty() || std::find(facts.owners.begin(), facts.owners.end(),
                                                    known.resource) != facts.owners.end());
      if (facts.is_tracked || known.requested_bytes != 0) {
        EXPECT_EQ(known.requested_bytes, facts.nbytes);
        EXPECT_EQ(known.queue_key, isthmus_queue_key(on.get()));
      } else {
        EXPECT_EQ(known.queue_key, 0U);
      }
    }
  }
  // False if a block of fixed size is smaller than what the upper resource needs, or if a pool
  // would get memory of another pool.
  bool gives(const im::resource& from, std::size_t nbytes) const try {
    from.deallocate(from.allocate(nbytes, 0, queue_), nbytes, 0, queue_);
    return true;
  } catch (const im::error&) {
    return false;
  }
  // Enough blocks that one of them begins where a block of the resource below does.
  void expect_facts_of_blocks(const im::resource& from, const block_facts& facts,
                              const im::queue& on) const {
    constexpr int k_blocks = 20;
    std::vector<void*> blocks;
    for (int i = 0; i < k_blocks; ++i) {
      blocks.push_back(from.allocate(facts.nbytes, 0, on));
      expect_facts(static_cast<std::byte*>(blocks.back()), facts, on);
    }
    for (void* const each : blocks) from.deallocate(each, facts.nbytes, 0, on);
    on.wait();
  }
  void expect_bounds_of_its_block(const im::resource& from) const {
    constexpr std::size_t k_bytes = 1024;
    auto* const block = static_cast<std::byte*>(from.allocate(k_bytes, 0, queue_));
    auto* const next = static_cast<std::byte*>(from.allocate(k_bytes, 0, queue_));
    const auto nothing = [](void*) noexcept {};
    (void)im::buffer::adopt(static_cast<void*>(block), k_bytes, nothing, {.queue = queue_});
    EXPECT_THROW(
        (void)im::buffer::adopt(static_cast<void*>(block), 2 * k_bytes, nothing, {.queue = queue_}),
        im::out_of_range);
    EXPECT_EQ(fill(block, 2 * k_bytes), ISTHMUS_ERROR_OUT_OF_RANGE);
    EXPECT_EQ(fill(block, k_bytes), ISTHMUS_OK);
    bytes seen(2 * k_bytes);
    EXPECT_EQ(copy(seen.data(), block, 2 * k_bytes), ISTHMUS_ERROR_OUT_OF_RANGE);
    EXPECT_EQ(copy(seen.data(), block, k_bytes), ISTHMUS_OK);
    EXPECT_TRUE(same(std::span(seen).first(k_bytes), bytes(k_bytes, std::byte{1})));
    from.deallocate(block, k_bytes, 0, queue_);
    EXPECT_EQ(fill(block, k_bytes), ISTHMUS_ERROR_INVALID_ARGUMENT) << "it was freed";
    EXPECT_EQ(copy(seen.data(), block, 1), ISTHMUS_ERROR_INVALID_ARGUMENT);
    from.deallocate(next, k_bytes, 0, queue_);
  }
};
INSTANTIATE_ON_BACKENDS(stacked);

TEST_P(stacked, pointers_belong_to_the_innermost_block) {
  for (const im::kind kind : kinds()) {
    const auto layers = cutting_layers(kind);
    for (const im::resource& bottom : upstreams(kind)) {
      for (const layer& one : layers) {
        const im::resource cut = stand(one, bottom);
        {
          SCOPED_TRACE(one.name + " of " + std::string(name(kind)) + " memory");
          expect_answers_for_its_block(cut, 100);
          expect_answers_for_its_block(cut, 1000);
        }
        for (const layer& two : layers) {
          const im::resource upper = stand(two, cut);
          if (!upper) continue;
          SCOPED_TRACE(two.name + " over " + one.name + " of " + std::string(name(kind)) +
                       " memory");
          try {
            expect_answers_for_its_block(upper, 100);
          } catch (const im::invalid_argument&) {  // larger than a block of fixed size
          }
        }
      }
    }
  }
}

TEST_P(stacked, pointers_belong_to_the_resource_that_has_them) {
  for (const im::kind kind : kinds()) {
    for (const im::resource& bottom : upstreams(kind)) {
      const im::resource lower = im::resource::arena(bottom);
      const im::resource upper = im::resource::monotonic(lower, 8 * k_kib);
      void* const block = upper.allocate(100, 0, queue_);
      EXPECT_EQ(im::query(block).resource, upper);
      EXPECT_EQ(im::query(block, queue_.context()).kind, kind);
      {
        const im::buffer buffer(300, kind, {.queue = queue_, .resource = lower});
        const im::pointer_info known = im::query(static_cast<std::byte*>(buffer.pointer()) + 299);
        EXPECT_EQ(known.resource, lower);
        EXPECT_EQ(known.base, buffer.pointer());
        EXPECT_EQ(known.nbytes, 300u);
        EXPECT_EQ(known.requested_bytes, 300u);
      }
      upper.deallocate(block, 100, 0, queue_);
    }
  }
}

TEST_P(stacked, bounds_are_those_of_the_innermost_block) {
  for (const im::kind kind : kinds()) {
    for (const im::resource& bottom : upstreams(kind)) {
      for (const layer& one : cutting_layers(kind)) {
        SCOPED_TRACE(one.name + " of " + std::string(name(kind)) + " memory");
        expect_bounds_of_its_block(stand(one, bottom));
      }
    }
  }
}

// Resources above, between and below the two record how each of their blocks was requested,
// including blocks that are cut further. A query returns the record of the innermost block.
TEST_P(stacked, all_that_is_known_is_of_the_innermost_block) {
  constexpr std::size_t k_bytes = 100;
  const im::queue other(queue_.context(), device_);
  for (const im::kind kind : kinds()) {
    const auto layers = all_layers(kind);
    for (const im::resource& upstream : upstreams(kind)) {
      const im::resource bottom = im::resource::tracking(upstream);
      for (const layer& one : layers) {
        const im::resource lower = stand(one, bottom);
        for (const layer& two : layers) {
          const im::resource upper = lower ? stand(two, lower) : im::resource();
          if (!upper) continue;
          SCOPED_TRACE(two.name + " over " + one.name + " of " + std::string(name(kind)) +
                       " memory");
          const bool is_tracked = two.name == "tracking" || (!two.cuts && !one.cuts);
          const im::resource tracked = im::resource::tracking(upper);
          if (!gives(tracked, k_bytes)) continue;
          const auto owners = owners_of(two, upper, tracked, lower);
          for (const im::queue& on : {queue_, other}) {
            expect_facts_of_blocks(upper, {kind, k_bytes, is_tracked, owners}, on);
            expect_facts_of_blocks(tracked, {kind, k_bytes, true, owners}, on);
          }
        }
      }
    }
  }
}

// A block that is live in the upper resource cannot be freed through the lower one, in any
// combination, and is not allocated again.
TEST_P(stacked, blocks_in_use_above_are_refused_below) {
  constexpr std::size_t k_bytes = 100;
  for (const im::kind kind : kinds()) {
    for (const im::resource& bottom : upstreams(kind)) {
      for (const layer& one : all_layers(kind)) {
        const im::resource lower = stand(one, bottom);
        for (const layer& two : all_layers(kind)) {
          const im::resource upper = lower ? stand(two, lower) : im::resource();
          if (!upper) continue;
          SCOPED_TRACE(two.name + " over " + one.name + " of " + std::string(name(kind)) +
                       " memory");
          void* block = nullptr;
          try {
            block = upper.allocate(k_bytes, 0, queue_);
          } catch (const im::error&) {
            continue;  // a block of fixed size is smaller than what the upper resource needs
          }
          if (two.cuts) {
            EXPECT_THROW(lower.deallocate(block, k_bytes, 0, queue_), im::invalid_argument);
            EXPECT_TRUE(is_live(block));
            void* const next = lower.allocate(k_bytes, 0, queue_);
            EXPECT_NE(next, block) << "which is in use";
            lower.deallocate(next, k_bytes, 0, queue_);
            upper.deallocate(block, k_bytes, 0, queue_);
          } else {
            // The block belongs to the lower resource as well: either of the two frees it.
            upper.deallocate(block, k_bytes, 0, queue_);
            if (two.name != "custom") {  // its function may be called later
              EXPECT_THROW(lower.deallocate(block, k_bytes, 0, queue_), im::invalid_argument);
            }
          }
          EXPECT_THROW(upper.deallocate(block, k_bytes, 0, queue_), im::invalid_argument);
        }
      }
    }
  }
}

TEST_P(stacked, blocks_of_buffers_are_refused) {
  for (const im::kind kind : kinds()) {
    for (const im::resource& bottom : upstreams(kind)) {
      for (const layer& one : all_layers(kind)) {
        const im::resource from = stand(one, bottom);
        if (!from) continue;
        SCOPED_TRACE(one.name + " of " + std::string(name(kind)) + " memory");
        const im::buffer buffer(100, kind, {.queue = queue_, .resource = from});
        EXPECT_THROW(from.deallocate(buffer.pointer(), 100, 0, queue_), im::invalid_argument);
        EXPECT_TRUE(is_live(buffer.pointer()));
        const im::buffer other(100, kind, {.queue = queue_, .resource = from});
        EXPECT_NE(other.pointer(), buffer.pointer());
      }
    }
  }
}

}  // namespace
