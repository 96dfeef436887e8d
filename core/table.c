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
  char name[14]; /* in place, so that a loader has nothing to relocate */
  uint16_t offset;
} member;

static bool is_null(const void *table, size_t offset) {
  void (*value)(void);
  memcpy(&value, (const char *)table + offset, sizeof value);
  return value == NULL;
}

static heddle_status require(const void *table, const char *group, const member *members, size_t n, heddle_error *err) {
  for (size_t i = 0; i < n; i++)
    if (is_null(table, members[i].offset))
      return heddle__fail(err, HEDDLE_EABI, "%s.%.14s is missing", group, members[i].name);
  return HEDDLE_OK;
}

#define M(group, name) \
  { #name, offsetof(heddle_##group##_table, name) }
/* What each table must have. */
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
/* What some devices need besides: those whose memory is mapped, or flushed, and those whose work is waited for. */
static const member memory_mapped[] = {M(memory, map), M(memory, unmap)};
static const member memory_noncoherent[] = {M(memory, flush), M(memory, invalidate)};
static const member event_fenced[] = {M(event, create)};
static const member fence_signalled[] = {M(fence, signal)};

#define REQUIRE(out, group, members) require(&(out)->group, #group, members, sizeof members / sizeof members[0], err)

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

  heddle_status s = REQUIRE(out, device, device_members);
  if (s == HEDDLE_OK) s = REQUIRE(out, memory, memory_members);
  if (s == HEDDLE_OK) s = REQUIRE(out, copy, copy_members);
  if (s == HEDDLE_OK && (out->copy.can_peer == NULL) != (out->copy.peer == NULL))
    s = heddle__fail(err, HEDDLE_EABI, "copy.%s is missing: can_peer and peer come together",
                     out->copy.peer == NULL ? "peer" : "can_peer");
  if (s == HEDDLE_OK) s = REQUIRE(out, stream, stream_members);
  if (s == HEDDLE_OK && out->has_event) s = REQUIRE(out, event, event_members);
  if (s == HEDDLE_OK && !out->has_op && !out->has_module)
    s = heddle__fail(err, HEDDLE_EABI, "op is missing, and there is no module either");
  if (s == HEDDLE_OK && out->has_op) s = REQUIRE(out, op, op_members);
  if (s == HEDDLE_OK && out->has_layout) s = REQUIRE(out, layout, layout_members);
  if (s == HEDDLE_OK && out->has_module) s = REQUIRE(out, module, module_members);
  if (s == HEDDLE_OK && out->has_capture) s = REQUIRE(out, capture, capture_members);
  if (s == HEDDLE_OK && out->has_timing) s = REQUIRE(out, timing, timing_members);
  if (s == HEDDLE_OK && out->has_external) s = REQUIRE(out, external, external_members);
  return s;
}

heddle_status heddle__tables_fit(const heddle__tables *t, const heddle_pdevice_desc *desc, heddle_error *err) {
  bool on_return = (desc->caps & HEDDLE_CAP_INLINE) != 0;
  heddle_status s = HEDDLE_OK;
  if (!on_return || (desc->caps & HEDDLE_CAP_UNIFIED) != 0) s = REQUIRE(t, memory, memory_mapped);
  if (s == HEDDLE_OK && (desc->caps & HEDDLE_CAP_NONCOHERENT) != 0) s = REQUIRE(t, memory, memory_noncoherent);
  if (s == HEDDLE_OK && !on_return) s = REQUIRE(t, event, event_fenced);
  if (s == HEDDLE_OK && !on_return) s = REQUIRE(t, fence, fence_signalled);
  return s;
}
