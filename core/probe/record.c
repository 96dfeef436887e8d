/* core/probe/record.c: what is kept of a plugin's try: a file in probe.cache_dir, named after the plugin's real path. It counts
 * for that file (size and time), that version of Heddle, and the drivers that were installed: the libraries that the try
 * loaded, and what the system reports of drivers without loading one. It says under which limits the try was made. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/cache_folder.h"
#include "core/error.h"
#include "core/probe/file.h"
#include "core/probe/probe.h"

enum { FORMAT = 1, MOST_BYTES = 1 << 20, NAME_BYTES = 64, DEFAULT_LIMIT = 16 << 20 };

static const char *folder_of(const heddle__plugin *p) {
  const char *folder;
  bool there = heddle__config_get(p->ctx->config, "probe.cache_dir", &folder, NULL) && folder[0] == '/';
  return there ? folder : NULL;
}

static void name_of(const heddle__plugin *p, char name[NAME_BYTES]) {
  snprintf(name, NAME_BYTES, "probe-%016llx.json", heddle__probe_number(p->real));
}

static int64_t time_of(const struct stat *info) {
  return (int64_t)info->st_mtim.tv_sec * 1000000000 + info->st_mtim.tv_nsec;
}

json_t *heddle__record_file(const char *path) {
  struct stat info;
  if (stat(path, &info) != 0) return NULL;
  return json_pack("[s, I, I]", path, (json_int_t)info.st_size, (json_int_t)time_of(&info));
}

static char system_words[40];
static pthread_once_t system_once = PTHREAD_ONCE_INIT;

/* Once a process. A number that changes where a driver of the system is installed, removed or replaced, as far as that can be
 * known without opening one: kernel modules that tell their version, and the folders of loaders; and where a process sees
 * less of the system than another does (a container, a chroot). */
static void look_at_system(void) {
  static const char *const versions[] = {"/proc/driver/nvidia/version", "/sys/module/amdgpu/version"};
  static const char *const folders[] = {"/etc/OpenCL/vendors", "/etc/vulkan/icd.d", "/usr/share/vulkan/icd.d"};
  static const char *const seen[] = {"/proc/self/maps", "/sys/devices/system/cpu", "/dev/null", "/dev/shm", "/dev/dri",
                                     "/dev/kfd",        "/dev/nvidiactl"};
  heddle__digest d = {{0, 0}};
  for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
    char text[512];
    int fd = open(versions[i], O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text) : 0;
    if (fd >= 0) close(fd);
    heddle__digest_add(&d, text, n > 0 ? (uint64_t)n : 0);
  }
  for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
    struct stat info;
    int64_t time = stat(folders[i], &info) == 0 ? time_of(&info) : 0;
    heddle__digest_add(&d, &time, sizeof time);
  }
  for (size_t i = 0; i < sizeof seen / sizeof seen[0]; i++) {
    const char there = access(seen[i], F_OK) == 0;
    heddle__digest_add(&d, &there, 1);
  }
  snprintf(system_words, sizeof system_words, "%016llx%016llx", (unsigned long long)d.word[0],
           (unsigned long long)d.word[1]);
}

static const char *system_text(void) {
  pthread_once(&system_once, look_at_system);
  return system_words;
}

static bool is_text(const json_t *root, const char *key, const char *text) {
  const char *value = json_string_value(json_object_get(root, key));
  return value != NULL && strcmp(value, text) == 0;
}

static bool is_number(const json_t *root, const char *key, int64_t n) {
  const json_t *value = json_object_get(root, key);
  return json_is_integer(value) && json_integer_value(value) == n;
}

static bool are_there(const json_t *files) {
  for (size_t i = 0; i < json_array_size(files); i++) {
    const json_t *one = json_array_get(files, i);
    const char *path = json_string_value(json_array_get(one, 0));
    struct stat info;
    if (path == NULL || stat(path, &info) != 0 || json_integer_value(json_array_get(one, 1)) != info.st_size ||
        json_integer_value(json_array_get(one, 2)) != time_of(&info))
      return false;
  }
  return true;
}

static int64_t number_of(const json_t *root, const char *key) {
  const json_t *value = json_object_get(root, key);
  return json_is_integer(value) ? json_integer_value(value) : 0;
}

static void read_finding(const json_t *root, heddle__finding *out) {
  const char *reason = json_string_value(json_object_get(root, "reason"));
  out->state = json_string_value(json_object_get(root, "state"));
  out->reason = reason != NULL ? reason : "";
  out->limits = heddle__limits_of(json_object_get(root, "limits"));
  out->time = number_of(root, "time");
  out->limit_ms = number_of(root, "limit_ms");
  out->failures = number_of(root, "failures");
}

json_t *heddle__record_read(const heddle__plugin *p, heddle__finding *out) {
  const char *folder = folder_of(p);
  char path[4096], name[NAME_BYTES], *text;
  size_t bytes;
  if (folder == NULL) return NULL;
  name_of(p, name);
  int n = snprintf(path, sizeof path, "%s/%s", folder, name);
  if (n < 0 || (size_t)n >= sizeof path) return NULL;
  if (heddle__probe_file_read(path, true, MOST_BYTES, &text, &bytes, NULL) != HEDDLE_OK) return NULL;
  json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, NULL);
  free(text);
  if (is_number(root, "format", FORMAT) && is_text(root, "heddle", heddle_version()) &&
      is_text(root, "path", p->real) && is_number(root, "size", p->size) && is_number(root, "mtime_ns", p->mtime_ns) &&
      is_text(root, "system", system_text()) && json_string_value(json_object_get(root, "state")) != NULL &&
      are_there(json_object_get(root, "files"))) {
    read_finding(root, out);
    return root;
  }
  json_decref(root);
  return NULL;
}

void heddle__record_write(const heddle__plugin *p, const heddle__finding *what, json_t *drivers, json_t *files) {
  const char *folder = folder_of(p);
  char name[NAME_BYTES];
  int64_t limit = 0;
  heddle_error err = {0, 0, ""};
  name_of(p, name);
  json_t *root =
      json_pack("{s:i s:s s:s s:I s:I s:s s:s s:s s:I s:I s:I s:o* s:O* s:O*}", "format", FORMAT, "heddle",
                heddle_version(), "path", p->real, "size", (json_int_t)p->size, "mtime_ns", (json_int_t)p->mtime_ns,
                "state", what->state, "reason", what->reason, "system", system_text(), "time", (json_int_t)what->time,
                "limit_ms", (json_int_t)what->limit_ms, "failures", (json_int_t)what->failures, "limits",
                heddle__limits_json(&what->limits), "drivers", drivers, "files", files);
  char *text = root != NULL ? json_dumps(root, JSON_COMPACT) : NULL;
  heddle_status s = HEDDLE_OK;
  if (folder == NULL) s = heddle__fail(&err, HEDDLE_EIO, "there is no folder (setting probe.cache_dir)");
  else if (heddle__context_number(p->ctx, "probe.cache_bytes", DEFAULT_LIMIT, 0, INT64_MAX, &limit, &err) != HEDDLE_OK)
    s = err.status;
  else if (text == NULL) s = heddle__fail(&err, HEDDLE_EIO, "its path is no UTF-8, or memory is out");
  else s = heddle__probe_file_write(folder, name, (uint64_t)limit, text, &err);
  if (s != HEDDLE_OK)
    heddle__probe_say(p, HEDDLE_LOG_INFO, "%s: the result of its try is not kept: %s", p->path, err.text);
  free(text);
  json_decref(root);
}
