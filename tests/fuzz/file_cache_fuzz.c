/* Any bytes as an entry of a plugin's cache of built programs: what is taken are the bytes behind the head, whose hash the
 * head has. An odd first byte puts a true head before what follows. */
#define _GNU_SOURCE /* memfd_create */
#include "plugins/common/cachefile.c"
#include "plugins/common/filecache.c"

#include "memory_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void *take(void *ctx, uint64_t bytes, uint64_t align) {
  (void)ctx, (void)align;
  return malloc((size_t)bytes);
}

static void give(void *ctx, void *p) {
  (void)ctx;
  free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const heddle_host host = {.struct_size = sizeof host, .alloc = take, .free = give};
  const filecache_key key = {{1, 2}};
  if (size == 0) return 0;
  const bool headed = data[0] % 2 == 1;
  const size_t n = size - 1;
  unsigned char *whole = malloc(sizeof(header) + n);
  if (whole == NULL) abort();
  header h = {.key = {1, 2}, .bytes = n, .hash = fnv1a(filecache_key_start().hash[0], data + 1, n)};
  memcpy(h.magic, MAGIC, sizeof h.magic);
  memcpy(whole, &h, sizeof h);
  memcpy(whole + (headed ? sizeof h : 0), data + 1, n);
  const size_t all = n + (headed ? sizeof h : 0);
  void *out = NULL;
  uint64_t bytes = 0;
  const bool good = load_file(&host, memory_file(whole, all), all, key, &out, &bytes);
  if (headed && good != (n > 0)) abort();
  if (good && (bytes > n || memcmp(out, data + 1 + (headed ? 0 : sizeof h), (size_t)bytes) != 0)) abort();
  if (good) free(out);
  free(whole);
  return 0;
}
