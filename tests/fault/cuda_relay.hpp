#pragma once
// The library in front of CUDA's driver (stand_in/cuda_relay.cpp), as the tests steer it.

#include <dlfcn.h>

#include <cstdlib>
#include <map>

#include "support/backends.hpp"

namespace support {

enum class relayed { takes = 1, gives_back = 2 };

class cuda_relay {
 public:
  cuda_relay() {
    const char* named = std::getenv("ISTHMUS_CUDA_LIBRARY");
    // Opened already, by the library.
    void* opened = named == nullptr ? nullptr : dlopen(named, RTLD_NOW | RTLD_NOLOAD);
    if (opened == nullptr) return;
    find(opened, "relay_fail_after", fail_after_);
    find(opened, "relay_lose_after", lose_after_);
    find(opened, "relay_name", name_);
    find(opened, "relay_succeeded", succeeded_);
  }
  [[nodiscard]] bool is_there() const { return succeeded_ != nullptr; }

  // How many were still to come of what was asked for before.
  long fail_after(long calls, relayed what, int code) const {
    return fail_after_(calls, static_cast<int>(what), code);
  }
  void fail_none() const { fail_after_(-1, 1, 2); }
  long lose_after(long calls) const { return lose_after_(calls); }
  // How often each call succeeded.
  [[nodiscard]] std::map<std::string, long> succeeded() const {
    std::map<std::string, long> found;
    for (std::size_t each = 0; const char* name = name_(each); ++each) {
      found[name] = succeeded_(each);
    }
    return found;
  }

 private:
  template <class Function>
  static void find(void* in, const char* name, Function*& found) {
    found = reinterpret_cast<Function*>(dlsym(in, name));
  }

  long (*fail_after_)(long, int, int) = nullptr;
  long (*lose_after_)(long) = nullptr;
  const char* (*name_)(std::size_t) = nullptr;
  long (*succeeded_)(std::size_t) = nullptr;
};

// On CUDA's device with the relay in front of it; skipped without.
class on_cuda_relay : public leak_checked {
 protected:
  void SetUp() override {
    leak_checked::SetUp();
    device_ = find_first("cuda");
    relay_ = cuda_relay();
    if (device_ && relay_.is_there()) return;
    device_ = {};
    GTEST_SKIP() << "ISTHMUS_CUDA_LIBRARY does not name libcuda_relay.so in front of a driver";
  }
  void TearDown() override {
    if (relay_.is_there()) {
      relay_.fail_none();
      relay_.lose_after(-1);
    }
    device_ = {};
    leak_checked::TearDown();
  }

  im::device device_;
  cuda_relay relay_;
};

}  // namespace support
