// SPDX-License-Identifier: Apache-2.0
#include "backend/pool_references.hpp"

#include <gtest/gtest.h>

namespace isthmus {
namespace {

class Object final : public RefCounted {
 public:
  [[nodiscard]] PoolReferences& pool_references() noexcept { return pool_references_; }

 private:
  PoolReferences pool_references_{*this};
};

TEST(pool_references, do_not_count_as_uses) {
  auto object = make_ref<Object>();
  const Ref<Object> first = object;
  object->pool_references().add();
  EXPECT_FALSE(object->pool_references().are_all()) << "the test holds a reference too";
  const Ref<Object> second = object;
  object->pool_references().add();
  object = {};
  EXPECT_TRUE(first->pool_references().are_all());
  first->pool_references().remove();
  EXPECT_FALSE(first->pool_references().are_all());
  first->pool_references().add();
  EXPECT_TRUE(first->pool_references().are_all());
}

TEST(pool_references, alone_do_not_let_other_code_obtain_the_object) {
  auto object = make_ref<Object>();
  const Ref<Object> of_pool = object;
  of_pool->pool_references().add();
  ASSERT_TRUE(of_pool->pool_references().retain_unless_all());
  auto obtained = Ref<Object>::adopt(of_pool.get());
  object = {};
  EXPECT_TRUE(of_pool->pool_references().retain_unless_all());
  static_cast<void>(Ref<Object>::adopt(of_pool.get()));
  obtained = {};
  EXPECT_FALSE(of_pool->pool_references().retain_unless_all());
}

}  // namespace
}  // namespace isthmus
