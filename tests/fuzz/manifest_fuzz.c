/* Any bytes as a plugin's manifest: no crash, no leak; and what is taken for one names a plugin, and a library that lies
 * below its folder. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/probe/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static heddle__manifest m;
  heddle_error err = {0, 0, ""};
  heddle_status s = heddle__manifest_parse((const char *)data, size, &m, &err);
  if (s != HEDDLE_OK) {
    if (err.status != s || strncmp(err.text, "manifest: ", 10) != 0) abort();
    return 0;
  }
  if (m.name[0] < 'a' || m.name[0] > 'z' || strlen(m.name) >= sizeof m.name) abort();
  if (m.library[0] == '\0' || m.library[0] == '/' || strlen(m.library) >= sizeof m.library) abort();
  char path[sizeof m.library + 2];
  path[0] = '/';
  memcpy(path + 1, m.library, strlen(m.library) + 1);
  size_t n = strlen(path);
  if (strstr(path, "/../") != NULL || (n >= 3 && strcmp(path + n - 3, "/..") == 0)) abort();
  if (m.priority < -1000000 || m.priority > 1000000) abort();
  return 0;
}
