// SPDX-License-Identifier: Apache-2.0
// Measures the cost of typed arrays compared with plain code on plain memory: views, single
// elements, creation and release.
//
// `plain` is an array without a library: a pointer, extents and strides in a struct, like
// std::mdspan. Elements are read one by one, at indices that the compiler cannot predict.
#include <benchmark/benchmark.h>

#include <isthmus/isthmus.hpp>
#include <vector>

namespace im = isthmus;

namespace {

constexpr std::int64_t k_rows = 64, k_columns = 64;

const im::queue& host_queue() {
  static const im::queue queue(im::device("host"));
  return queue;
}
im::array<float, 2> matrix() {
  return im::ones<float>({k_rows, k_columns}, im::kind::host, {.queue = host_queue()});
}

struct plain {
  float* data;
  std::int64_t rows, columns, row_stride, column_stride;
  float& at(std::int64_t i, std::int64_t j) const {
    if (i < 0 || i >= rows || j < 0 || j >= columns) throw std::out_of_range("index");
    return data[i * row_stride + j * column_stride];
  }
};

void view_slice(benchmark::State& state) {
  const auto a = matrix();
  std::int64_t first = 1;
  for (auto _ : state) {
    benchmark::DoNotOptimize(first);
    auto part = a.view(im::slice(first, 60, 2), im::every);
    benchmark::DoNotOptimize(part);
  }
}
BENCHMARK(view_slice);

void view_column(benchmark::State& state) {
  const auto a = matrix();
  std::int64_t column = 7;
  for (auto _ : state) {
    benchmark::DoNotOptimize(column);
    auto part = a.view(im::every, column);
    benchmark::DoNotOptimize(part);
  }
}
BENCHMARK(view_column);

void view_transpose(benchmark::State& state) {
  const auto a = matrix();
  for (auto _ : state) {
    auto turned = a.transpose();
    benchmark::DoNotOptimize(turned);
  }
}
BENCHMARK(view_transpose);

void view_reshape(benchmark::State& state) {
  const auto a = matrix();
  for (auto _ : state) {
    auto flat = a.reshape({k_rows * k_columns});
    benchmark::DoNotOptimize(flat);
  }
}
BENCHMARK(view_reshape);

void view_slice_of_any_rank(benchmark::State& state) {
  const im::dyn_array a(matrix());
  std::int64_t first = 1;
  for (auto _ : state) {
    benchmark::DoNotOptimize(first);
    auto part = a.view(im::slice(first, 60, 2), im::every);
    benchmark::DoNotOptimize(part);
  }
}
BENCHMARK(view_slice_of_any_rank);

// Reads 64 elements per iteration. read_plain shows the cost of the loop itself.
template <class Read>
void read_elements(benchmark::State& state, Read&& read) {
  std::vector<std::int64_t> places(64);
  for (std::size_t at = 0; at < places.size(); ++at)
    places[at] = static_cast<std::int64_t>(at * 29 % 64);
  for (auto _ : state) {
    benchmark::DoNotOptimize(places.data());
    benchmark::ClobberMemory();
    for (const std::int64_t at : places) benchmark::DoNotOptimize(read(at, 63 - at));
  }
  state.counters["ns"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * 64e-9,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void read_plain(benchmark::State& state) {
  std::vector<float> memory(k_rows * k_columns, 1);
  const plain a{memory.data(), k_rows, k_columns, k_columns, 1};
  read_elements(state, [&](std::int64_t i, std::int64_t j) { return a.at(i, j); });
}
BENCHMARK(read_plain);

void read_array(benchmark::State& state) {
  const auto a = matrix();
  read_elements(state, [&](std::int64_t i, std::int64_t j) { return a(i, j).get(); });
}
BENCHMARK(read_array);

// Reads after an operation of a queue has used the array and completed.
void read_array_used_by_a_queue(benchmark::State& state) {
  const auto a = matrix();
  const im::host_event gate;
  const im::event filled = im::fill_async(a, 2, {.queue = host_queue(), .after = gate});
  gate.complete();
  filled.wait();
  read_elements(state, [&](std::int64_t i, std::int64_t j) { return a(i, j).get(); });
}
BENCHMARK(read_array_used_by_a_queue);

void read_host_view_checked(benchmark::State& state) {
  const auto a = matrix();
  const auto view = a.host();
  read_elements(state, [&](std::int64_t i, std::int64_t j) { return view.at(i, j); });
}
BENCHMARK(read_host_view_checked);

void read_host_view(benchmark::State& state) {
  const auto a = matrix();
  const auto view = a.host();
  read_elements(state, [&](std::int64_t i, std::int64_t j) { return view(i, j); });
}
BENCHMARK(read_host_view);

void write_array(benchmark::State& state) {
  const auto a = matrix();
  read_elements(state, [&](std::int64_t i, std::int64_t j) {
    a(i, j) = 2;
    return i;
  });
}
BENCHMARK(write_array);

void make_and_drop(benchmark::State& state) {
  const im::array_options how{.queue = host_queue()};
  for (auto _ : state) {
    auto a = im::empty<float>({1000}, im::kind::host, how);
    benchmark::DoNotOptimize(a);
  }
}
BENCHMARK(make_and_drop);

void make_and_drop_vector(benchmark::State& state) {
  for (auto _ : state) {
    std::vector<float> a(1000);
    benchmark::DoNotOptimize(a.data());
  }
}
BENCHMARK(make_and_drop_vector);

void open_a_host_view(benchmark::State& state) {
  const auto a = matrix();
  for (auto _ : state) {
    auto view = a.host();
    benchmark::DoNotOptimize(view);
  }
}
BENCHMARK(open_a_host_view);

}  // namespace
