/* The persistent cache of built programs (plugins/common/filecache.h), whose entries are named after a hash of device,
 * driver, source and options, in the folder of the setting cache_dir; and the sources, written out for people in that of
 * source_dir. */
#include "opencl.h"

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
  enum { MOST = 16 };
  const char *parts[MOST + 3] = {"// ", options, "\n"};
  size_t bytes[MOST + 3] = {3, strlen(options), 1};
  if (n > MOST) n = MOST;
  for (uint32_t i = 0; i < n; i++) parts[i + 3] = sources[i], bytes[i + 3] = lengths[i];
  filecache_source(dev->host, dev->self->source_dir, "opencl", key, "cl", parts, bytes, n + 3);
}
