/* The calls of filecache.h. */
#include "filecache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC "HDLCLB1\n"

enum { UNSEEN, GOOD, BAD };

typedef struct header {
  char magic[8];
  uint64_t key[2];
  uint64_t bytes, hash;
} header;

/* ---------------------------------------------------------------- the folder */

/* Makes what is missing of a path, for this user alone. */
static int make_folders(char *path) {
  for (char *p = path + 1; *p != '\0'; p++) {
    if (*p != '/') continue;
    *p = '\0';
    const int code = mkdir(path, 0700) == 0 || errno == EEXIST ? 0 : errno;
    *p = '/';
    if (code != 0 && access(path, F_OK) != 0) return code;
  }
  return mkdir(path, 0700) == 0 || errno == EEXIST ? 0 : errno;
}

/* Why the folder cannot be used; NULL: it can. */
static const char *look_at_folder(filecache *cache, int *code) {
  const heddle_host *host = cache->host;
  struct stat st;
  const size_t bytes = strlen(cache->folder) + 1;
  char *path = host->alloc(host->ctx, bytes, 1);
  if (path == NULL) return "memory is out";
  memcpy(path, cache->folder, bytes);
  *code = make_folders(path);
  host->free(host->ctx, path);
  if (*code != 0) return "it could not be made";
  if (stat(cache->folder, &st) != 0 || !S_ISDIR(st.st_mode)) return "it is no folder";
  if (st.st_uid != geteuid() || (st.st_mode & S_IWOTH) != 0)
    return "it is another user's, or everybody may write to it";
  if (access(cache->folder, R_OK | W_OK | X_OK) == 0) return NULL;
  *code = errno;
  return "it cannot be written to";
}

/* False, said in one line of the log, where there can be no cache. */
static bool folder_is_good(filecache *cache) {
  const heddle_host *host = cache->host;
  int seen = atomic_load(&cache->seen), code = 0;
  if (cache->folder == NULL) return false;
  if (seen != UNSEEN) return seen == GOOD;
  const char *why = look_at_folder(cache, &code);
  seen = atomic_exchange(&cache->seen, why == NULL ? GOOD : BAD);
  if (why != NULL && seen == UNSEEN) {
    char line[512];
    char number[32] = "";
    if (code != 0) snprintf(number, sizeof number, " (errno %d)", code);
    snprintf(line, sizeof line, "%s are not kept: %.300s: %s%s; set %s.cache_dir to a folder of yours, or to off",
             cache->things, cache->folder, why, number, cache->plugin);
    host->log(host->ctx, HEDDLE_LOG_WARN, cache->plugin, line);
  }
  return why == NULL;
}

/* ---------------------------------------------------------------- entries */

/* FNV-1a, from two different starts for a key. */
static uint64_t mix(uint64_t hash, const void *data, size_t bytes) {
  const unsigned char *p = data;
  for (size_t i = 0; i < bytes; i++) hash = (hash ^ p[i]) * UINT64_C(0x100000001b3);
  return hash;
}

filecache_key filecache_key_start(void) {
  return (filecache_key){{UINT64_C(0xcbf29ce484222325), UINT64_C(0x9ae16a3b2f90404f)}};
}

void filecache_key_add(filecache_key *key, const void *data, size_t bytes) {
  for (int i = 0; i < 2; i++) key->hash[i] = mix(key->hash[i], data, bytes);
}

filecache_key filecache_key_end(filecache_key key) {
  for (int i = 0; i < 2; i++) key.hash[i] ^= key.hash[i] >> 29;
  return key;
}

char *filecache_path(const heddle_host *host, const char *folder, const char *plugin, filecache_key key,
                     const char *suffix) {
  const size_t bytes = strlen(folder) + strlen(plugin) + strlen(suffix) + 64;
  char *path = host->alloc(host->ctx, bytes, 1);
  if (path != NULL) {
    snprintf(path, bytes, "%s/%s-%016llx%016llx.%s", folder, plugin, (unsigned long long)key.hash[0],
             (unsigned long long)key.hash[1], suffix);
  }
  return path;
}

static bool read_all(int file, void *out, size_t bytes) {
  for (char *at = out; bytes > 0;) {
    const ssize_t got = read(file, at, bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    bytes -= (size_t)got;
  }
  return true;
}

bool filecache_write(int file, const void *data, size_t bytes) {
  for (const char *at = data; bytes > 0;) {
    const ssize_t put = write(file, at, bytes);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    at += put;
    bytes -= (size_t)put;
  }
  return true;
}

static bool load_file(const heddle_host *host, int file, filecache_key key, void **out, uint64_t *bytes) {
  header h;
  struct stat st;
  if (fstat(file, &st) != 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() || !read_all(file, &h, sizeof h))
    return false;
  if (memcmp(h.magic, MAGIC, sizeof h.magic) != 0 || h.key[0] != key.hash[0] || h.key[1] != key.hash[1] ||
      h.bytes == 0 || h.bytes > FILECACHE_MOST || (uint64_t)st.st_size != sizeof h + h.bytes)
    return false;
  void *data = host->alloc(host->ctx, h.bytes, 1);
  if (data == NULL) return false;
  if (!read_all(file, data, (size_t)h.bytes) || mix(filecache_key_start().hash[0], data, (size_t)h.bytes) != h.hash) {
    host->free(host->ctx, data);
    return false;
  }
  *out = data;
  *bytes = h.bytes;
  return true;
}

bool filecache_load(filecache *cache, filecache_key key, void **out, uint64_t *bytes) {
  const heddle_host *host = cache->host;
  char *path = folder_is_good(cache) ? filecache_path(host, cache->folder, cache->plugin, key, cache->suffix) : NULL;
  if (path == NULL) return false;
  const int file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  host->free(host->ctx, path);
  if (file < 0) return false;
  const bool good = load_file(host, file, key, out, bytes);
  close(file);
  if (!good) {
    char line[128];
    snprintf(line, sizeof line, "an entry of the cache of %s is damaged; building it", cache->things);
    host->log(host->ctx, HEDDLE_LOG_WARN, cache->plugin, line);
  }
  return good;
}

void filecache_store(filecache *cache, filecache_key key, const void *data, uint64_t bytes) {
  const heddle_host *host = cache->host;
  header h = {.key = {key.hash[0], key.hash[1]}, .bytes = bytes};
  char suffix[96];
  if (bytes == 0 || bytes > FILECACHE_MOST || !folder_is_good(cache)) return;
  memcpy(h.magic, MAGIC, sizeof h.magic);
  h.hash = mix(filecache_key_start().hash[0], data, (size_t)bytes);
  snprintf(suffix, sizeof suffix, "%.32s.%ld-%llx", cache->suffix, (long)getpid(),
           (unsigned long long)host->now_ns(host->ctx));
  char *path = filecache_path(host, cache->folder, cache->plugin, key, cache->suffix),
       *aside = filecache_path(host, cache->folder, cache->plugin, key, suffix);
  if (path != NULL && aside != NULL) {
    const int file = open(aside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file >= 0) {
      bool good = filecache_write(file, &h, sizeof h) && filecache_write(file, data, (size_t)bytes);
      good = close(file) == 0 && good;
      if (!good || rename(aside, path) != 0) unlink(aside);
    }
  }
  host->free(host->ctx, aside);
  host->free(host->ctx, path);
}
