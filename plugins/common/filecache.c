/* The calls of filecache.h. */
#include "filecache.h"
#include "fnv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAGIC "HDLCLB1\n"

typedef struct header {
  char magic[8];
  uint64_t key[2];
  uint64_t bytes, hash;
} header;

/* One line of the log for what hinders, however often it does. */
static void not_kept(filecache *cache, const char *why) {
  char line[CACHEFILE_WHY + 512];
  if (why[0] == '\0' || atomic_exchange(&cache->said, true)) return;
  snprintf(line, sizeof line, "%s are not kept: %.300s: %s; set %s.cache_dir to a folder of yours, or to off",
           cache->things, cache->folder, why, cache->plugin);
  cache->host->log(cache->host->ctx, HEDDLE_LOG_WARN, cache->plugin, line);
}

bool filecache_limit(const heddle_host *host, uint64_t *out, char *why, size_t size) {
  char text[32], *end = text;
  *out = FILECACHE_LIMIT;
  const int64_t length = host->config(host->ctx, "cache_bytes", text, sizeof text);
  if (length < 0) return true;
  errno = 0;
  const unsigned long long value = strtoull(text, &end, 10);
  if ((size_t)length < sizeof text && text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 &&
      value <= INT64_MAX) {
    *out = value;
    return true;
  }
  snprintf(why, size, "setting cache_bytes: '%s' is no number of bytes", text);
  return false;
}

/* ---------------------------------------------------------------- entries */

/* FNV-1a from two different starts for a key. */
filecache_key filecache_key_start(void) {
  return (filecache_key){{FNV1A_START, UINT64_C(0x9ae16a3b2f90404f)}};
}

void filecache_key_add(filecache_key *key, const void *data, size_t bytes) {
  for (int i = 0; i < 2; i++) key->hash[i] = fnv1a(key->hash[i], data, bytes);
}

filecache_key filecache_key_end(filecache_key key) {
  for (int i = 0; i < 2; i++) key.hash[i] ^= key.hash[i] >> 29;
  return key;
}

void filecache_name(char out[CACHEFILE_NAME], const char *plugin, filecache_key key, const char *suffix) {
  snprintf(out, CACHEFILE_NAME, "%.30s-%016llx%016llx.%.30s", plugin, (unsigned long long)key.hash[0],
           (unsigned long long)key.hash[1], suffix);
}

/* size is the file's. */
static bool header_is_good(const header *h, uint64_t size, filecache_key key) {
  return memcmp(h->magic, MAGIC, sizeof h->magic) == 0 && h->key[0] == key.hash[0] && h->key[1] == key.hash[1] &&
         h->bytes > 0 && h->bytes <= FILECACHE_MOST && size == sizeof *h + h->bytes;
}

static bool load_file(const heddle_host *host, int file, uint64_t size, filecache_key key, void **out,
                      uint64_t *bytes) {
  header h;
  if (!cachefile_read(file, &h, sizeof h) || !header_is_good(&h, size, key)) return false;
  void *data = host->alloc(host->ctx, h.bytes, 1);
  if (data == NULL) return false;
  if (!cachefile_read(file, data, (size_t)h.bytes) ||
      fnv1a(filecache_key_start().hash[0], data, (size_t)h.bytes) != h.hash) {
    host->free(host->ctx, data);
    return false;
  }
  *out = data;
  *bytes = h.bytes;
  return true;
}

/* Of a package (docs/packages.md): the host has the bytes of the file as it would lie in the folder, under the key
 * "prepared:NAME". */
static bool load_prepared(const filecache *cache, filecache_key key, void **out, uint64_t *bytes) {
  const heddle_host *host = cache->host;
  char name[CACHEFILE_NAME + 16] = "prepared:";
  header h;
  filecache_name(name + strlen(name), cache->plugin, key, cache->suffix);
  const int64_t size = host->config(host->ctx, name, NULL, 0);
  if (size <= (int64_t)sizeof h || (uint64_t)size > sizeof h + FILECACHE_MOST) return false;
  char *whole = host->alloc(host->ctx, (uint64_t)size + 1, 1); /* a host may end it as it ends texts */
  if (whole == NULL) return false;
  bool good = host->config(host->ctx, name, whole, (uint64_t)size + 1) == size;
  memcpy(&h, whole, sizeof h);
  good = good && header_is_good(&h, (uint64_t)size, key) &&
         fnv1a(filecache_key_start().hash[0], whole + sizeof h, (size_t)h.bytes) == h.hash;
  if (good) {
    memmove(whole, whole + sizeof h, (size_t)h.bytes);
    *out = whole;
    *bytes = h.bytes;
    return true;
  }
  host->free(host->ctx, whole);
  return false;
}

/* Where the files of a cache lie. */
typedef struct place {
  cachefile_place at;
  char prefix[32], suffix[32], name[CACHEFILE_NAME];
} place;

/* False where nothing is kept. */
static bool place_of(const filecache *cache, filecache_key key, place *out) {
  if (cache->folder == NULL || cache->limit == 0) return false;
  snprintf(out->prefix, sizeof out->prefix, "%s-", cache->plugin);
  snprintf(out->suffix, sizeof out->suffix, ".%s", cache->suffix);
  filecache_name(out->name, cache->plugin, key, cache->suffix);
  out->at = (cachefile_place){cache->folder, out->prefix, out->suffix, cache->limit};
  return true;
}

bool filecache_load(filecache *cache, filecache_key key, void **out, uint64_t *bytes) {
  const heddle_host *host = cache->host;
  char why[CACHEFILE_WHY], line[128];
  place p;
  uint64_t size = 0;
  if (!place_of(cache, key, &p)) return load_prepared(cache, key, out, bytes);
  const int file = cachefile_open(&p.at, p.name, sizeof(header) + FILECACHE_MOST, &size, why);
  if (file < 0) {
    not_kept(cache, why);
    return load_prepared(cache, key, out, bytes);
  }
  const bool good = load_file(host, file, size, key, out, bytes);
  close(file);
  if (!good) {
    snprintf(line, sizeof line, "an entry of the cache of %s is damaged; building it", cache->things);
    host->log(host->ctx, HEDDLE_LOG_WARN, cache->plugin, line);
  }
  return good || load_prepared(cache, key, out, bytes);
}

void filecache_store(filecache *cache, filecache_key key, const void *data, uint64_t bytes) {
  header h = {.key = {key.hash[0], key.hash[1]}, .bytes = bytes};
  char why[CACHEFILE_WHY];
  cachefile f;
  place p;
  if (bytes == 0 || bytes > FILECACHE_MOST || !place_of(cache, key, &p)) return;
  memcpy(h.magic, MAGIC, sizeof h.magic);
  h.hash = fnv1a(filecache_key_start().hash[0], data, (size_t)bytes);
  bool good = cachefile_begin(&f, &p.at, p.name, sizeof h + bytes, why);
  if (good) {
    good = cachefile_put(&f, &h, sizeof h, why) && cachefile_put(&f, data, (size_t)bytes, why);
    if (good) good = cachefile_keep(&f, true, why);
    else cachefile_drop(&f);
  }
  if (!good) not_kept(cache, why);
}

void filecache_source(const heddle_host *host, const char *folder, const char *plugin, filecache_key key,
                      const char *suffix, const char *const *parts, const size_t *lengths, uint32_t n) {
  char why[CACHEFILE_WHY], line[CACHEFILE_WHY + 512], name[CACHEFILE_NAME];
  uint64_t bytes = 0;
  cachefile f;
  for (uint32_t i = 0; i < n; i++) bytes += lengths[i];
  filecache_name(name, plugin, key, suffix);
  const cachefile_place at = {folder, plugin, suffix, UINT64_MAX};
  bool good = cachefile_begin(&f, &at, name, bytes, why);
  if (good) {
    for (uint32_t i = 0; i < n && good; i++) good = cachefile_put(&f, parts[i], lengths[i], why);
    if (good) good = cachefile_keep(&f, false, why);
    else cachefile_drop(&f);
  }
  if (good) return;
  snprintf(line, sizeof line, "a program's source could not be written to source_dir, %.300s: %s", folder, why);
  host->log(host->ctx, HEDDLE_LOG_WARN, plugin, line);
}
