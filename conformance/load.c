/* conformance/load.c: the group "load": the file, its one symbol, the entry, and the sizes and members of the tables that
 * it gives. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "conformance/elf_symbols.h"
#include "conformance/kit_side.h"
#include "conformance/proc_self.h"

/* ---- the file */

static bool no_symbol(void *sink, const char *name, bool defined) {
  (void)sink;
  (void)name;
  (void)defined;
  return false;
}

static void file(kit *k) {
  const char *bad = elf_symbols(k->file, no_symbol, NULL);
  if (bad != NULL) kit_fail(k, "the file is not a shared library that can be loaded: %s", bad);
  if (!kit_stage_library(k)) kit_fail(k, "%s", k->err.text);
}

/* Linkers of some years ago define these in every library. */
static bool of_linker(const char *name) {
  static const char *const names[] = {"_init", "_fini", "_edata", "_end", "__bss_start"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (strcmp(name, names[i]) == 0) return true;
  return false;
}

typedef struct seen {
  char exported[128], wanted[128];
  bool entry;
} seen;

static bool symbol(void *sink, const char *name, bool defined) {
  seen *s = sink;
  if (strcmp(name, "heddle_plugin_entry") == 0) s->entry = defined;
  else if (defined && !of_linker(name) && s->exported[0] == '\0') snprintf(s->exported, sizeof s->exported, "%s", name);
  else if (!defined && strncmp(name, "heddle_", 7) == 0) snprintf(s->wanted, sizeof s->wanted, "%s", name);
  return true;
}

static void exports(kit *k) {
  seen s = {.entry = false};
  const char *bad = elf_symbols(k->file, symbol, &s);
  if (bad != NULL) kit_fail(k, "the file's symbols cannot be read: %s", bad);
  if (!s.entry) kit_fail(k, "the file does not export heddle_plugin_entry");
  if (s.exported[0] != '\0')
    kit_fail(k, "the file exports '%s' too; two plugins with one name for something would disturb each other",
             s.exported);
  if (s.wanted[0] != '\0') kit_fail(k, "the file needs the symbol '%s', which no host gives to a plugin", s.wanted);
}

/* ---- the entry */

static void entry(kit *k) {
  if (!kit_stage_library(k) || !kit_stage_entry(k)) kit_fail(k, "%s", k->err.text);
}

static void quiet(kit *k) {
  if (!kit_stage_library(k)) kit_skip(k, "%s", k->err.text);
  uint32_t descriptors = proc_descriptors(), threads = proc_threads();
  kit_step(k, "heddle_plugin_entry");
  if (k->side->entry(&k->host, &k->err) == NULL) kit_skip(k, "the entry refused the kit: %.900s", k->err.text);
  uint32_t more = proc_descriptors();
  if (more != descriptors)
    kit_fail(k, "the entry left %u descriptors open, of %u before", (unsigned)more, (unsigned)descriptors);
  more = proc_threads();
  if (more != threads)
    kit_fail(k, "there are %u threads after the entry, and %u before", (unsigned)more, (unsigned)threads);
}

static void other_major(kit *k) {
  const uint16_t majors[] = {0, HEDDLE_ABI_MAJOR + 1, UINT16_MAX};
  for (size_t i = 0; i < sizeof majors / sizeof majors[0]; i++) {
    heddle_host host = k->host;
    host.abi_major = majors[i];
    if (i > 0) host.struct_size = 32; /* what is frozen is all that a plugin may look at */
    k->err = (heddle_error){0};
    if (k->side->entry(&host, &k->err) != NULL)
      kit_fail(k, "the entry gave a table to a host of ABI %u.0, which it cannot know", (unsigned)majors[i]);
    kit_text(k, k->err.text, sizeof k->err.text, "the error text of the entry");
    if (k->err.text[0] == '\0') kit_fail(k, "the entry refused a host of another major without words");
    if (k->side->entry(&host, NULL) != NULL)
      kit_fail(k, "the entry refused a host of another major, and then took it where err was NULL");
  }
}

static void newer_minor(kit *k) {
  struct {
    heddle_host host;
    unsigned char more[64];
  } newer = {.host = k->host};
  memset(newer.more, 0xff, sizeof newer.more);
  newer.host.abi_minor = HEDDLE_ABI_MINOR + 5;
  newer.host.struct_size = sizeof newer;
  if (k->side->entry(&newer.host, &k->err) == NULL)
    kit_fail(k, "the entry refused a host of ABI %d.%d: minors are never compared; it said \"%.800s\"",
             HEDDLE_ABI_MAJOR, HEDDLE_ABI_MINOR + 5, k->err.text);
}

static void again(kit *k) {
  if (k->side->entry(&k->host, &k->err) != k->theirs)
    kit_fail(k, "the entry gave another table when it was called again: the table is static");
}

/* ---- the tables */

static void name(kit *k) {
  const char *theirs = k->theirs->name;
  kit_text(k, theirs, 64, "the plugin's name");
  if (theirs[0] < 'a' || theirs[0] > 'z')
    kit_fail(k, "the plugin's name \"%s\" does not begin with a lower-case letter", theirs);
  if (theirs[strspn(theirs, "abcdefghijklmnopqrstuvwxyz0123456789_")] != '\0')
    kit_fail(k, "the plugin's name \"%s\" has other characters than lower-case letters, digits and '_'", theirs);
  kit_text(k, k->theirs->build, 1024, "the plugin's build");
}

/* Tables only ever grow at their end, and 1.0 is the first: none is shorter than it was there (docs/abi.md). */
#define FIRST_BYTES(group) sizeof(heddle_##group##_table)
#define FIRST_ROOT_BYTES offsetof(heddle_plugin, settings)      /* of 1.2 */
#define FIRST_DEVICE_BYTES offsetof(heddle_device_table, reset) /* of 1.2 */
#define FIRST_MEMORY_BYTES offsetof(heddle_memory_table, adopt) /* of 1.1 */
#define FIRST_OP_BYTES offsetof(heddle_op_table, resize)        /* of 1.2 */

static void sizes(kit *k) {
  if (k->theirs->struct_size < FIRST_ROOT_BYTES)
    kit_fail(k, "struct_size of the root table is %u; it has had %zu bytes since 1.0", (unsigned)k->theirs->struct_size,
             FIRST_ROOT_BYTES);
#define SIZE(group, bytes) \
  if (k->root.group != NULL && (k->root.group->struct_size < (bytes) || k->root.group->struct_size % 8 != 0)) \
  kit_fail(k, "struct_size of the table %s is %llu; it has had %zu bytes since 1.0, and grows by 8", #group, \
           (unsigned long long)k->root.group->struct_size, (size_t)(bytes))
  SIZE(device, FIRST_DEVICE_BYTES);
  SIZE(memory, FIRST_MEMORY_BYTES);
  SIZE(copy, FIRST_BYTES(copy));
  SIZE(stream, FIRST_BYTES(stream));
  SIZE(event, FIRST_BYTES(event));
  SIZE(fence, FIRST_BYTES(fence));
  SIZE(op, FIRST_OP_BYTES);
  SIZE(layout, FIRST_BYTES(layout));
  SIZE(module, FIRST_BYTES(module));
  SIZE(capture, FIRST_BYTES(capture));
  SIZE(timing, FIRST_BYTES(timing));
  SIZE(external, FIRST_BYTES(external));
#undef SIZE
}

static void functions(kit *k) {
  const char *missing = kit_missing(k);
  if (missing != NULL) kit_fail(k, "%s is missing, and is required", missing);
}

KIT_GROUP(kit_load, "load",
          {"load/file", "a plugin is a shared library for this machine", KIT_STAGE_FILE, 0, 0, file, NULL},
          {"load/exports", "a plugin exports one symbol, heddle_plugin_entry, and needs none of Heddle's",
           KIT_STAGE_FILE, 0, 0, exports, NULL},
          {"load/entry", "heddle_plugin_entry returns a table of the host's major version", KIT_STAGE_FILE, 0, 0, entry,
           NULL},
          {"load/quiet_entry", "the entry opens nothing: no driver, no file, no thread", KIT_STAGE_FILE,
           KIT_OPENS | KIT_REFUSES, 0, quiet, NULL},
          {"load/other_major", "a plugin refuses a host whose abi_major is not its own, with the reason in err",
           KIT_STAGE_ENTRY, 0, 0, other_major, NULL},
          {"load/newer_minor",
           "minors are information and are never compared; what a newer host has more is passed over", KIT_STAGE_ENTRY,
           0, 0, newer_minor, NULL},
          {"load/again", "what the entry returns is a static const table", KIT_STAGE_ENTRY, 0, 0, again, NULL},
          {"load/name", "a name is lower-case letters, digits and '_', the first a letter", KIT_STAGE_ENTRY, 0, 0, name,
           NULL},
          {"load/sizes", "each table begins with struct_size, set with sizeof by the side that compiled it",
           KIT_STAGE_ENTRY, 0, 0, sizes, NULL},
          {"load/functions", "required tables and functions are not NULL", KIT_STAGE_ENTRY, 0, 0, functions, NULL});
