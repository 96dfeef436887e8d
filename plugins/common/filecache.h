/* A cache of built things in a folder of the user's: a file each, named after a hash of all that it depends on. An entry
 * has a header with the size and a hash of its bytes; whatever is wrong with it makes it as good as absent. How files are
 * read and written, and which folders are used, is cachefile.h's. For any plugin. */
#ifndef HEDDLE_PLUGINS_COMMON_FILECACHE_H
#define HEDDLE_PLUGINS_COMMON_FILECACHE_H

#include "heddle/plugin.h"

#include "plugins/common/cachefile.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define FILECACHE_MOST (UINT64_C(1) << 28)  /* bytes of an entry */
#define FILECACHE_LIMIT (UINT64_C(1) << 30) /* bytes of all, where the setting cache_bytes does not say */

/* One for a folder. plugin is the name of the log's component, of the setting cache_dir that the warning names, and what
 * files' names begin with; suffix is what they end in; things are what is kept, "built programs". The strings outlive
 * it. */
typedef struct filecache {
  const heddle_host *host;
  const char *folder; /* absolute; NULL: nothing is kept */
  const char *plugin, *suffix, *things;
  uint64_t limit;   /* bytes of all entries; 0: nothing is kept */
  atomic_bool said; /* that something cannot be kept, in the log */
} filecache;

/* The plugin's setting cache_bytes, or what it is without; false, with why, where it is no number. */
bool filecache_limit(const heddle_host *host, uint64_t *out, char *why, size_t size);

/* Two hashes over the same bytes from two different starts. */
typedef struct filecache_key {
  uint64_t hash[2];
} filecache_key;

filecache_key filecache_key_start(void);
void filecache_key_add(filecache_key *key, const void *data, size_t bytes);
filecache_key filecache_key_end(filecache_key key);

/* The bytes of an entry, from host->alloc; of the folder, else of a package that a model was loaded from. False where there is none, it is damaged (a line of the log), or it cannot be
 * used (one line, the first time). Any thread. */
bool filecache_load(filecache *cache, filecache_key key, void **out, uint64_t *bytes);

/* Keeps bytes under key, in place of what was there. Where that cannot be, one line of the log gives the reason, the first
 * time. Makes the folder for this user alone. Any thread, and any number of processes. */
void filecache_store(filecache *cache, filecache_key key, const void *data, uint64_t bytes);

/* The name of an entry: PLUGIN-KEY.SUFFIX. */
void filecache_name(char out[CACHEFILE_NAME], const char *plugin, filecache_key key, const char *suffix);

/* Writes a text of n parts for people under such a name; a line of the log where that cannot be. */
void filecache_source(const heddle_host *host, const char *folder, const char *plugin, filecache_key key,
                      const char *suffix, const char *const *parts, const size_t *lengths, uint32_t n);

#endif
