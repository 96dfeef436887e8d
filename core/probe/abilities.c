/* core/probe/abilities.c: what heddle check-plugin wrote of a plugin's devices (docs/conformance.md), taken over where it is of
 * this file and of the device's present driver. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/probe/file.h"
#include "core/probe/probe.h"

enum { FORMAT = 1, MOST_BYTES = 1 << 20 };

static const char *const names[HEDDLE_ABILITIES] = {"fence_wait", "peer", "import_host"};

static bool is_of(const json_t *root, const heddle__plugin *p) {
  const char *path = json_string_value(json_object_get(root, "path"));
  const json_t *size = json_object_get(root, "size"), *time = json_object_get(root, "mtime_ns");
  return json_integer_value(json_object_get(root, "format")) == FORMAT && path != NULL && strcmp(path, p->real) == 0 &&
         json_is_integer(size) && json_integer_value(size) == p->size && json_is_integer(time) &&
         json_integer_value(time) == p->mtime_ns;
}

static bool take(heddle_device *dev, const json_t *entry) {
  const json_t *index = json_object_get(entry, "index");
  const char *driver = json_string_value(json_object_get(entry, "driver"));
  if (!json_is_integer(index) || json_integer_value(index) != dev->index || driver == NULL ||
      strcmp(driver, dev->desc.driver) != 0)
    return false;
  for (int i = 0; i < HEDDLE_ABILITIES; i++) {
    const json_t *value = json_object_get(entry, names[i]);
    dev->abilities[i] = json_is_true(value)    ? HEDDLE_ABILITY_WORKS
                        : json_is_false(value) ? HEDDLE_ABILITY_FAILS
                                               : HEDDLE_ABILITY_UNTRIED;
  }
  if (dev->abilities[HEDDLE_ABILITY_IMPORT_HOST] == HEDDLE_ABILITY_FAILS) {
    dev->desc.import_alignment = 0;
    dev->desc.caps &= ~HEDDLE_CAP_IMPORT_UNIFIED;
  }
  for (int i = 0; i < HEDDLE_ABILITIES; i++)
    if (dev->abilities[i] == HEDDLE_ABILITY_FAILS)
      heddle__probe_say(dev->plugin, HEDDLE_LOG_INFO,
                        "%s: %s is not used: heddle check-plugin found that it does not work with this driver",
                        dev->name, names[i]);
  return true;
}

void heddle__abilities_read(heddle__plugin *p) {
  char *text = NULL;
  size_t bytes = 0;
  json_t *root = NULL;
  bool any = false;
  if (heddle__probe_file_read(p->abilities, true, MOST_BYTES, &text, &bytes, NULL) == HEDDLE_OK)
    root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, NULL);
  const json_t *devices = json_object_get(root, "devices");
  bool counts = root != NULL && is_of(root, p);
  for (uint32_t i = 0; i < p->n_devices && counts; i++)
    for (size_t k = 0; k < json_array_size(devices); k++)
      if (take(p->devices[i], json_array_get(devices, k))) any = true;
  if (!any) {
    heddle__probe_say(p, HEDDLE_LOG_INFO,
                      "%s does not count: it is of another file or driver, or cannot be read; run heddle check-plugin "
                      "again",
                      p->abilities);
    heddle__free(p->abilities);
    p->abilities = NULL;
  }
  json_decref(root);
  free(text);
}
