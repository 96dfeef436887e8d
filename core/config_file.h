/* core/config_file.h: the configuration file as a list of dotted keys and texts.
 * One thread at a time; blocks on the file. */
#ifndef HEDDLE_CORE_CONFIG_FILE_H
#define HEDDLE_CORE_CONFIG_FILE_H

#include "core/config.h"

/* Where the system's configuration lies. */
#ifndef HEDDLE_SYSCONFDIR
#define HEDDLE_SYSCONFDIR "/etc"
#endif

const char *heddle__system_file(void);

/* core/privileged.c: for a privileged process: HEDDLE_EIO where others than root may write to that file or to a folder above
 * it, HEDDLE_ENOTFOUND, without words, where it is not there. */
heddle_status heddle__system_file_trust(const char *path, heddle_error *err);

typedef struct heddle__entry {
  char *key;
  char *value;
} heddle__entry;

typedef struct heddle__entries {
  heddle__entry *data;
  size_t count;
  size_t capacity;
} heddle__entries;

/* Appends copies of both. */
heddle_status heddle__entries_add(heddle__entries *list, const char *key, size_t key_length, const char *value,
                                  heddle_error *err);

/* Reads JSON from path: objects in objects are keys with dots, arrays are lists as the setting writes them (with ':'
 * for plugins and plugin_path, else with ','), true and false are 1 and 0, null is no setting. A file that is not
 * there is HEDDLE_EIO where must_exist, else HEDDLE_ENOTFOUND. What was added before a failure stays in the list. */
heddle_status heddle__config_file_read(const char *path, bool must_exist, heddle__entries *out, heddle_error *err);

#endif
