/* core/system_file.c: where the system's configuration file is. Alone in its file, so that a test can put another one. */
#include "core/config_file.h"
#include "core/system_prefix.h"

const char *heddle__system_file(void) {
  const char *other = heddle__system_prefix_file();
  return other[0] != '\0' ? other : HEDDLE_SYSCONFDIR "/heddle/config.json";
}
