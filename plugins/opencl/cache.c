/* The persistent cache of built programs: a file each, named after a hash of device, driver, source and options, in the
 * folder of the setting cache_dir; and the sources, written out for people in that of source_dir. A cached file holds a
 * header with the size and a hash of its bytes; whatever is wrong with it makes it as good as absent. Files are written
 * aside and renamed, so that readers never see half of one. Since what is loaded is run, folder and files must be the
 * user's own. */
#include "opencl.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC "HDLCLB1\n"

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
static const char *look_at_folder(heddle_pinstance *self, int *code) {
  const heddle_host *host = self->host;
  struct stat st;
  const size_t bytes = strlen(self->cache_dir) + 1;
  char *path = host->alloc(host->ctx, bytes, 1);
  if (path == NULL) return "memory is out";
  memcpy(path, self->cache_dir, bytes);
  *code = make_folders(path);
  host->free(host->ctx, path);
  if (*code != 0) return "it could not be made";
  if (stat(self->cache_dir, &st) != 0 || !S_ISDIR(st.st_mode)) return "it is no folder";
  if (st.st_uid != geteuid() || (st.st_mode & S_IWOTH) != 0)
    return "it is another user's, or everybody may write to it";
  if (access(self->cache_dir, R_OK | W_OK | X_OK) == 0) return NULL;
  *code = errno;
  return "it cannot be written to";
}

/* False, said in one line of the log, where there can be no cache. */
static bool folder_is_good(heddle_pinstance *self) {
  const heddle_host *host = self->host;
  int seen = atomic_load(&self->cache), code = 0;
  if (seen != OCL_CACHE_UNSEEN) return seen == OCL_CACHE_GOOD;
  const char *why = look_at_folder(self, &code);
  seen = atomic_exchange(&self->cache, why == NULL ? OCL_CACHE_GOOD : OCL_CACHE_BAD);
  if (why != NULL && seen == OCL_CACHE_UNSEEN) {
    char line[512];
    char number[32] = "";
    if (code != 0) snprintf(number, sizeof number, " (errno %d)", code);
    snprintf(line, sizeof line,
             "built programs are not kept: %.300s: %s%s; set opencl.cache_dir to a folder of yours, or to off",
             self->cache_dir, why, number);
    host->log(host->ctx, HEDDLE_LOG_WARN, "opencl", line);
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

static const uint64_t starts[2] = {UINT64_C(0xcbf29ce484222325), UINT64_C(0x9ae16a3b2f90404f)};

ocl_cache_key ocl_cache_key_of(const heddle_pdevice *dev, const char *const *sources, const size_t *lengths, uint32_t n,
                               const char *options) {
  ocl_cache_key key;
  for (int i = 0; i < 2; i++) {
    uint64_t hash = starts[i];
    hash = mix(hash, dev->info->name, strlen(dev->info->name) + 1);
    hash = mix(hash, dev->info->driver, strlen(dev->info->driver) + 1);
    hash = mix(hash, options, strlen(options) + 1);
    for (uint32_t k = 0; k < n; k++) {
      const uint64_t length = lengths[k];
      hash = mix(hash, &length, sizeof length);
      hash = mix(hash, sources[k], lengths[k]);
    }
    key.hash[i] = hash ^ hash >> 29;
  }
  return key;
}

/* The path of an entry, from host->alloc; suffix is put behind. NULL when memory is out. */
static char *path_of(const heddle_pdevice *dev, const char *folder, ocl_cache_key key, const char *suffix) {
  const heddle_host *host = dev->host;
  const size_t bytes = strlen(folder) + strlen(suffix) + 64;
  char *path = host->alloc(host->ctx, bytes, 1);
  if (path != NULL) {
    snprintf(path, bytes, "%s/opencl-%016llx%016llx.%s", folder, (unsigned long long)key.hash[0],
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

static bool write_all(int file, const void *data, size_t bytes) {
  for (const char *at = data; bytes > 0;) {
    const ssize_t put = write(file, at, bytes);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    at += put;
    bytes -= (size_t)put;
  }
  return true;
}

static bool load_file(const heddle_pdevice *dev, int file, ocl_cache_key key, void **out, uint64_t *bytes) {
  const heddle_host *host = dev->host;
  header h;
  struct stat st;
  if (fstat(file, &st) != 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() || !read_all(file, &h, sizeof h))
    return false;
  if (memcmp(h.magic, MAGIC, sizeof h.magic) != 0 || h.key[0] != key.hash[0] || h.key[1] != key.hash[1] ||
      h.bytes == 0 || h.bytes > OCL_CACHE_MOST || (uint64_t)st.st_size != sizeof h + h.bytes)
    return false;
  void *data = host->alloc(host->ctx, h.bytes, 1);
  if (data == NULL) return false;
  if (!read_all(file, data, (size_t)h.bytes) || mix(starts[0], data, (size_t)h.bytes) != h.hash) {
    host->free(host->ctx, data);
    return false;
  }
  *out = data;
  *bytes = h.bytes;
  return true;
}

bool ocl_cache_load(heddle_pdevice *dev, ocl_cache_key key, void **out, uint64_t *bytes) {
  const heddle_host *host = dev->host;
  char *path = folder_is_good(dev->self) ? path_of(dev, dev->self->cache_dir, key, "clbin") : NULL;
  if (path == NULL) return false;
  const int file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  host->free(host->ctx, path);
  if (file < 0) return false;
  const bool good = load_file(dev, file, key, out, bytes);
  close(file);
  if (!good) host->log(host->ctx, HEDDLE_LOG_WARN, "opencl", "an entry of the program cache is damaged; building it");
  return good;
}

void ocl_cache_store(heddle_pdevice *dev, ocl_cache_key key, const void *data, uint64_t bytes) {
  const heddle_host *host = dev->host;
  header h = {.key = {key.hash[0], key.hash[1]}, .bytes = bytes};
  char suffix[64];
  if (bytes == 0 || bytes > OCL_CACHE_MOST || !folder_is_good(dev->self)) return;
  memcpy(h.magic, MAGIC, sizeof h.magic);
  h.hash = mix(starts[0], data, (size_t)bytes);
  snprintf(suffix, sizeof suffix, "clbin.%ld-%llx", (long)getpid(), (unsigned long long)host->now_ns(host->ctx));
  char *path = path_of(dev, dev->self->cache_dir, key, "clbin"),
       *aside = path_of(dev, dev->self->cache_dir, key, suffix);
  if (path != NULL && aside != NULL) {
    const int file = open(aside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file >= 0) {
      bool good = write_all(file, &h, sizeof h) && write_all(file, data, (size_t)bytes);
      good = close(file) == 0 && good;
      if (!good || rename(aside, path) != 0) unlink(aside);
    }
  }
  host->free(host->ctx, aside);
  host->free(host->ctx, path);
}

void ocl_source_write(heddle_pdevice *dev, ocl_cache_key key, const char *const *sources, const size_t *lengths,
                      uint32_t n, const char *options) {
  const heddle_host *host = dev->host;
  char *path = path_of(dev, dev->self->source_dir, key, "cl");
  (void)mkdir(dev->self->source_dir, 0700);
  const int file = path != NULL ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
  bool good = file >= 0 && write_all(file, "// ", 3) && write_all(file, options, strlen(options));
  if (good) good = write_all(file, "\n", 1);
  for (uint32_t i = 0; i < n && good; i++) good = write_all(file, sources[i], lengths[i]);
  if (file >= 0) good = close(file) == 0 && good;
  if (!good) host->log(host->ctx, HEDDLE_LOG_WARN, "opencl", "a program's source could not be written to source_dir");
  host->free(host->ctx, path);
}
