/* executor/weights/file.h: one file of the cache of packed weights: found, checked and mapped, or made aside and renamed.
 * What is wrong with a file makes it as good as absent; no failure here is one of the caller's. */
#ifndef HEDDLE_EXECUTOR_WEIGHTS_FILE_H
#define HEDDLE_EXECUTOR_WEIGHTS_FILE_H

#include "core/cache_folder.h"
#include "executor/weights.h"
#include "plugins/common/cachefile.h"

typedef struct heddle__weights_file {
  const heddle__log *log;
  cachefile_place place; /* folder and limit are set before */
  bool folder_given;     /* by the user: then it is a warning that it cannot be used */
  heddle__digest key;
  uint64_t bytes; /* of what follows the head */
  void *map;      /* the whole file, head first */
  void *data;     /* behind the head, on a page */
  bool making;    /* with file */
  cachefile file;
  char name[CACHEFILE_NAME];
} heddle__weights_file;

/* A line of the log. */
void heddle__weights_say(const heddle__weights_file *f, int32_t level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The name of the file of that key. */
void heddle__weights_file_name(heddle__weights_file *f);
/* Whether bytes that a package carries are the file of that key; then data is set, and not map. */
bool heddle__weights_file_take(heddle__weights_file *f, const void *whole, uint64_t bytes);
/* Maps the file of that key, with map and data set; false where there is none, or not a good one. */
bool heddle__weights_file_find(heddle__weights_file *f);
/* Makes room for one that can be written to at data; false, said in the log, where that cannot be. */
bool heddle__weights_file_make(heddle__weights_file *f);
/* Gives it its head and its name, and removes what was not used for longest where the folder is over the limit. It can
 * only be read from then on. */
void heddle__weights_file_keep(heddle__weights_file *f);
/* Drops one in the making; the map stays. */
void heddle__weights_file_end(heddle__weights_file *f);
void heddle__weights_file_unmap(void *map, uint64_t bytes);

#endif
