/* executor/placer.h: automatic placement (docs/placement.md), which place.c asks for where the caller wishes it. The work
 * is done by libheddle_place.so (executor/placement/), of libheddle's version; this is also what crosses between the two. */
#ifndef HEDDLE_EXECUTOR_PLACER_H
#define HEDDLE_EXECUTOR_PLACER_H

#include "core/config.h"
#include "executor/partition.h"

/* Belongs to a model: what it measured is kept for all its programs. */
typedef struct heddle__placer {
  const struct heddle__placer_table *t;
} heddle__placer;

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

/* What the library uses of libheddle's. */
typedef struct heddle__placer_host {
  void *(*alloc)(size_t count, size_t size);
  void (*free)(void *p);
  void (*vlogf)(const heddle__log *log, int32_t level, const char *component, const char *format, va_list args);
  uint64_t (*now_ns)(void);
  bool (*setting)(const heddle__config *config, const char *key, const char **value, const char **origin);
  heddle_status (*each)(const heddle__config *config, const char *prefix, heddle__config_fn each, void *user,
                        heddle_error *err);
  heddle_status (*number)(heddle_context *ctx, const char *key, int64_t fallback, int64_t min, int64_t max,
                          int64_t *out, heddle_error *err);
  void *(*plan_alloc)(heddle__plan *plan, size_t count, size_t size);
  char *(*plan_format)(heddle__plan *plan, const char *format, ...) __attribute__((format(printf, 2, 3)));
  /* The node's region, asked of one device, or of the library whose function it calls. HEDDLE_EUNSUPPORTED. */
  heddle_status (*ask)(heddle__plan *plan, uint32_t node, uint32_t device, heddle__answer *out, heddle_error *err);
  /* The groups that plugins would make of the nodes as they are placed now. Memory is the plan's. */
  heddle_status (*group)(heddle__plan *plan, heddle__grouping *out, heddle_error *err);
  heddle_status (*open)(heddle_device *dev, heddle_error *err);
  void (*close)(heddle_device *dev);
  heddle_status (*settle)(heddle_device *dev, heddle_pstream *stream, uint64_t timeout_ns, bool *quiet,
                          heddle_error *err);
  void (*fault)(heddle_device *dev, int32_t api_code, const char *text);
  /* The way that a value takes from one device to another, neither of them the same memory; NULL: the host, where no
   * device is inline. test: the route is tested first where nobody has (heddle__route_test). */
  heddle_status (*hop)(heddle_device *from, heddle_device *to, bool test, heddle__hop *out, heddle_error *err);
} heddle__placer_host;

/* libheddle looks up heddle_place_entry (core/beside.h), which takes nothing. */
typedef struct heddle__placer_table {
  const char *version; /* heddle_version() of the library */

  /* host stays. HEDDLE_EINVAL for settings that are none. */
  heddle_status (*open)(const heddle__placer_host *host, heddle_context *ctx, heddle__placer **out, heddle_error *err);
  void (*close)(heddle__placer *p);
  /* Places the nodes that nothing stronger places (plan.placed[].is_free), which already have the device of the order of
   * preference, and fills plan.placing. Opens devices and measures on them, unless it knows enough. Any thread, one at a
   * time for a placer; blocks. */
  heddle_status (*place)(heddle__placer *p, heddle__plan *plan, heddle_error *err);
} heddle__placer_table;

/* The library's answer to the wish of a model. HEDDLE_EUNSUPPORTED where the library is not there. */
heddle_status heddle__placer_open(heddle_context *ctx, heddle__placer **out, heddle_error *err);
void heddle__placer_close(heddle__placer *p); /* takes NULL */

#endif
