/* core/table.c: takes a plugin's tables over zeroed ones of ours, so that the host knows one layout only.
 * A member that a table must have and lacks is named. */
#include <string.h>

#include "core/error.h"
#include "core/registry.h"

enum { MAX_TABLE = 1 << 16 };

bool heddle__table_take(void *dst, size_t dst_bytes, const void *src, size_t size_bytes) {
  uint64_t have = 0;
  memset(dst, 0, dst_bytes);
  memcpy(&have, src, size_bytes); /* little-endian, as platform.cmake makes sure */
  if (have < size_bytes || have > MAX_TABLE) return false;
  memcpy(dst, src, have < dst_bytes ? (size_t)have : dst_bytes);
  return true;
}

/* A member that is not NULL where need holds. Function pointers are compared as bytes, which C allows of any object. */
typedef struct member {
  const char *name;
  size_t offset;
} member;

static bool is_null(const void *table, size_t offset) {
  void (*value)(void);
  memcpy(&value, (const char *)table + offset, sizeof value);
  return value == NULL;
}

static heddle_status require(const void *table, const char *group, const member *members, size_t n, heddle_error *err) {
  for (size_t i = 0; i < n; i++)
    if (is_null(table, members[i].offset))
      return heddle__fail(err, HEDDLE_EABI, "%s.%s is missing", group, members[i].name);
  return HEDDLE_OK;
}

#define M(group, name) \
  { #name, offsetof(heddle_##group##_table, name) }
#define REQUIRE(out, group, ...) \
  require(&(out)->group, #group, (const member[]){__VA_ARGS__}, \
          sizeof((const member[]){__VA_ARGS__}) / sizeof(member), err)

/* Takes one group; an absent one stays zero. */
#define TAKE(group) \
  if (root->group != NULL && !heddle__table_take(&out->group, sizeof out->group, root->group, sizeof(uint64_t))) \
  return heddle__fail(err, HEDDLE_EABI, "%s.struct_size is wrong", #group)

heddle_status heddle__tables_take(const heddle_plugin *root, heddle__tables *out, heddle_error *err) {
  memset(out, 0, sizeof *out);
  TAKE(device);
  TAKE(memory);
  TAKE(copy);
  TAKE(stream);
  TAKE(event);
  TAKE(fence);
  TAKE(op);
  TAKE(layout);
  TAKE(module);
  TAKE(capture);
  TAKE(timing);
  TAKE(external);
  out->has_event = root->event != NULL;
  out->has_op = root->op != NULL;
  out->has_layout = root->layout != NULL;
  out->has_module = root->module != NULL;
  out->has_capture = root->capture != NULL;
  out->has_timing = root->timing != NULL;
  out->has_external = root->external != NULL;

  heddle_status s =
      REQUIRE(out, device, M(device, close), M(device, open), M(device, query), M(device, health), M(device, idle));
  if (s == HEDDLE_OK) s = REQUIRE(out, memory, M(memory, free), M(memory, alloc));
  if (s == HEDDLE_OK)
    s = REQUIRE(out, copy, M(copy, h2d), M(copy, d2h), M(copy, write), M(copy, read), M(copy, d2d), M(copy, fill));
  if (s == HEDDLE_OK && (out->copy.can_peer == NULL) != (out->copy.peer == NULL))
    s = heddle__fail(err, HEDDLE_EABI, "copy.%s is missing: can_peer and peer come together",
                     out->copy.peer == NULL ? "peer" : "can_peer");
  if (s == HEDDLE_OK)
    s = REQUIRE(out, stream, M(stream, close), M(stream, create), M(stream, submit), M(stream, sync), M(stream, query));
  if (s == HEDDLE_OK && out->has_event)
    s = REQUIRE(out, event, M(event, free), M(event, create), M(event, record), M(event, wait));
  if (s == HEDDLE_OK && !out->has_op && !out->has_module)
    s = heddle__fail(err, HEDDLE_EABI, "op is missing, and there is no module either");
  if (s == HEDDLE_OK && out->has_op)
    s = REQUIRE(out, op, M(op, launch_free), M(op, op_free), M(op, query), M(op, prepare), M(op, bind), M(op, run));
  if (s == HEDDLE_OK && out->has_layout)
    s = REQUIRE(out, layout, M(layout, bytes), M(layout, pack), M(layout, describe));
  if (s == HEDDLE_OK && out->has_module)
    s = REQUIRE(out, module, M(module, unload), M(module, formats), M(module, load), M(module, kernel_get),
                M(module, launch));
  if (s == HEDDLE_OK && out->has_capture)
    s = REQUIRE(out, capture, M(capture, free), M(capture, begin), M(capture, end), M(capture, replay));
  if (s == HEDDLE_OK && out->has_timing)
    s = REQUIRE(out, timing, M(timing, free), M(timing, create), M(timing, mark), M(timing, read),
                M(timing, calibrate));
  if (s == HEDDLE_OK && out->has_external)
    s = REQUIRE(out, external, M(external, export_memory), M(external, import_memory));
  return s;
}

heddle_status heddle__tables_fit(const heddle__tables *t, const heddle_pdevice_desc *desc, heddle_error *err) {
  bool on_return = (desc->caps & HEDDLE_CAP_INLINE) != 0;
  heddle_status s = HEDDLE_OK;
  if (!on_return || (desc->caps & HEDDLE_CAP_UNIFIED) != 0) s = REQUIRE(t, memory, M(memory, map), M(memory, unmap));
  if (s == HEDDLE_OK && (desc->caps & HEDDLE_CAP_NONCOHERENT) != 0)
    s = REQUIRE(t, memory, M(memory, flush), M(memory, invalidate));
  if (s == HEDDLE_OK && !on_return) s = REQUIRE(t, event, M(event, create));
  if (s == HEDDLE_OK && !on_return) s = REQUIRE(t, fence, M(fence, signal));
  return s;
}
