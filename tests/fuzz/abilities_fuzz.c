/* Any bytes as the file of what heddle check-plugin found of a plugin's devices: no crash, no leak; what counts gives each
 * ability one of its words, and what does not count changes no device. */
#include "core/probe/file.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/cache_folder.h"
#include "core/registry.h"
#include "core/probe/probe.h"

static heddle_status file_read(const char *path, bool ours, size_t limit, char **text, size_t *bytes,
                               heddle_error *err);
static void probe_say(const heddle__plugin *plugin, int32_t level, const char *format, ...);

#define heddle__probe_file_read file_read
#define heddle__probe_say probe_say
#include "core/probe/abilities.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t *input;
static size_t input_bytes;

static heddle_status file_read(const char *path, bool ours, size_t limit, char **text, size_t *bytes,
                               heddle_error *err) {
  (void)path, (void)err;
  if (!ours || limit != MOST_BYTES) abort();
  if (input_bytes > limit) return HEDDLE_ELIMIT;
  *text = malloc(input_bytes + 1);
  if (*text == NULL) return HEDDLE_ENOMEM;
  memcpy(*text, input, input_bytes);
  (*text)[input_bytes] = '\0';
  *bytes = input_bytes;
  return HEDDLE_OK;
}

static void probe_say(const heddle__plugin *plugin, int32_t level, const char *format, ...) {
  (void)plugin, (void)level, (void)format;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static char real[] = "/p.so";
  const size_t live = heddle__alloc_live();
  heddle_device *dev = calloc(1, sizeof *dev);
  heddle__plugin *p = calloc(1, sizeof *p);
  if (dev == NULL || p == NULL) abort();
  heddle_device *devices[] = {dev};
  input = data;
  input_bytes = size;
  dev->plugin = p;
  dev->desc.import_alignment = 64;
  snprintf(dev->desc.driver, sizeof dev->desc.driver, "d 1");
  p->real = real;
  p->size = 5;
  p->mtime_ns = 7;
  p->devices = devices;
  p->n_devices = 1;
  p->abilities = heddle__alloc(16, 1);
  if (p->abilities == NULL) abort();
  strcpy(p->abilities, "/f/abilities");
  heddle__abilities_read(p);
  bool changed = false;
  for (int i = 0; i < HEDDLE_ABILITIES; i++) {
    const int is = (int)dev->abilities[i];
    if (is != HEDDLE_ABILITY_UNTRIED && is != HEDDLE_ABILITY_WORKS && is != HEDDLE_ABILITY_FAILS) abort();
    changed = changed || is != HEDDLE_ABILITY_UNTRIED;
  }
  if (p->abilities == NULL && (changed || dev->desc.import_alignment != 64)) abort();
  heddle__free(p->abilities);
  free(p);
  free(dev);
  if (heddle__alloc_live() != live) abort();
  return 0;
}
