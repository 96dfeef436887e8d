/* Built things that a package carries: they are taken where the folder has none, checked as files of it, and other keys find
 * nothing. */
#define _GNU_SOURCE /* mkdtemp */
#include "cases.h"

#include <stdio.h>
#include <stdlib.h>

#include "plugins/common/cachefile.c"
#include "plugins/common/filecache.c"

static char base[] = "/tmp/heddle-filecache-XXXXXX";
static char carried_name[CACHEFILE_NAME + 16]; /* what the host has under this key */
static unsigned char carried[256];
static int64_t carried_bytes;

static void host_log(void *ctx, int32_t level, const char *component, const char *text) {
  (void)ctx, (void)level, (void)component, (void)text;
}

static void *host_alloc(void *ctx, uint64_t bytes, uint64_t align) {
  (void)ctx, (void)align;
  return malloc((size_t)bytes);
}

static void host_free(void *ctx, void *p) {
  (void)ctx;
  free(p);
}

static int64_t host_config(void *ctx, const char *key, char *buf, uint64_t bytes) {
  (void)ctx;
  if (carried_bytes == 0 || strcmp(key, carried_name) != 0) return -1;
  if (buf != NULL) memcpy(buf, carried, bytes < (uint64_t)carried_bytes ? (size_t)bytes : (size_t)carried_bytes);
  return carried_bytes;
}

static const heddle_host host = {
    .struct_size = sizeof host, .log = host_log, .alloc = host_alloc, .free = host_free, .config = host_config};

static filecache cache_in(const char *folder) {
  return (filecache){
      .host = &host, .folder = folder, .plugin = "p", .suffix = "bin", .things = "things", .limit = FILECACHE_LIMIT};
}

static filecache_key key_of(const char *text) {
  filecache_key key = filecache_key_start();
  filecache_key_add(&key, text, strlen(text));
  return filecache_key_end(key);
}

/* What is found under a key has these bytes; NULL: nothing is found. */
static void finds(const char *folder, const char *key, const char *expected) {
  filecache cache = cache_in(folder);
  void *data = NULL;
  uint64_t bytes = 0;
  assert_int_equal(filecache_load(&cache, key_of(key), &data, &bytes), expected != NULL);
  if (expected == NULL) return;
  assert_int_equal(bytes, strlen(expected));
  assert_memory_equal(data, expected, strlen(expected));
  free(data);
}

static void remove_all(void) {
  char line[128];
  snprintf(line, sizeof line, "rm -rf %s", base);
  if (system(line) != 0) fprintf(stderr, "%s stays\n", base);
}

static void start(void) {
  assert_non_null(mkdtemp(base));
  atexit(remove_all);
}

/* The file of a folder becomes what the host has. */
static void carry(const char *key, const char *content) {
  filecache cache = cache_in(base);
  char name[CACHEFILE_NAME], path[CACHEFILE_NAME + 64];
  filecache_store(&cache, key_of(key), content, strlen(content));
  filecache_name(name, "p", key_of(key), "bin");
  snprintf(path, sizeof path, "%s/%s", base, name);
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  carried_bytes = (int64_t)fread(carried, 1, sizeof carried, file);
  fclose(file);
  assert_int_equal(unlink(path), 0);
  snprintf(carried_name, sizeof carried_name, "prepared:%s", name);
}

static void what_a_package_carries_is_found(void **state) {
  (void)state;
  start();
  finds(base, "a", NULL);
  carry("a", "content");
  finds(base, "a", "content");
  finds(NULL, "a", "content"); /* where no folder can be used, too */
  finds(base, "b", NULL);
  filecache cache = cache_in(base);
  filecache_store(&cache, key_of("a"), "newer", 5); /* the folder comes first */
  finds(base, "a", "newer");
}

static void what_is_wrong_with_it_makes_it_absent(void **state) {
  (void)state;
  start();
  carry("c", "content");
  const int64_t whole = carried_bytes;
  for (int64_t i = 0; i < whole; i++) {
    carried[i] ^= 1;
    finds(NULL, "c", NULL);
    carried[i] ^= 1;
  }
  for (carried_bytes = 1; carried_bytes < whole; carried_bytes++) finds(NULL, "c", NULL);
  finds(NULL, "c", "content");
}

CASES(CASE(what_a_package_carries_is_found), CASE(what_is_wrong_with_it_makes_it_absent))
