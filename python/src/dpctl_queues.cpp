#include "dpctl_queues.hpp"

#include <algorithm>
#include <array>

#include "errors.hpp"
#include "sycl_objects.hpp"

namespace isthmus::python {
namespace {

// A queue of dpctl's cannot be referred to weakly, so that it is not kept for ever.
constexpr std::size_t k_kept = 8;

struct known_sources {
  nb::object prepare;
  dpctl_source of_default;
  std::array<dpctl_source, k_kept> recent;  // the last one first
};

// Never destroyed: the interpreter goes before.
known_sources& known() {
  static auto* const all = new known_sources;
  return *all;
}

dpctl_source prepared(nb::handle queue) {
  const auto told = nb::cast<nb::tuple>(known().prepare(queue));
  return {told[0], told[1], told[2], {nb::none(), told[3], told[4], told[5]}};
}

}  // namespace

void set_dpctl_preparer(nb::object prepare) { known().prepare = std::move(prepare); }

const dpctl_source& dpctl_source_for(nb::handle queue) {
  if (queue.is_none()) {
    auto& usual = known().of_default;
    if (!usual.theirs.is_valid()) {
      usual = prepared(queue);
    }
    return usual;
  }
  auto& recent = known().recent;
  const auto found = std::find_if(recent.begin(), recent.end(),
                                  [&](const auto& each) { return each.theirs.is(queue); });
  if (found == recent.begin()) {
    return recent.front();
  }
  // Not into the list itself, which dropping a queue may come back to.
  dpctl_source next = found != recent.end() ? std::move(*found) : prepared(queue);
  const auto last = found != recent.end() ? found : recent.end() - 1;
  const dpctl_source dropped = std::exchange(*last, dpctl_source{});
  std::move_backward(recent.begin(), last, last + 1);
  recent.front() = std::move(next);
  return recent.front();
}

nb::object dpctl_queue_of(nb::handle ours) {
  const auto& usual = known().of_default;
  if (usual.queue.is_valid() && usual.queue.is(ours)) {
    return usual.theirs;
  }
  for (const auto& each : known().recent) {
    if (each.queue.is_valid() && each.queue.is(ours)) {
      return each.theirs;
    }
  }
  return nb::module_::import_("dpctl").attr("SyclQueue")(sycl_capsule(*nb::inst_ptr<queue>(ours)));
}

}  // namespace isthmus::python
