/* core/probe.h: what is kept of a plugin's first try in a process of its own, what
 * heddle check-plugin found that its devices can do, and manifests. docs/probing.md has the whole of it.
 * All of this is called by the one thread that loads plugins, and may block. */
#ifndef HEDDLE_CORE_PROBE_H
#define HEDDLE_CORE_PROBE_H

#include "core/registry.h"
#include "plugins/common/fnv.h"

/* What the file beside a library says of it. */
typedef struct heddle__manifest {
  char name[64];     /* of the plugin */
  char library[512]; /* relative to the manifest's folder, no part of it ".." */
  int32_t priority;
} heddle__manifest;

/* The files of a plugin in the setting probe.cache_dir are called KIND-%016llx.json, by FNV-1a of its real path. */
static inline unsigned long long heddle__probe_number(const char *real) {
  return fnv1a_text(real);
}

/* heddle__manifest_read; HEDDLE_EUNSUPPORTED in a build without it. */
heddle_status heddle__probe_manifest(heddle_context *ctx, const char *path, heddle__manifest *out, char **library,
                                     heddle_error *err);

/* Before a plugin is opened: refuses it where it took a process down, and where it could not be tried. HEDDLE_OK also
 * then. */
heddle_status heddle__probe_before(heddle__plugin *plugin, heddle_error *err);

/* Once its devices are listed: compares their drivers with what is kept, and takes from them what is known not to work.
 * HEDDLE_ENOMEM. */
heddle_status heddle__probe_after(heddle__plugin *plugin, heddle_error *err);

/* ---- core/probe/, for core/probe.c */

/* Reads a manifest and finds its library: *library is its real path, malloc's. HEDDLE_EABI, HEDDLE_EIO, HEDDLE_EFORMAT or
 * HEDDLE_ELIMIT with what is wrong; out->name is set as far as it was read. */
heddle_status heddle__manifest_read(const char *path, heddle__manifest *out, char **library, heddle_error *err);
heddle_status heddle__probe_try(heddle__plugin *plugin, heddle_error *err);
void heddle__probe_loaded(heddle__plugin *plugin); /* frees abilities, and sets it to NULL, where it does not count */

#endif
