/* SPDX-License-Identifier: Apache-2.0 */
/* loads LIBRARY: opens the library in every way that a process may, and checks that there is one
 * registry: an allocation made through one handle is visible through all others. Not linked with
 * the library. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <isthmus/isthmus.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;

static void expect(int holds, const char* what, const char* how) {
  if (holds) return;
  fprintf(stderr, "FAILED: %s (%s)\n", what, how);
  ++failures;
}

/* Looks up a function through a handle of the library, without the cast that ISO C forbids. */
static void find(void* opening, const char* name, void* function) {
  void* found = dlsym(opening, name);
  if (found == NULL) {
    fprintf(stderr, "FAILED: no %s\n", name);
    exit(EXIT_FAILURE);
  }
  memcpy(function, &found, sizeof found);
}

static unsigned long long live_through(void* opening) {
  isthmus_status_t (*live_info)(isthmus_kind_t, isthmus_live_info_t*) = NULL;
  isthmus_live_info_t live = {.struct_size = sizeof live};
  find(opening, "isthmus_live_info", &live_info);
  expect(live_info(ISTHMUS_KIND_UNKNOWN, &live) == ISTHMUS_OK, "live", "this opening");
  return (unsigned long long)live.count;
}

static isthmus_buffer_t* allocate_through(void* opening) {
  isthmus_status_t (*device_find)(const char*, isthmus_device_t**) = NULL;
  isthmus_status_t (*queue_default)(isthmus_device_t*, isthmus_queue_t**) = NULL;
  isthmus_status_t (*create)(size_t, isthmus_kind_t, int64_t, isthmus_queue_t*, isthmus_resource_t*,
                             isthmus_buffer_t**) = NULL;
  isthmus_device_t* device = NULL;
  isthmus_queue_t* queue = NULL;
  isthmus_buffer_t* buffer = NULL;
  find(opening, "isthmus_device_find", &device_find);
  find(opening, "isthmus_queue_default", &queue_default);
  find(opening, "isthmus_buffer_create", &create);
  expect(device_find("host", &device) == ISTHMUS_OK, "device", "first opening");
  expect(queue_default(device, &queue) == ISTHMUS_OK, "queue", "first opening");
  expect(create(100, ISTHMUS_KIND_HOST, 0, queue, NULL, &buffer) == ISTHMUS_OK, "buffer",
         "first opening");
  return buffer;
}

struct way {
  const char* name;
  int flags;
};

static void open_every_way(const char* file, const char* which, unsigned long long live) {
  static const struct way ways[] = {{"lazy, local", RTLD_LAZY | RTLD_LOCAL},
                                    {"now, local", RTLD_NOW | RTLD_LOCAL},
                                    {"lazy, global", RTLD_LAZY | RTLD_GLOBAL},
                                    {"now, global", RTLD_NOW | RTLD_GLOBAL},
                                    {"now, local, deepbind", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND},
                                    {"not loaded again", RTLD_NOW | RTLD_NOLOAD}};
  for (size_t i = 0; i < sizeof ways / sizeof ways[0]; ++i) {
    void* opening = dlopen(file, ways[i].flags);
    expect(opening != NULL, which, ways[i].name);
    if (opening == NULL) continue;
    expect(live_through(opening) == live, which, ways[i].name);
    dlclose(opening);
  }
}

int main(int argc, char** argv) {
  if (argc != 2) return EXIT_FAILURE;
  void* first = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (first == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return EXIT_FAILURE;
  }
  const unsigned long long before = live_through(first);
  isthmus_buffer_t* buffer = allocate_through(first);
  void (*release)(isthmus_buffer_t*) = NULL;
  find(first, "isthmus_buffer_release", &release);
  expect(live_through(first) == before + 1, "counts", "first opening");

  open_every_way(argv[1], "by path", before + 1);
  open_every_way("libisthmus.so.0", "by soname", before + 1);
  dlclose(first); /* not unloaded: the buffer needs it */
  open_every_way(argv[1], "by path after dlclose", before + 1);
  open_every_way("libisthmus.so.0", "by soname after dlclose", before + 1);

  release(buffer); /* a function looked up before dlclose: still valid */
  void* last = dlopen(argv[1], RTLD_NOW);
  isthmus_status_t (*trim)(uint64_t*) = NULL;
  if (last != NULL) find(last, "isthmus_default_pools_trim", &trim);
  if (trim != NULL) (void)trim(NULL); /* the pool caches the freed memory */
  expect(last != NULL && live_through(last) == before, "after release", "last opening");
  printf("%s\n", failures == 0 ? "one registry" : "failed");
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
