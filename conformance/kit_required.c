/* conformance/kit_required.c: what a plugin must have, by heddle/plugin.h: tables and functions that are not NULL. */
#include "conformance/kit_side.h"

#define NEED(group, function) \
  if (t->group.function == NULL) return #group "." #function
#define TABLE(group) \
  if (k->root.group == NULL) return "the table " #group
#define ROOT(function) \
  if (k->root.function == NULL) return #function

static const char *missing_of_all(const kit *k) {
  const kit_tables *t = &k->t;
  ROOT(close_instance);
  ROOT(open_instance);
  ROOT(device_count);
  ROOT(device_describe);
  TABLE(device);
  TABLE(memory);
  TABLE(copy);
  TABLE(stream);
  NEED(device, close);
  NEED(device, open);
  NEED(device, query);
  NEED(device, health);
  NEED(device, idle);
  NEED(memory, free);
  NEED(memory, alloc);
  NEED(copy, h2d);
  NEED(copy, d2h);
  NEED(copy, write);
  NEED(copy, read);
  NEED(copy, d2d);
  NEED(copy, fill);
  NEED(stream, close);
  NEED(stream, create);
  NEED(stream, submit);
  NEED(stream, sync);
  NEED(stream, query);
  if ((t->copy.can_peer == NULL) != (t->copy.peer == NULL))
    return t->copy.peer == NULL ? "copy.peer, which comes with can_peer," : "copy.can_peer, which comes with peer,";
  if (!t->has_op && !t->has_module) return "the table op, or module in its place,";
  return NULL;
}

/* A group that is there has all of its functions but the optional ones. */
static const char *missing_of_groups(const kit_tables *t) {
  if (t->has_event) {
    NEED(event, free);
    NEED(event, create);
    NEED(event, record);
    NEED(event, wait);
  }
  if (t->has_op) {
    NEED(op, launch_free);
    NEED(op, op_free);
    NEED(op, query);
    NEED(op, prepare);
    NEED(op, bind);
    NEED(op, run);
  }
  if (t->has_layout) {
    NEED(layout, bytes);
    NEED(layout, pack);
    NEED(layout, describe);
  }
  if (t->has_module) {
    NEED(module, unload);
    NEED(module, formats);
    NEED(module, load);
    NEED(module, kernel_get);
    NEED(module, launch);
  }
  if (t->has_capture) {
    NEED(capture, free);
    NEED(capture, begin);
    NEED(capture, end);
    NEED(capture, replay);
  }
  if (t->has_timing) {
    NEED(timing, free);
    NEED(timing, create);
    NEED(timing, mark);
    NEED(timing, read);
    NEED(timing, calibrate);
  }
  if (t->has_external) {
    NEED(external, export_memory);
    NEED(external, import_memory);
  }
  return NULL;
}

const char *kit_missing(const kit *k) {
  const char *missing = missing_of_all(k);
  return missing != NULL ? missing : missing_of_groups(&k->t);
}
