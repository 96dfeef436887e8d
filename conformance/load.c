/* conformance/load.c: the group "load": the file, its one symbol, the entry, and the sizes and members of the tables that
 * it gives. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "conformance/elf_symbols.h"
#include "conformance/kit_side.h"
#include "conformance/proc_self.h"
#include "conformance/process_left.h"

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

/* ---- the host's table */

/* A host's table in pages of its own, bytes long, with a page behind it that nobody may touch. */
static heddle_host *guarded_host(kit *k, size_t bytes, void **pages) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char *at = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED || mprotect(at + page, page, PROT_NONE) != 0) kit_skip(k, "the kit is out of memory");
  char *host = at + page - bytes;
  memcpy(host, &k->host, bytes);
  *pages = at;
  return (heddle_host *)(void *)host;
}

/* Opens and works with these two tables, of which the first is gone when the entry has returned. */
static void with_hosts(kit *k, heddle_host *entered, void *pages, const heddle_host *opened) {
  char why[CONTRACT_TEXT];
  uint32_t n = 0;
  if (!kit_stage_library(k)) kit_skip(k, "%s", k->err.text);
  k->theirs = k->side->entry(entered, &k->err);
  mprotect(pages, (size_t)sysconf(_SC_PAGESIZE), PROT_NONE);
  if (k->theirs == NULL) kit_fail(k, "the entry refused a host of the same major: \"%.800s\"", k->err.text);
  if (!contract_take(k->theirs, &k->root, &k->t, why)) kit_skip(k, "%s", why);
  if (!contract_complete(&k->root, &k->t, why)) kit_skip(k, "%s (load/functions)", why);
  kit_calls_watch(k);
  const heddle_status s = k->root.open_instance(opened, &k->instance, &k->err);
  if (s == HEDDLE_ENODEV) kit_skip(k, "%s", k->err.text);
  kit_ok(k, s, "open_instance");
  kit_ok(k, k->root.device_count(k->instance, &n, &k->err), "device_count");
  if (k->index >= n) kit_skip(k, "the plugin has no device here");
  k->desc = (heddle_pdevice_desc){.struct_size = sizeof k->desc};
  kit_ok(k, k->root.device_describe(k->instance, k->index, &k->desc, &k->err), "device_describe");
  k->dev = kit_open(k, k->index);
  kit_calls_stand_in(k);
  process_work(k);
  kit_close_all(k);
}

static void entry_host(kit *k) {
  void *pages;
  heddle_host *entered = guarded_host(k, sizeof *entered, &pages);
  with_hosts(k, entered, pages, &k->host);
}

/* A host of 1.0: nothing that came later is there. */
static void older_host(kit *k) {
  void *pages[2];
  const size_t bytes = offsetof(heddle_host, stop_requested);
  heddle_host *entered = guarded_host(k, bytes, &pages[0]), *opened = guarded_host(k, bytes, &pages[1]);
  entered->struct_size = opened->struct_size = (uint32_t)bytes;
  entered->abi_minor = opened->abi_minor = 0;
  with_hosts(k, entered, pages[0], opened);
}

/* ---- the tables */

static void name(kit *k) {
  char why[CONTRACT_TEXT];
  if (!contract_name(k->theirs->name, why)) kit_fail(k, "%s", why);
  kit_text(k, k->theirs->build, 1024, "the plugin's build");
}

static void sizes(kit *k) {
  char why[CONTRACT_TEXT];
  if (!contract_sizes(&k->root, why)) kit_fail(k, "%s", why);
}

static void functions(kit *k) {
  char why[CONTRACT_TEXT];
  if (!contract_complete(&k->root, &k->t, why)) kit_fail(k, "%s", why);
}

KIT_GROUP(
    kit_load, "load", {"load/file", "a plugin is a shared library for this machine", KIT_STAGE_FILE, 0, 0, file, NULL},
    {"load/exports", "a plugin exports one symbol, heddle_plugin_entry, and needs none of Heddle's", KIT_STAGE_FILE, 0,
     0, exports, NULL},
    {"load/entry", "heddle_plugin_entry returns a table of the host's major version", KIT_STAGE_FILE, 0, 0, entry,
     NULL},
    {"load/quiet_entry", "the entry opens nothing: no driver, no file, no thread", KIT_STAGE_FILE,
     KIT_OPENS | KIT_REFUSES, 0, quiet, NULL},
    {"load/other_major", "a plugin refuses a host whose abi_major is not its own, with the reason in err",
     KIT_STAGE_ENTRY, 0, 0, other_major, NULL},
    {"load/newer_minor", "minors are information and are never compared; what a newer host has more is passed over",
     KIT_STAGE_ENTRY, 0, 0, newer_minor, NULL},
    {"load/entry_host", "the host's table that the entry gets is valid for the call only", KIT_STAGE_FILE,
     KIT_OPENS | KIT_REFUSES, 30, entry_host, NULL},
    {"load/older_host", "a member of the host's that is newer than 1.0 is used where HEDDLE_HAS says that it is there",
     KIT_STAGE_FILE, KIT_OPENS | KIT_REFUSES, 30, older_host, NULL},
    {"load/again", "what the entry returns is a static const table", KIT_STAGE_ENTRY, 0, 0, again, NULL},
    {"load/name", "a name is lower-case letters, digits and '_', the first a letter", KIT_STAGE_ENTRY, 0, 0, name,
     NULL},
    {"load/sizes", "each table begins with struct_size, set with sizeof by the side that compiled it", KIT_STAGE_ENTRY,
     0, 0, sizes, NULL},
    {"load/functions", "required tables and functions are not NULL", KIT_STAGE_ENTRY, 0, 0, functions, NULL});
