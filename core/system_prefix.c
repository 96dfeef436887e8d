/* core/system_prefix.c: the prefix of the whole system, where it is not the one that was built in. A copy of an installation,
 * as in a wheel, says in a file beside libheddle where the machine's own plugins and settings are. */
#include "core/system_prefix.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/registry.h"

enum { MOST_PREFIX = 512 };

static char prefix[MOST_PREFIX], config[MOST_PREFIX + 32];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void read_prefix(void) {
  char path[4096], line[MOST_PREFIX] = "";
  char *own = heddle__own_folder();
  if (own == NULL || own[0] == '\0' || snprintf(path, sizeof path, "%s/heddle/system_prefix", own) >= (int)sizeof path)
    path[0] = '\0';
  heddle__free(own);
  FILE *file = path[0] != '\0' ? fopen(path, "re") : NULL;
  if (file == NULL) return;
  if (fgets(line, sizeof line, file) != NULL) {
    line[strcspn(line, "\r\n")] = '\0';
    if (line[0] == '/') {
      memcpy(prefix, line, sizeof line);
      snprintf(config, sizeof config, "%s/etc/heddle/config.json", prefix);
    }
  }
  fclose(file);
}

const char *heddle__system_prefix(void) {
  pthread_once(&once, read_prefix);
  return prefix;
}

const char *heddle__system_prefix_file(void) {
  pthread_once(&once, read_prefix);
  return config;
}
