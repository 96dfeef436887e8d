/* Another plugin with one function less: the setting "of" is that plugin's file, "lacks" the place of a function, as
 * "copy.3" for the fourth of the table copy, or a table, as "copy"; "cut" ends the table before the function instead.
 * tests/conformance/test_lacking.py uses it; it is not one of those that a case of the kit must catch. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "heddle/plugin.h"

enum { TABLES = 12, MOST = 512 };

static const struct {
  const char *name;
  size_t offset; /* of the pointer in the root */
} groups[TABLES] = {
    {"device", offsetof(heddle_plugin, device)}, {"memory", offsetof(heddle_plugin, memory)},
    {"copy", offsetof(heddle_plugin, copy)},     {"stream", offsetof(heddle_plugin, stream)},
    {"event", offsetof(heddle_plugin, event)},   {"fence", offsetof(heddle_plugin, fence)},
    {"op", offsetof(heddle_plugin, op)},         {"layout", offsetof(heddle_plugin, layout)},
    {"module", offsetof(heddle_plugin, module)}, {"capture", offsetof(heddle_plugin, capture)},
    {"timing", offsetof(heddle_plugin, timing)}, {"external", offsetof(heddle_plugin, external)},
};

static heddle_plugin root;
static uint64_t copies[TABLES][MOST / 8];

/* Copies the table and takes the function away, or what is there of the root. */
static void take_away(const char *what, bool cut) {
  const char *dot = strchr(what, '.');
  const size_t place = dot != NULL ? strtoul(dot + 1, NULL, 10) : 0,
               n = dot != NULL ? (size_t)(dot - what) : strlen(what);
  for (size_t i = 0; i < TABLES; i++) {
    const void *table;
    uint64_t bytes;
    if (strlen(groups[i].name) != n || strncmp(what, groups[i].name, n) != 0) continue;
    memcpy(&table, (char *)&root + groups[i].offset, sizeof table);
    if (table == NULL) return;
    memcpy(&bytes, table, sizeof bytes);
    if (bytes > MOST || 8 + 8 * place >= bytes) return;
    memcpy(copies[i], table, bytes);
    if (cut) copies[i][0] = 8 + 8 * place;
    else copies[i][1 + place] = 0;
    table = dot != NULL ? copies[i] : NULL;
    memcpy((char *)&root + groups[i].offset, &table, sizeof table);
  }
}

HEDDLE_PLUGIN_EXPORT const heddle_plugin *heddle_plugin_entry(const heddle_host *host, heddle_error *err) {
  char path[4096], what[64];
  static heddle_plugin_entry_fn entry;
  if (entry != NULL) return entry(host, err) != NULL ? &root : NULL;
  if (host->config(host->ctx, "of", path, sizeof path) <= 0) return NULL;
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  void *symbol = library != NULL ? dlsym(library, "heddle_plugin_entry") : NULL;
  if (symbol == NULL) return NULL;
  memcpy(&entry, &symbol, sizeof entry);
  const heddle_plugin *theirs = entry(host, err);
  if (theirs == NULL) return NULL;
  memcpy(&root, theirs, theirs->struct_size < sizeof root ? theirs->struct_size : sizeof root);
  if (host->config(host->ctx, "lacks", what, sizeof what) > 0) take_away(what, false);
  if (host->config(host->ctx, "cut", what, sizeof what) > 0) take_away(what, true);
  return &root;
}
