/* core/probe.h: the door to libheddle_probe.so (probe/): what is kept of a plugin's first try in a process of its own, what
 * heddle check-plugin found that its devices can do, and manifests. docs/probing.md has the whole of it.
 * All of this is called by the one thread that loads plugins, and may block. */
#ifndef HEDDLE_CORE_PROBE_H
#define HEDDLE_CORE_PROBE_H

#include <stdarg.h>

#include "core/registry.h"

/* What the file beside a library says of it. */
typedef struct heddle__manifest {
  char name[64];     /* of the plugin */
  char library[512]; /* relative to the manifest's folder, no part of it ".." */
  int32_t priority;
} heddle__manifest;

/* The files of a plugin in the setting probe.cache_dir are called KIND-%016llx.json, by FNV-1a of its real path. */
static inline unsigned long long heddle__probe_number(const char *real) {
  unsigned long long hash = 0xcbf29ce484222325ULL;
  for (; *real != '\0'; real++) hash = (hash ^ (unsigned char)*real) * 0x100000001b3ULL;
  return hash;
}

/* Reads a manifest and finds its library: heddle__probe_table.manifest. */
heddle_status heddle__probe_manifest(heddle_context *ctx, const char *path, heddle__manifest *out, char **library,
                                     heddle_error *err);

/* Before a plugin is opened: refuses it where it took a process down, and where it could not be tried. HEDDLE_OK also
 * then. */
heddle_status heddle__probe_before(heddle__plugin *plugin, heddle_error *err);

/* Once its devices are listed: compares their drivers with what is kept, and takes from them what is known not to work.
 * HEDDLE_ENOMEM. */
heddle_status heddle__probe_after(heddle__plugin *plugin, heddle_error *err);

/* ---- between libheddle and libheddle_probe.so (core/beside.h) */

typedef struct heddle__probe_host {
  void *(*alloc)(size_t count, size_t size);
  void (*free)(void *p);
  void (*vlogf)(const heddle__log *log, int32_t level, const char *component, const char *format, va_list args);
  bool (*config_get)(const heddle__config *config, const char *key, const char **value, const char **origin);
  heddle_status (*config_each)(const heddle__config *config, const char *prefix, heddle__config_fn each, void *user,
                               heddle_error *err);
  heddle_status (*context_number)(heddle_context *ctx, const char *key, int64_t fallback, int64_t min, int64_t max,
                                  int64_t *out, heddle_error *err);
  heddle_status (*refuse)(heddle__plugin *plugin, heddle_error *err, const char *format, ...)
      __attribute__((format(printf, 3, 4)));
} heddle__probe_host;

typedef struct heddle__probe_table {
  const char *version;
  /* Reads a manifest and finds its library: *library is its real path, malloc's. HEDDLE_EABI, HEDDLE_EIO,
   * HEDDLE_EFORMAT or HEDDLE_ELIMIT with what is wrong; out->name is set as far as it was read. */
  heddle_status (*manifest)(const char *path, heddle__manifest *out, char **library, heddle_error *err);
  heddle_status (*before)(heddle__plugin *plugin, heddle_error *err);
  void (*after)(heddle__plugin *plugin); /* frees abilities, and sets it to NULL, where it does not count */
} heddle__probe_table;

#endif
