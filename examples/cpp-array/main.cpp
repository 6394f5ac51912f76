// SPDX-License-Identifier: Apache-2.0
// A pipeline that processes more data than it holds in memory at a time (C++20). Batches of image
// patches are copied to the device, a kernel computes the contrast of each patch, and the results
// are copied back. All batches reuse the memory of the first one.
//
// Usage: cpp-array [PHOTOGRAPHS [HELD.csv]]. PHOTOGRAPHS is read as pixels. HELD.csv receives the
// bytes that the pool holds after each batch.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <isthmus/isthmus.hpp>
#include <iterator>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace im = isthmus;

constexpr std::size_t k_height = 427, k_width = 640, k_colours = 3;
constexpr std::size_t k_picture = k_height * k_width * k_colours;
constexpr std::size_t k_side = 5, k_patch = k_side * k_side * k_colours;
constexpr std::size_t k_batch = 1000, k_batches = 1000;
constexpr std::size_t k_warm_up = 10;

// Reads photographs from a file. Without a path, generates a picture with edges and noise.
std::vector<unsigned char> load(const char* path) {
  std::vector<unsigned char> pixels;
  if (path != nullptr) {
    std::ifstream file(path, std::ios::binary);
    pixels.assign(std::istreambuf_iterator<char>(file), {});
    pixels.resize(pixels.size() / k_picture * k_picture);
    if (pixels.empty()) throw std::runtime_error(std::string("no whole picture in ") + path);
    return pixels;
  }
  std::mt19937 random(1);
  for (std::size_t at = 0; at < k_picture; ++at) {
    const std::size_t row = at / (k_width * k_colours), column = at / k_colours % k_width;
    const bool inside = (row / 40 + column / 60) % 2 == 0;
    pixels.push_back(static_cast<unsigned char>((inside ? 160 : 60) + random() % 40));
  }
  return pixels;
}

// Fills `out` with a batch of patches from random positions of the pictures.
void cut_patches(const std::vector<unsigned char>& pixels, std::mt19937& random,
                 std::vector<float>& out) {
  for (std::size_t patch = 0; patch < k_batch; ++patch) {
    const std::size_t picture = random() % (pixels.size() / k_picture) * k_picture;
    const std::size_t top = random() % (k_height - k_side), left = random() % (k_width - k_side);
    for (std::size_t at = 0; at < k_patch; ++at) {
      const std::size_t row = top + at / (k_side * k_colours), across = at % (k_side * k_colours);
      out[patch * k_patch + at] =
          pixels[picture + (row * k_width + left) * k_colours + across] / 255.0f;
    }
  }
}

// The "kernel": the standard deviation of each patch.
void contrast(std::span<std::byte> to, std::span<std::byte> from) {
  auto* const results = reinterpret_cast<float*>(to.data());
  const auto* const patches = reinterpret_cast<const float*>(from.data());
  for (std::size_t patch = 0; patch < k_batch; ++patch) {
    const float* const values = patches + patch * k_patch;
    float mean = 0, squares = 0;
    for (std::size_t at = 0; at < k_patch; ++at) mean += values[at] / k_patch;
    for (std::size_t at = 0; at < k_patch; ++at) {
      squares += (values[at] - mean) * (values[at] - mean);
    }
    results[patch] = std::sqrt(squares / k_patch);
  }
}

// Compares the results with those of another formula in double precision: the mean of the squares
// minus the square of the mean.
bool is_correct(const std::vector<float>& batch, const std::vector<float>& results) {
  for (std::size_t patch = 0; patch < k_batch; ++patch) {
    double sum = 0, squares = 0;
    for (std::size_t at = 0; at < k_patch; ++at) {
      const double value = batch[patch * k_patch + at];
      sum += value;
      squares += value * value;
    }
    const double mean = sum / k_patch;
    const double variance = std::max(0.0, squares / k_patch - mean * mean);
    if (std::abs(results[patch] - std::sqrt(variance)) > 1e-4) return false;
  }
  return true;
}

struct outcome {
  bool correct = true;
  std::uint64_t maps_after_warm_up = 0;
  double seconds = 0;  // in the pipeline, without the generation of patches and the checks
};

outcome run(const std::vector<unsigned char>& pixels, const im::queue& queue, im::kind kind,
            std::ostream& held) {
  using steady = std::chrono::steady_clock;
  const im::resource pool = im::default_pool(kind, queue);
  std::mt19937 random(7);
  std::vector<float> batch(k_batch * k_patch), results(k_batch);
  outcome summary;
  std::uint64_t maps = 0;
  const auto result = im::empty<float>(k_batch, kind, {.queue = queue});  // allocated once
  for (std::size_t round = 0; round < k_batches; ++round) {
    cut_patches(pixels, random, batch);
    const auto start = steady::now();
    // Reuses the memory of the previous batch.
    const auto input = im::to_array(batch, {k_batch, k_patch}, kind, {.queue = queue});
    queue.submit(contrast, result.bytes(), input.bytes()).wait();
    im::copy(results, result);
    summary.seconds += std::chrono::duration<double>(steady::now() - start).count();
    summary.correct = summary.correct && is_correct(batch, results);
    held << round << ',' << pool.usage().held << '\n';
    if (round == k_warm_up) maps = pool.usage().maps;
  }
  summary.maps_after_warm_up = pool.usage().maps - maps;
  return summary;
}

int main(int count, char** arguments) try {
  const im::device device = im::device::best();
  const im::queue queue = im::queue::of(device);
  // A kind that a host function can access on this device. A device kernel could use any kind.
  const im::kind kind = device.can(im::capability::run_functions) ? im::kind::device
                        : device.offers(im::kind::shared)         ? im::kind::shared
                                                                  : im::kind::host;
  const std::string file = count > 2 ? arguments[2] : "/dev/null";
  std::ofstream held(file);
  held << "batch,held_bytes\n";
  const outcome summary = run(load(count > 1 ? arguments[1] : nullptr), queue, kind, held);
  if (!held.flush()) throw std::runtime_error("cannot write " + file);
  const double mib = k_batches * k_batch * k_patch * sizeof(float) / 1048576.0;
  std::printf(
      "%.0f MiB through %s memory of %s in %.2f s: %s, %llu driver allocations after the "
      "first batches\n",
      mib, im::name(kind).data(), std::string(device.info().name).c_str(), summary.seconds,
      summary.correct ? "all results correct" : "WRONG RESULTS",
      static_cast<unsigned long long>(summary.maps_after_warm_up));
  return summary.correct && summary.maps_after_warm_up == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
} catch (const std::exception& problem) {
  std::fprintf(stderr, "%s\n", problem.what());
  return EXIT_FAILURE;
}
