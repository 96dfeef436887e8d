/* core/discover.c: finds candidate plugins in the documented order: linked in, beside libheddle, in the installed folder, where
 * plugin_path says; or only where plugins says. In a folder these are manifests, then libraries. A candidate that cannot be
 * one gets its reason here; none is opened. */
#define _GNU_SOURCE /* dladdr */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/parts.h"
#include "core/probe.h"
#include "core/registry.h"
#include "core/system_prefix.h"

#define FILE_PREFIX "libheddle_plugin_"
#define FILE_SUFFIX ".so"
#define MANIFEST_SUFFIX ".json"

#if HEDDLE_HAS_DLOPEN
typedef struct folders {
  dev_t dev[64];
  ino_t ino[64];
  size_t count;
} folders;

static bool ends_with(const char *name, const char *suffix) {
  size_t n = strlen(name), k = strlen(suffix);
  return n > k && strcmp(name + n - k, suffix) == 0;
}

/* Of a candidate whose path is a manifest's, makes one of the library that it describes. */
static heddle_status read_manifest(heddle__plugin *p, heddle_error *err) {
  heddle__manifest m;
  heddle_error why = {0, 0, ""};
  char *real = realpath(p->path, NULL), *library = NULL;
  heddle_status s =
      real != NULL ? heddle__trust(p->ctx, real, &why) : HEDDLE_OK; /* a missing file is reported when it is read */
  free(real);
  memset(&m, 0, sizeof m);
  p->manifest = heddle__strdup(p->path);
  if (p->manifest == NULL) return heddle__no_memory(err, "a plugin");
  if (s == HEDDLE_OK) s = heddle__probe_manifest(p->ctx, p->path, &m, &library, &why);
  memcpy(p->said, m.name, sizeof p->said);
  p->priority = m.priority;
  if (s == HEDDLE_ENOMEM) return heddle__fail(err, s, "%s: %s", p->path, why.text);
  if (s != HEDDLE_OK) return heddle__plugin_refuse(p, err, "%s", why.text);
  heddle__free(p->path);
  p->path = heddle__strdup(library);
  free(library);
  return p->path != NULL ? HEDDLE_OK : heddle__no_memory(err, "a plugin");
}

#endif

/* Appends a candidate of which only the path is known, which is copied. */
static heddle_status append(heddle_context *ctx, const char *path, const char *found_by, heddle__plugin **out,
                            heddle_error *err) {
  heddle__plugins *list = &ctx->plugins;
  heddle__plugin **grown = heddle__grow(list->data, list->count, list->count + 1, sizeof *grown);
  if (grown == NULL) return heddle__no_memory(err, "the list of plugins");
  list->data = grown;
  heddle__plugin *p = heddle__alloc(1, sizeof *p);
  if (p == NULL) return heddle__no_memory(err, "a plugin");
  list->data[list->count++] = *out = p;
  p->ctx = ctx;
  p->found_by = found_by;
  p->path = heddle__strdup(path);
  return p->path != NULL ? HEDDLE_OK : heddle__no_memory(err, "a plugin");
}

static heddle_status add_linked(heddle_context *ctx, heddle_plugin_entry_fn entry, heddle_error *err) {
  heddle__plugin *p;
  heddle_status s = append(ctx, HEDDLE__LINKED_IN, HEDDLE__LINKED_IN, &p, err);
  if (s == HEDDLE_OK) p->entry = entry;
  return s;
}

#if HEDDLE_HAS_DLOPEN
/* Appends a candidate, a library or a manifest; reason may be NULL. path is copied. */
static heddle_status add(heddle_context *ctx, const char *path, const char *found_by, const char *reason,
                         heddle_error *err) {
  bool described = reason == NULL && ends_with(path, MANIFEST_SUFFIX);
  heddle__plugins *list = &ctx->plugins;
  heddle__plugin *p;
  heddle_status added = append(ctx, path, found_by, &p, err);
  if (added != HEDDLE_OK) return added;
  if (reason != NULL) return heddle__plugin_refuse(p, err, "%s", reason);
  if (described) {
    heddle_status s = read_manifest(p, err);
    if (s != HEDDLE_OK || p->reason != NULL) return s;
  }
  struct stat info;
  if (stat(p->path, &info) != 0) return heddle__plugin_refuse(p, err, "there is no such file (errno %d)", errno);
  p->dev = info.st_dev;
  p->ino = info.st_ino;
  for (size_t i = 0; i + 1 < list->count; i++) {
    const heddle__plugin *other = list->data[i];
    if (other->ino != p->ino || other->dev != p->dev || other->ino == 0) continue;
    if (other->manifest != NULL && p->manifest == NULL && strcmp(other->path, p->path) == 0) {
      heddle__plugin_close(p); /* its manifest was there */
      list->count--;
      return HEDDLE_OK;
    }
    return heddle__plugin_refuse(p, err, "it is the same file as %s", other->path);
  }
  return HEDDLE_OK;
}

/* Manifests first, so that a library with one is what its manifest says. */
static int by_name(const void *a, const void *b) {
  const char *x = *(char *const *)a, *y = *(char *const *)b;
  int kind = ends_with(y, MANIFEST_SUFFIX) - ends_with(x, MANIFEST_SUFFIX);
  return kind != 0 ? kind : strcmp(x, y);
}

static bool is_plugin_name(const char *name) {
  size_t prefix = strlen(FILE_PREFIX);
  return ends_with(name, MANIFEST_SUFFIX) ||
         (strncmp(name, FILE_PREFIX, prefix) == 0 && ends_with(name + prefix, FILE_SUFFIX));
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

/* A list of folders or files with ':' between; a list that is a file's path is that file, whatever its name:
 * that is how heddle-probe gets its plugin. */
static heddle_status add_list(heddle_context *ctx, const char *list, const char *found_by, folders *seen,
                              heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  while (s == HEDDLE_OK && *list != '\0') {
    struct stat info;
    size_t n = list[0] == '/' && stat(list, &info) == 0 && !S_ISDIR(info.st_mode) ? strlen(list) : strcspn(list, ":");
    if (n > 0) {
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
#endif

char *heddle__own_folder(void) {
  const char *file = "/proc/self/exe";
#if HEDDLE_HAS_DLOPEN
  Dl_info info;
  /* The path as the loader saw it may be relative to a current directory of long ago: only an absolute one counts. */
  if (dladdr((const void *)(uintptr_t)&heddle__discover, &info) == 0 || info.dli_fname == NULL)
    return heddle__strdup("");
  if (info.dli_fname[0] == '/') file = info.dli_fname;
#endif
  char *real = realpath(file, NULL);
  char *slash = real != NULL ? strrchr(real, '/') : NULL;
  char *folder = heddle__strndup(real != NULL ? real : "", slash != NULL ? (size_t)(slash - real) : 0);
  free(real);
  return folder;
}

#if HEDDLE_HAS_DLOPEN
static heddle_status find_all(heddle_context *ctx, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  folders seen = {.count = 0};
  const char *value, *origin;
  if (heddle__config_get(ctx->config, "plugins", &value, &origin))
    return heddle__config_is_off(value) ? HEDDLE_OK : add_list(ctx, value, origin, &seen, err);

  const char *own = ctx->folder;
  for (size_t i = 0; i < 2 && s == HEDDLE_OK && own[0] != '\0'; i++) {
    char *path = heddle__format(i == 0 ? "%s/heddle/plugins" : "%s/../lib/heddle/plugins", own);
    if (path == NULL) s = heddle__no_memory(err, "the list of plugins");
    else s = add_folder(ctx, path, "beside libheddle", false, &seen, err);
    heddle__free(path);
  }
  const char *prefix = heddle__system_prefix();
  if (s == HEDDLE_OK && prefix[0] != '\0') {
    char *path = heddle__format("%s/lib/heddle/plugins", prefix);
    s = path != NULL ? add_folder(ctx, path, "the installed folder", false, &seen, err)
                     : heddle__no_memory(err, "the list of plugins");
    heddle__free(path);
  }
#ifdef HEDDLE_INSTALLED_PLUGINS
  if (s == HEDDLE_OK && prefix[0] == '\0')
    s = add_folder(ctx, HEDDLE_INSTALLED_PLUGINS, "the installed folder", false, &seen, err);
#endif
  if (s == HEDDLE_OK && heddle__config_get(ctx->config, "plugin_path", &value, &origin) &&
      !heddle__config_is_off(value))
    s = add_list(ctx, value, origin, &seen, err);
  return s;
}

#else
/* What is named in the settings is refused. */
static heddle_status find_all(heddle_context *ctx, heddle_error *err) {
  static const char *const keys[] = {"plugins", "plugin_path"};
  heddle_status s = HEDDLE_OK;
  for (size_t i = 0; i < 2 && s == HEDDLE_OK; i++) {
    const char *value, *origin;
    heddle__plugin *p;
    if (!heddle__config_get(ctx->config, keys[i], &value, &origin) || heddle__config_is_off(value)) continue;
    s = append(ctx, value, origin, &p, err);
    if (s == HEDDLE_OK)
      s = heddle__plugin_refuse(p, err,
                                "this build of Heddle opens no plugins in files (built with HEDDLE_DLOPEN=OFF)");
  }
  return s;
}
#endif

heddle_status heddle__discover(heddle_context *ctx, heddle_error *err) {
  ctx->folder = heddle__own_folder();
  if (ctx->folder == NULL) return heddle__no_memory(err, "the folder of libheddle");
  heddle_status s = heddle__linked_each(add_linked, ctx, err);
  if (s == HEDDLE_OK) s = find_all(ctx, err);
  heddle__plugin **list = ctx->plugins.data;
  for (size_t i = 1; i < ctx->plugins.count; i++) /* stable */
    for (size_t k = i; k > 0 && list[k - 1]->priority < list[k]->priority; k--) {
      heddle__plugin *first = list[k - 1];
      list[k - 1] = list[k];
      list[k] = first;
    }
  return s;
}
