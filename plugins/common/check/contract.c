/* The root table, the groups and the plugin's name: see contract.h. */
#include "contract.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MAX_TABLE = 1 << 16, FROZEN_BYTES = 32 };

static bool broken(char *why, const char *format, ...) {
  va_list args;
  va_start(args, format);
  if (vsnprintf(why, CONTRACT_TEXT, format, args) < 0) why[0] = '\0';
  va_end(args);
  return false;
}

bool contract_copy(void *dst, size_t dst_bytes, const void *src, size_t size_bytes) {
  uint64_t have = 0;
  memset(dst, 0, dst_bytes);
  memcpy(&have, src, size_bytes); /* little-endian, as platform.cmake makes sure */
  if (have < size_bytes || have > MAX_TABLE) return false;
  memcpy(dst, src, have < dst_bytes ? (size_t)have : dst_bytes);
  return true;
}

/* ---------------------------------------------------------------- tables */

/* Each group: where the root table has it, where contract_tables does, and its bytes in version 1.0, which end with the
 * member that is named below. Tables only grow at their end (docs/abi.md). */
typedef struct group {
  char name[9]; /* in place, so that a loader has nothing to relocate */
  uint16_t root, table, bytes, first;
} group;

#define END(type, member) (offsetof(type, member) + sizeof(((type *)NULL)->member))
#define GROUP(name, last) \
  { \
#name, offsetof(heddle_plugin, name), offsetof(contract_tables, name), sizeof(heddle_##name##_table), \
        END(heddle_##name##_table, last) \
  }
static const group groups[] = {GROUP(device, memory_now), GROUP(memory, native),    GROUP(copy, peer),
                               GROUP(stream, query),      GROUP(event, wait),       GROUP(fence, wait),
                               GROUP(op, list),           GROUP(layout, describe),  GROUP(module, launch),
                               GROUP(capture, replay),    GROUP(timing, calibrate), GROUP(external, import_memory)};
enum { GROUPS = sizeof groups / sizeof groups[0], FIRST_ROOT = END(heddle_plugin, external) };

static const void *given(const heddle_plugin *root, const group *g) {
  const void *table;
  memcpy(&table, (const char *)root + g->root, sizeof table);
  return table;
}

static uint64_t size_of(const void *table) {
  uint64_t size;
  memcpy(&size, table, sizeof size);
  return size;
}

bool contract_frozen(const heddle_plugin *theirs, char *why) {
  if (theirs->struct_size < FROZEN_BYTES)
    return broken(why, "struct_size of the root table is %u, less than the %d bytes that are frozen",
                  (unsigned)theirs->struct_size, (int)FROZEN_BYTES);
  if (theirs->abi_major != HEDDLE_ABI_MAJOR)
    return broken(why, "it is written for plugin ABI %u.%u, this host has %d.%d; the first number must be the same",
                  theirs->abi_major, theirs->abi_minor, HEDDLE_ABI_MAJOR, HEDDLE_ABI_MINOR);
  return true;
}

bool contract_take(const heddle_plugin *theirs, heddle_plugin *root, contract_tables *t, char *why) {
  memset(t, 0, sizeof *t);
  if (!contract_frozen(theirs, why)) return false;
  if (!contract_copy(root, sizeof *root, theirs, sizeof theirs->struct_size))
    return broken(why, "struct_size of the root table is %u, which no version has", (unsigned)theirs->struct_size);
  for (int i = 0; i < GROUPS; i++) {
    const void *table = given(root, &groups[i]);
    if (table != NULL && !contract_copy((char *)t + groups[i].table, groups[i].bytes, table, sizeof(uint64_t)))
      return broken(why, "struct_size of the table %s is %llu, which no version has", groups[i].name,
                    (unsigned long long)size_of(table));
  }
  t->has_event = root->event != NULL;
  t->has_op = root->op != NULL;
  t->has_layout = root->layout != NULL;
  t->has_module = root->module != NULL;
  t->has_capture = root->capture != NULL;
  t->has_timing = root->timing != NULL;
  t->has_external = root->external != NULL;
  return true;
}

bool contract_sizes(const heddle_plugin *root, char *why) {
  if (root->struct_size < FIRST_ROOT)
    return broken(why, "struct_size of the root table is %u; it has had %zu bytes since 1.0",
                  (unsigned)root->struct_size, (size_t)FIRST_ROOT);
  for (int i = 0; i < GROUPS; i++) {
    const void *table = given(root, &groups[i]);
    const uint64_t size = table != NULL ? size_of(table) : groups[i].first;
    if (size < groups[i].first || size % 8 != 0)
      return broken(why, "struct_size of the table %s is %llu; it has had %u bytes since 1.0, and grows by 8",
                    groups[i].name, (unsigned long long)size, (unsigned)groups[i].first);
  }
  return true;
}

/* ---------------------------------------------------------------- functions */

/* A member that is not NULL. Function pointers are compared as bytes, which C allows of any object. */
typedef struct member {
  char name[18]; /* in place, as above */
  uint16_t offset;
} member;

static bool is_null(const void *table, size_t offset) {
  void (*value)(void);
  memcpy(&value, (const char *)table + offset, sizeof value);
  return value == NULL;
}

static bool all_there(const void *table, const char *of, const member *members, size_t n, char *why) {
  for (size_t i = 0; i < n; i++)
    if (is_null(table, members[i].offset))
      return broken(why, "%s%s%.18s is missing, and is required", of, of[0] != '\0' ? "." : "", members[i].name);
  return true;
}

#define R(name) \
  { #name, offsetof(heddle_plugin, name) }
#define M(group, name) \
  { #name, offsetof(heddle_##group##_table, name) }
static const member root_members[] = {R(close_instance), R(open_instance), R(device_count), R(device_describe)};
static const member device_members[] = {M(device, close), M(device, open), M(device, query), M(device, health),
                                        M(device, idle)};
static const member memory_members[] = {M(memory, free), M(memory, alloc)};
static const member copy_members[] = {M(copy, h2d),  M(copy, d2h), M(copy, write),
                                      M(copy, read), M(copy, d2d), M(copy, fill)};
static const member stream_members[] = {M(stream, close), M(stream, create), M(stream, submit), M(stream, sync),
                                        M(stream, query)};
static const member event_members[] = {M(event, free), M(event, create), M(event, record), M(event, wait)};
static const member op_members[] = {M(op, launch_free), M(op, op_free), M(op, query),
                                    M(op, prepare),     M(op, bind),    M(op, run)};
static const member layout_members[] = {M(layout, bytes), M(layout, pack), M(layout, describe)};
static const member module_members[] = {M(module, unload), M(module, formats), M(module, load), M(module, kernel_get),
                                        M(module, launch)};
static const member capture_members[] = {M(capture, free), M(capture, begin), M(capture, end), M(capture, replay)};
static const member timing_members[] = {M(timing, free), M(timing, create), M(timing, mark), M(timing, read),
                                        M(timing, calibrate)};
static const member external_members[] = {M(external, export_memory), M(external, import_memory)};

#define ALL_THERE(group) \
  all_there(&t->group, #group, group##_members, sizeof group##_members / sizeof group##_members[0], why)

bool contract_complete(const heddle_plugin *root, const contract_tables *t, char *why) {
  if (!all_there(root, "", root_members, sizeof root_members / sizeof root_members[0], why)) return false;
  for (int i = 0; i < 4; i++) /* device, memory, copy, stream */
    if (given(root, &groups[i]) == NULL) return broken(why, "the table %s is missing, and is required", groups[i].name);
  if (!ALL_THERE(device) || !ALL_THERE(memory) || !ALL_THERE(copy) || !ALL_THERE(stream)) return false;
  if ((t->copy.can_peer == NULL) != (t->copy.peer == NULL))
    return broken(why, "copy.%s is missing: can_peer and peer come together",
                  t->copy.peer == NULL ? "peer" : "can_peer");
  if (!t->has_op && !t->has_module) return broken(why, "the table op is missing, and there is no module either");
  return (!t->has_event || ALL_THERE(event)) && (!t->has_op || ALL_THERE(op)) &&
         (!t->has_layout || ALL_THERE(layout)) && (!t->has_module || ALL_THERE(module)) &&
         (!t->has_capture || ALL_THERE(capture)) && (!t->has_timing || ALL_THERE(timing)) &&
         (!t->has_external || ALL_THERE(external));
}

/* ---------------------------------------------------------------- the name */

bool contract_name(const char *name, char *why) {
  const char *fault = contract_text_fault(name, CONTRACT_NAME);
  if (fault != NULL) return broken(why, "the plugin's name %s; it has at most %d bytes", fault, (int)CONTRACT_NAME - 1);
  if (name[0] < 'a' || name[0] > 'z')
    return broken(why, "the plugin's name \"%s\" does not begin with a lower-case letter", name);
  if (name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_")] != '\0')
    return broken(why, "the plugin's name \"%s\" has other characters than lower-case letters, digits and '_'", name);
  return true;
}
