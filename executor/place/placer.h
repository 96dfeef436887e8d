/* executor/place/placer.h: automatic placement (docs/placement.md), which place.c asks for where the caller wishes it. The work
 * is done in executor/place/. */
#ifndef HEDDLE_EXECUTOR_PLACE_PLACER_H
#define HEDDLE_EXECUTOR_PLACE_PLACER_H

#include "core/config.h"
#include "executor/partition.h"

/* Belongs to a model: what it measured is kept for all its programs. */
typedef struct heddle__placer heddle__placer;

/* What a placement was predicted to take, for a plan. Memory is the plan's. */
typedef struct heddle__placing {
  const char *text; /* lines of the plan's summary */
  const char *json; /* an object */
} heddle__placing;

/* What a copy between two devices takes; measured: on this machine. */
typedef struct heddle__hop {
  double latency_ns, ns_per_byte;
  bool measured;
} heddle__hop;

/* The way that a value takes from one device to another, neither of them the same memory; NULL: the host, where no
 * device is inline. test: the route is tested first where it is untested (heddle__route_test). */
heddle_status heddle__placer_hop(heddle_device *from, heddle_device *to, bool test, heddle__hop *out,
                                 heddle_error *err);

/* HEDDLE_EINVAL for settings that are none; HEDDLE_EUNSUPPORTED in a build without it. */
heddle_status heddle__placer_open(heddle_context *ctx, heddle__placer **out, heddle_error *err);
void heddle__placer_close(heddle__placer *p); /* takes NULL */

/* Places the nodes that nothing stronger places (plan.placed[].is_free), which already have the device of the order of
 * preference, and fills plan.placing. Opens devices and measures on them, unless it knows enough. Any thread, one at a
 * time for a placer; blocks. */
heddle_status heddle__placer_place(heddle__placer *p, heddle__plan *plan, heddle_error *err);

#endif
