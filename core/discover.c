/* core/discover.c: finds candidate plugins in the documented order: beside libheddle, in the installed folder, where
 * plugin_path says; or only where plugins says. A candidate that cannot be one gets its reason here; none is opened. */
#define _GNU_SOURCE /* dladdr */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/registry.h"

#define FILE_PREFIX "libheddle_plugin_"
#define FILE_SUFFIX ".so"

typedef struct folders {
  dev_t dev[64];
  ino_t ino[64];
  size_t count;
} folders;

/* Appends a candidate; reason may be NULL. path is copied. */
static heddle_status add(heddle_context *ctx, const char *path, const char *found_by, const char *reason,
                         heddle_error *err) {
  heddle__plugins *list = &ctx->plugins;
  heddle__plugin **grown = heddle__grow(list->data, list->count, list->count + 1, sizeof *grown);
  if (grown == NULL) return heddle__no_memory(err, "the list of plugins");
  list->data = grown;
  heddle__plugin *p = heddle__alloc(1, sizeof *p);
  if (p == NULL) return heddle__no_memory(err, "a plugin");
  list->data[list->count++] = p;
  p->ctx = ctx;
  p->found_by = found_by;
  p->path = heddle__strdup(path);
  if (p->path == NULL) return heddle__no_memory(err, "a plugin");
  if (reason != NULL) return heddle__plugin_refuse(p, err, "%s", reason);
  struct stat info;
  if (stat(path, &info) != 0) return heddle__plugin_refuse(p, err, "there is no such file (errno %d)", errno);
  p->dev = info.st_dev;
  p->ino = info.st_ino;
  for (size_t i = 0; i + 1 < list->count; i++) {
    const heddle__plugin *other = list->data[i];
    if (other->ino == p->ino && other->dev == p->dev && other->ino != 0)
      return heddle__plugin_refuse(p, err, "it is the same file as %s", other->path);
  }
  return HEDDLE_OK;
}

static int by_name(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_plugin_name(const char *name) {
  size_t n = strlen(name), prefix = strlen(FILE_PREFIX), suffix = strlen(FILE_SUFFIX);
  return n > prefix + suffix && strncmp(name, FILE_PREFIX, prefix) == 0 && strcmp(name + n - suffix, FILE_SUFFIX) == 0;
}

/* The files of a folder in sorted order. named: the user asked for it, so that its absence is reported. */
static heddle_status add_folder(heddle_context *ctx, const char *path, const char *found_by, bool named, folders *seen,
                                heddle_error *err) {
  struct stat info;
  DIR *dir = opendir(path);
  if (dir == NULL) {
    if (!named) return HEDDLE_OK;
    return add(ctx, path, found_by, errno == ENOENT ? "there is no such folder" : "the folder cannot be read", err);
  }
  heddle_status s = HEDDLE_OK;
  char **names = NULL;
  size_t count = 0;
  bool again = false;
  if (stat(path, &info) == 0) {
    for (size_t i = 0; i < seen->count; i++) again |= seen->dev[i] == info.st_dev && seen->ino[i] == info.st_ino;
    if (!again && seen->count < sizeof seen->ino / sizeof seen->ino[0]) {
      seen->dev[seen->count] = info.st_dev;
      seen->ino[seen->count++] = info.st_ino;
    }
  }
  for (struct dirent *entry; !again && s == HEDDLE_OK && (entry = readdir(dir)) != NULL;) {
    if (!is_plugin_name(entry->d_name)) continue;
    char **grown = heddle__grow(names, count, count + 1, sizeof *names);
    if (grown != NULL) names = grown;
    char *full = grown != NULL ? heddle__format("%s/%s", path, entry->d_name) : NULL;
    if (full == NULL) s = heddle__no_memory(err, "the list of plugins");
    else names[count++] = full;
  }
  closedir(dir);
  if (count > 0) qsort(names, count, sizeof *names, by_name);
  for (size_t i = 0; i < count; i++) {
    if (s == HEDDLE_OK) s = add(ctx, names[i], found_by, NULL, err);
    heddle__free(names[i]);
  }
  heddle__free(names);
  return s;
}

/* A list of folders or files with ':' between. */
static heddle_status add_list(heddle_context *ctx, const char *list, const char *found_by, folders *seen,
                              heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  while (s == HEDDLE_OK && *list != '\0') {
    size_t n = strcspn(list, ":");
    if (n > 0) {
      struct stat info;
      char *path = heddle__strndup(list, n);
      if (path == NULL) s = heddle__no_memory(err, "the list of plugins");
      else if (path[0] != '/')
        s = add(ctx, path, found_by, "it is a relative path; plugins are named by absolute ones", err);
      else if (stat(path, &info) == 0 && !S_ISDIR(info.st_mode)) s = add(ctx, path, found_by, NULL, err);
      else s = add_folder(ctx, path, found_by, true, seen, err);
      heddle__free(path);
    }
    list += n + (list[n] == ':');
  }
  return s;
}

char *heddle__own_folder(void) {
  Dl_info info;
  /* The path as the loader saw it may be relative to a current directory of long ago: only an absolute one counts. */
  if (dladdr((const void *)(uintptr_t)&heddle__discover, &info) == 0 || info.dli_fname == NULL) return NULL;
  char *real = realpath(info.dli_fname[0] == '/' ? info.dli_fname : "/proc/self/exe", NULL);
  char *slash = real != NULL ? strrchr(real, '/') : NULL;
  char *folder = slash != NULL ? heddle__strndup(real, (size_t)(slash - real)) : NULL;
  free(real);
  return folder;
}

heddle_status heddle__discover(heddle_context *ctx, heddle_error *err) {
  folders seen = {.count = 0};
  const char *value, *origin;
  if (heddle__config_get(ctx->config, "plugins", &value, &origin))
    return heddle__config_is_off(value) ? HEDDLE_OK : add_list(ctx, value, origin, &seen, err);

  heddle_status s = HEDDLE_OK;
  char *own = heddle__own_folder();
  for (size_t i = 0; i < 2 && s == HEDDLE_OK && own != NULL; i++) {
    char *path = heddle__format(i == 0 ? "%s/heddle/plugins" : "%s/../lib/heddle/plugins", own);
    if (path == NULL) s = heddle__no_memory(err, "the list of plugins");
    else s = add_folder(ctx, path, "beside libheddle", false, &seen, err);
    heddle__free(path);
  }
  heddle__free(own);
#ifdef HEDDLE_INSTALLED_PLUGINS
  if (s == HEDDLE_OK) s = add_folder(ctx, HEDDLE_INSTALLED_PLUGINS, "the installed folder", false, &seen, err);
#endif
  if (s == HEDDLE_OK && heddle__config_get(ctx->config, "plugin_path", &value, &origin) &&
      !heddle__config_is_off(value))
    s = add_list(ctx, value, origin, &seen, err);
  return s;
}
