#pragma once
// Memory that can be mapped several times: a file that only this process and its children have. Its
// pages are zero and take no memory till they are touched.

#include <cstddef>

#include "core/status.hpp"

namespace isthmus::os {

// What is mapped stays when it is closed.
class shared_file {
 public:
  // Of whole pages. Closed where a program is started.
  [[nodiscard]] static result<shared_file> open(std::size_t nbytes);
  shared_file(shared_file&& other) noexcept;
  shared_file& operator=(shared_file&& other) = delete;
  ~shared_file();

  // Read-write, at `at`, which is reserved, or anywhere for null.
  [[nodiscard]] result<void*> map(void* at, std::size_t offset, std::size_t nbytes) const;
  // The same for a forked child: pages that either writes from now on are its own. Where the kernel
  // cannot, any access there faults. What follows a fork may call it.
  void map_privately(void* at, std::size_t offset, std::size_t nbytes) const noexcept;
  // They are zero again and take no memory, in whatever mapping. False where that is not certain:
  // they are not to be used again then. Pre: whole pages.
  [[nodiscard]] bool clear(std::size_t offset, std::size_t nbytes) const noexcept;

 private:
  explicit shared_file(int number) noexcept : number_{number} {}

  int number_;
};

// Faults shared pages in for writing; what they hold stays. OUT_OF_MEMORY where touching them would
// end the process. Pre: whole pages, Linux 5.14.
[[nodiscard]] result<void> populate_shared(void* at, std::size_t nbytes);
// Maps pages that are there, protected as they are.
void map_present_pages(void* at, std::size_t nbytes) noexcept;

}  // namespace isthmus::os
