/* conformance/store.c: keeps which optional abilities of a plugin's devices were seen to work, for libheddle to read:
 * one small JSON file a plugin file, written by rename. docs/conformance.md has its members. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conformance/check.h"

static const char *const names[] = {"fence_wait", "peer", "import_host"};
enum { N_NAMES = sizeof names / sizeof names[0] };

/* FNV-1a, 64 bits (Fowler, Noll and Vo; RFC 9923). */
static uint64_t hash(const char *text) {
  uint64_t h = UINT64_C(0xcbf29ce484222325);
  for (const unsigned char *p = (const unsigned char *)text; *p != '\0'; p++) h = (h ^ *p) * UINT64_C(0x100000001b3);
  return h;
}

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

static int make_folder(char *path) {
  for (char *p = path + 1;; p++) {
    if (*p != '/' && *p != '\0') continue;
    char end = *p;
    *p = '\0';
    if (mkdir(path, 0700) != 0 && errno != EEXIST && access(path, F_OK) != 0) return errno;
    *p = end;
    if (end == '\0') return 0;
  }
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

static int write_file(const char *folder, const char *name, json_t *root) {
  char path[4352], temporary[4352];
  snprintf(path, sizeof path, "%.4095s/%s", folder, name);
  snprintf(temporary, sizeof temporary, "%.4095s/.%s.%ld", folder, name, (long)getpid());
  char *text = json_dumps(root, JSON_COMPACT);
  if (text == NULL) return ENOMEM;
  int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600), status = fd < 0 ? errno : 0;
  size_t n = strlen(text);
  for (size_t done = 0; status == 0 && done < n;) {
    ssize_t wrote = write(fd, text + done, n - done);
    if (wrote >= 0) done += (size_t)wrote;
    else if (errno != EINTR) status = errno;
  }
  free(text);
  if (fd >= 0 && close(fd) != 0 && status == 0) status = errno;
  if (status == 0 && rename(temporary, path) != 0) status = errno;
  if (status != 0 && fd >= 0) unlink(temporary);
  return status;
}

int check_store(const check_options *o, const check_list *list) {
  char folder[4096], name[48], path[4352];
  struct stat info;
  if (list->n_abilities == 0) return CHECK_DONE;
  if (!find_folder(o, folder, sizeof folder)) {
    fprintf(stderr, "heddle check-plugin: what was found of abilities is not kept: there is no folder for caches; name "
                    "one with --store\n");
    return CHECK_DONE;
  }
  int status = stat(o->library, &info) == 0 ? make_folder(folder) : errno;
  snprintf(name, sizeof name, "abilities-%016llx.json", (unsigned long long)hash(o->library));
  snprintf(path, sizeof path, "%.4095s/%s", folder, name);
  json_t *before = json_load_file(path, JSON_REJECT_DUPLICATES, NULL), *devices = json_array();
  json_t *root = NULL;
  if (status == 0) {
    for (uint32_t i = 0; i < list->n_devices; i++) {
      json_t *device = device_entry(list, i, known_before(before, &info, o->library, i, list->drivers[i]));
      if (device != NULL) json_array_append_new(devices, device);
    }
    root =
        json_pack("{s:i, s:s, s:I, s:I, s:O}", "format", 1, "path", o->library, "size", (json_int_t)info.st_size,
                  "mtime_ns", (json_int_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec, "devices", devices);
    status = root != NULL ? write_file(folder, name, root) : ENOMEM;
  }
  json_decref(root);
  json_decref(devices);
  json_decref(before);
  if (status == 0) return CHECK_DONE;
  fprintf(stderr, "heddle check-plugin: what was found of abilities cannot be kept in %s: %s\n", folder,
          strerror(status));
  return CHECK_FAILED;
}
