/* The persistent cache of built programs (plugins/common/filecache.h), whose entries are named after a hash of device,
 * driver, source and options, in the folder of the setting cache_dir; and the sources, written out for people in that of
 * source_dir. */
#include "opencl.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

filecache_key ocl_cache_key_of(const heddle_pdevice *dev, const char *const *sources, const size_t *lengths, uint32_t n,
                               const char *options) {
  filecache_key key = filecache_key_start();
  filecache_key_add(&key, dev->info->name, strlen(dev->info->name) + 1);
  filecache_key_add(&key, dev->info->driver, strlen(dev->info->driver) + 1);
  filecache_key_add(&key, options, strlen(options) + 1);
  for (uint32_t k = 0; k < n; k++) {
    const uint64_t length = lengths[k];
    filecache_key_add(&key, &length, sizeof length);
    filecache_key_add(&key, sources[k], lengths[k]);
  }
  return filecache_key_end(key);
}

void ocl_source_write(heddle_pdevice *dev, filecache_key key, const char *const *sources, const size_t *lengths,
                      uint32_t n, const char *options) {
  const heddle_host *host = dev->host;
  char *path = filecache_path(host, dev->self->source_dir, "opencl", key, "cl");
  (void)mkdir(dev->self->source_dir, 0700);
  const int file = path != NULL ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
  bool good = file >= 0 && filecache_write(file, "// ", 3) && filecache_write(file, options, strlen(options));
  if (good) good = filecache_write(file, "\n", 1);
  for (uint32_t i = 0; i < n && good; i++) good = filecache_write(file, sources[i], lengths[i]);
  if (file >= 0) good = close(file) == 0 && good;
  if (!good) host->log(host->ctx, HEDDLE_LOG_WARN, "opencl", "a program's source could not be written to source_dir");
  host->free(host->ctx, path);
}
