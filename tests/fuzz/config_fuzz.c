/* Any bytes as a configuration file: no crash, no leak; a list of keys with values, or words that name the file. */
#define _GNU_SOURCE /* memfd_create */
#include <string.h>

#include "core/alloc.h"
#include "core/config_file.h"
#include "memory_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const size_t live = heddle__alloc_live();
  heddle__entries list = {0};
  heddle_error err = {0};
  char path[40];
  memory_path(memory_file(data, size), path);
  heddle_status s = heddle__config_file_read(path, true, &list, &err);
  if (s != HEDDLE_OK && strstr(err.text, path) == NULL) abort();
  for (size_t i = 0; i < list.count; i++) {
    if (list.data[i].key[0] == '\0' || strlen(list.data[i].value) > size + 32) abort(); /* 32: all digits of a number */
    heddle__free(list.data[i].key);
    heddle__free(list.data[i].value);
  }
  heddle__free(list.data);
  if (heddle__alloc_live() != live) abort();
  return 0;
}
