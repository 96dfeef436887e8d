/* A cache of built things in a folder of the user's: a file each, named after a hash of all that it depends on. An entry
 * has a header with the size and a hash of its bytes; whatever is wrong with it makes it as good as absent. Files are
 * written aside and renamed, so that readers never see half of one. Since what is loaded is run, folder and files must
 * be the user's own. For any plugin. */
#ifndef HEDDLE_PLUGINS_COMMON_FILECACHE_H
#define HEDDLE_PLUGINS_COMMON_FILECACHE_H

#include "heddle/plugin.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define FILECACHE_MOST (UINT64_C(1) << 28) /* bytes of an entry */

/* One for a folder. plugin is the name of the log's component, of the setting cache_dir that the warning names, and what
 * files' names begin with; suffix is what they end in; things are what is kept, "built programs". The strings outlive
 * it. seen begins as 0. */
typedef struct filecache {
  const heddle_host *host;
  const char *folder; /* absolute; NULL: nothing is kept */
  const char *plugin, *suffix, *things;
  atomic_int seen;
} filecache;

/* Two hashes over the same bytes from two different starts. */
typedef struct filecache_key {
  uint64_t hash[2];
} filecache_key;

filecache_key filecache_key_start(void);
void filecache_key_add(filecache_key *key, const void *data, size_t bytes);
filecache_key filecache_key_end(filecache_key key);

/* The bytes of an entry, from host->alloc. False where there is none, it is damaged (said in the log), or the folder is
 * not to be used (said once, in the log). Any thread. */
bool filecache_load(filecache *cache, filecache_key key, void **out, uint64_t *bytes);

/* Keeps bytes under key, in place of what was there. Nothing where that cannot be. Makes the folder for this user alone.
 * Any thread, and any number of processes. */
void filecache_store(filecache *cache, filecache_key key, const void *data, uint64_t bytes);

/* The path of an entry of a folder, from host->alloc; NULL when memory is out. */
char *filecache_path(const heddle_host *host, const char *folder, const char *plugin, filecache_key key,
                     const char *suffix);

/* All of data into a file descriptor. */
bool filecache_write(int file, const void *data, size_t bytes);

#endif
