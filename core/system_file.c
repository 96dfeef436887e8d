/* core/system_file.c: where the system's configuration file is. Alone in its file, so that a test can put another one. */
#include "core/config_file.h"

const char *heddle__system_file(void) {
  return HEDDLE_SYSCONFDIR "/heddle/config.json";
}
