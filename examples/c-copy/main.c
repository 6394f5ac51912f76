/* SPDX-License-Identifier: Apache-2.0 */
/* Copies numbers to a device and back, in C99, using only the C interface. */
#include <isthmus/isthmus.h>
#include <stdio.h>
#include <stdlib.h>

static void check(isthmus_status_t status) {
  if (status == ISTHMUS_OK) return;
  fprintf(stderr, "%s: %s\n", isthmus_status_name(status), isthmus_error_message());
  exit(EXIT_FAILURE);
}

int main(void) {
  enum { k_count = 1 << 20 };
  static float sent[k_count], received[k_count];
  isthmus_device_t* device = NULL;
  isthmus_queue_t* queue = NULL;
  isthmus_buffer_t* buffer = NULL;
  isthmus_event_t* done = NULL;
  isthmus_device_info_t info;
  isthmus_endpoint_t on_device = {NULL, NULL, 0}, source = {NULL, NULL, 0},
                     destination = {NULL, NULL, 0};

  for (int i = 0; i < k_count; ++i) sent[i] = (float)i;
  info.struct_size = sizeof info;
  check(isthmus_device_find(NULL, &device)); /* the best device, or ISTHMUS_DEVICE */
  check(isthmus_device_info(device, &info));
  check(isthmus_queue_default(device, &queue));
  check(isthmus_buffer_create(sizeof sent, ISTHMUS_KIND_DEVICE, 0, queue, NULL, &buffer));

  on_device.buffer = buffer;
  source.pointer = sent;
  destination.pointer = received;
  /* The event is NULL: the call blocks. */
  check(isthmus_copy(NULL, &on_device, &source, sizeof sent, NULL, NULL));
  check(isthmus_copy(NULL, &destination, &on_device, sizeof received, NULL, &done));
  check(isthmus_event_wait(done, -1));

  for (int i = 0; i < k_count; ++i) {
    if (received[i] != sent[i]) return EXIT_FAILURE;
  }
  printf("copied %d floats to %s and back\n", (int)k_count, info.name);
  isthmus_event_release(done);
  isthmus_buffer_release(buffer);
  isthmus_queue_release(queue);
  isthmus_device_release(device);
  return EXIT_SUCCESS;
}
