#include "array_pools.hpp"

#include "arguments.hpp"
#include "current.hpp"
#include "errors.hpp"
#include "gil.hpp"

namespace isthmus::python {
namespace {

// Of all devices; guarded by the interpreter's lock, never destroyed.
auto& all_pools = *new std::vector<device_pools*>;

resource make_pool(isthmus_kind_t kind, const queue& on) {
  isthmus_pool_options_t options{};
  options.struct_size = sizeof options;
  resource made;
  check(isthmus_resource_pool(isthmus_queue_context(on.raw.get()),
                              isthmus_queue_device(on.raw.get()), kind, &options, made.raw.out()));
  made.kind = kind;
  made.is_pool = true;
  return made;
}

// The PoolResource of a pool that had none, or whose has gone.
nb::object wrap_pool(const resource& pool, nb::object queue) {
  if (nb::object known = find_resource(pool.raw.get()); known.is_valid()) {
    return known;
  }
  nb::object made = nb::inst_alloc(nb::type<pool_resource>());
  auto* const where = nb::inst_ptr<pool_resource>(made);
  new (where) pool_resource{
      {resource_handle::retained(pool.raw.get()), pool.kind, std::move(queue), false, true},
      0,
      0,
      nb::none(),
      nb::none(),
      nb::float_(1.0),
      nb::none()};
  remember_resource(*where, made);
  nb::inst_mark_ready(made);
  return made;
}

nb::object default_pool_of(nb::handle kind, nb::handle device, nb::handle queue) {
  nb::object on = to_queue(queue, device);
  const auto& pool = default_pool(to_kind(kind), *queue_of(on));
  return wrap_pool(pool, std::move(on));
}

// Drivers take their time to free memory.
void trim_all() {
  std::vector<resource_handle> pools;
  for (const auto* each : all_pools) {
    each->add_to(pools);
  }
  const gil_release released;
  for (const auto& each : pools) {
    std::uint64_t given_back = 0;
    static_cast<void>(isthmus_resource_trim(each.get(), 0, &given_back));
  }
}

}  // namespace

device_pools::device_pools() { all_pools.push_back(this); }
device_pools::~device_pools() { std::erase(all_pools, this); }

void device_pools::add_to(std::vector<resource_handle>& all) const {
  for (const auto& each : entries_) {
    all.push_back(resource_handle::retained(each.pool->raw.get()));
  }
}

const resource& device_pools::pool_for(isthmus_kind_t kind, const queue& on) {
  for (const auto& each : entries_) {
    if (each.kind == kind && each.context_key == on.context_key) {
      return *each.pool;
    }
  }
  auto made = std::make_unique<resource>(make_pool(kind, on));
  return *entries_.emplace_back(kind, on.context_key, std::move(made)).pool;
}

const resource& default_pool(isthmus_kind_t kind, const queue& on) {
  auto& of = *nb::inst_ptr<device>(on.device_object);
  if (!of.pools) {
    of.pools = std::make_unique<device_pools>();
  }
  return of.pools->pool_for(kind, on);
}

void bind_array_pools(nb::module_& module) {
  module.def(
      "default_pool", &default_pool_of, nb::arg("kind").none() = "device",
      nb::arg("device") = nb::none(), nb::arg("queue") = nb::none(),
      nb::sig("def default_pool(kind: str = 'device', device: Device | str | None = None, queue: "
              "Queue | None = None) -> PoolResource"),
      "The pool that arrays of that kind on that device come out of where no resource is named\n"
      "and none is current. Made when it is first needed; trim() gives back what is free.\n"
      "UnsupportedError for a kind that the device has not.");
  module.def("_trim_default_pools", &trim_all, nb::sig("def _trim_default_pools() -> None"),
             "Has all default pools give back what is free.");
}

}  // namespace isthmus::python
