/* SPDX-License-Identifier: Apache-2.0 */
/* A C user program: finds the host device, and prints which version ran on it. */
#include <isthmus/isthmus.h>
#include <stdio.h>

int main(void) {
  isthmus_device_t* device = NULL;
  isthmus_device_info_t info;
  info.struct_size = sizeof info;
  if (isthmus_device_find("host", &device) != ISTHMUS_OK ||
      isthmus_device_info(device, &info) != ISTHMUS_OK) {
    fprintf(stderr, "%s\n", isthmus_error_message());
    return 1;
  }
  printf("isthmus %s on %s\n", isthmus_version(), info.name);
  isthmus_device_release(device);
  return 0;
}
