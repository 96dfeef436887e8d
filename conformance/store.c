/* conformance/store.c: keeps which optional abilities of a plugin's devices were seen to work, for libheddle to read:
 * one small JSON file a plugin file, written as plugins/common/cachefile.h has it. docs/conformance.md has its members. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conformance/check.h"
#include "conformance/kit_side.h"
#include "plugins/common/cachefile.h"
#include "plugins/common/fnv.h"

static const char *const names[] = {"fence_wait", "peer", "import_host"};
enum { N_NAMES = sizeof names / sizeof names[0], MOST_BYTES = 1 << 20, LIMIT = 16 << 20 };

/* The folder: --store, the variable of the setting probe.cache_dir, else below the user's folder for caches. */
static bool find_folder(const check_options *o, char *out, size_t bytes) {
  const char *folder = o->store, *below = "";
  if (folder == NULL) {
    folder = getenv("HEDDLE_PROBE_CACHE_DIR");
    if (folder != NULL && folder[0] == '\0') folder = NULL;
  }
  if (folder == NULL) {
    folder = getenv("XDG_CACHE_HOME"), below = "/heddle/probe";
    if (folder == NULL || folder[0] != '/') folder = getenv("HOME"), below = "/.cache/heddle/probe";
    if (folder == NULL || folder[0] != '/') return false;
  }
  int n = snprintf(out, bytes, "%s%s", folder, below);
  return n > 0 && (size_t)n < bytes;
}

/* What an earlier check found of the same file and driver, where this one did not try. */
static json_t *known_before(json_t *before, const struct stat *info, const char *path, uint32_t index,
                            const char *driver) {
  size_t i;
  json_t *device;
  if (json_integer_value(json_object_get(before, "format")) != 1 ||
      json_integer_value(json_object_get(before, "size")) != (json_int_t)info->st_size ||
      json_integer_value(json_object_get(before, "mtime_ns")) !=
          (json_int_t)info->st_mtim.tv_sec * 1000000000 + info->st_mtim.tv_nsec)
    return NULL;
  const char *of = json_string_value(json_object_get(before, "path"));
  if (of == NULL || strcmp(of, path) != 0) return NULL;
  json_array_foreach(json_object_get(before, "devices"), i, device) {
    const char *its = json_string_value(json_object_get(device, "driver"));
    if (its != NULL && strcmp(its, driver) == 0 && json_integer_value(json_object_get(device, "index")) == index)
      return device;
  }
  return NULL;
}

static json_t *device_entry(const check_list *list, uint32_t index, json_t *before) {
  json_t *device = json_pack("{s:i, s:s}", "index", (int)index, "driver", list->drivers[index]);
  bool any = before != NULL;
  for (int n = 0; n < N_NAMES && device != NULL; n++) {
    json_t *value = NULL;
    for (size_t i = 0; i < list->n_abilities; i++)
      if (list->abilities[i].index == index && strcmp(list->abilities[i].name, names[n]) == 0)
        value = json_boolean(list->abilities[i].works), any = true;
    if (value == NULL) {
      json_t *old = json_object_get(before, names[n]);
      value = json_is_boolean(old) ? json_incref(old) : json_null();
    }
    json_object_set_new(device, names[n], value);
  }
  if (any) return device;
  json_decref(device);
  return NULL;
}

/* What is there; NULL where there is nothing that counts. */
static json_t *read_file(const cachefile_place *place, const char *name) {
  char why[CACHEFILE_WHY];
  uint64_t bytes = 0;
  json_t *root = NULL;
  const int fd = cachefile_open(place, name, MOST_BYTES, &bytes, why);
  char *text = fd >= 0 ? malloc((size_t)bytes + 1) : NULL;
  if (text != NULL && cachefile_read(fd, text, (size_t)bytes))
    root = json_loadb(text, (size_t)bytes, JSON_REJECT_DUPLICATES, NULL);
  free(text);
  if (fd >= 0) close(fd);
  return root;
}

static bool write_file(const cachefile_place *place, const char *name, json_t *root, char *why) {
  char *text = root != NULL ? json_dumps(root, JSON_COMPACT) : NULL;
  if (text == NULL) snprintf(why, CACHEFILE_WHY, "out of memory");
  const bool good = text != NULL && cachefile_write(place, name, text, strlen(text), why);
  free(text);
  return good;
}

int check_store(const check_options *o, const check_list *list) {
  char folder[4096], name[48], why[CACHEFILE_WHY] = "";
  const cachefile_place place = {folder, "abilities-", ".json", LIMIT};
  struct stat info;
  if (list->n_abilities == 0) return CHECK_DONE;
  if (!find_folder(o, folder, sizeof folder)) {
    kit_print(stderr,
              "heddle check-plugin: what was found of abilities is not kept: there is no folder for caches; name "
              "one with --store\n");
    return CHECK_DONE;
  }
  snprintf(name, sizeof name, "abilities-%016llx.json", (unsigned long long)fnv1a_text(o->library));
  json_t *before = read_file(&place, name), *devices = json_array(), *root = NULL;
  if (stat(o->library, &info) != 0) snprintf(why, sizeof why, "the plugin's file is gone");
  else {
    for (uint32_t i = 0; i < list->n_devices; i++) {
      json_t *device = device_entry(list, i, known_before(before, &info, o->library, i, list->drivers[i]));
      if (device != NULL) json_array_append_new(devices, device);
    }
    root =
        json_pack("{s:i, s:s, s:I, s:I, s:O}", "format", 1, "path", o->library, "size", (json_int_t)info.st_size,
                  "mtime_ns", (json_int_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec, "devices", devices);
  }
  const bool good = why[0] == '\0' && write_file(&place, name, root, why);
  json_decref(root);
  json_decref(devices);
  json_decref(before);
  if (good) return CHECK_DONE;
  kit_print(stderr, "heddle check-plugin: what was found of abilities cannot be kept in %s: %s\n", folder, why);
  return CHECK_FAILED;
}
