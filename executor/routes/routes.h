/* executor/routes/routes.h: what crosses between libheddle and libheddle_routes.so, which tests routes and remembers on
 * the disk what it found; and what the files of the library share. Both are of one build. */
#ifndef HEDDLE_EXECUTOR_ROUTES_ROUTES_H
#define HEDDLE_EXECUTOR_ROUTES_ROUTES_H

#include <stdarg.h>

#include "core/config.h"
#include "executor/memory.h"
#include "executor/route_costs.h"

/* What the library uses of libheddle's: functions of the same names. */
typedef struct heddle__routes_host {
  void *(*alloc)(size_t count, size_t size);
  void (*free)(void *p);
  void (*vlogf)(const heddle__log *log, int32_t level, const char *component, const char *format, va_list args);
  bool (*config_get)(const heddle__config *config, const char *key, const char **value, const char **origin);
  heddle_status (*config_each)(const heddle__config *config, const char *prefix, heddle__config_fn each, void *user,
                               heddle_error *err);
  heddle_status (*number)(heddle_context *ctx, const char *key, int64_t fallback, int64_t min, int64_t max,
                          int64_t *out, heddle_error *err);
  uint64_t (*now_ns)(void);
  heddle_status (*device_open)(heddle_device *dev, heddle_error *err);
  void (*device_close)(heddle_device *dev);
  heddle_status (*settle)(heddle_device *dev, heddle_pstream *stream, uint64_t timeout_ns, bool *quiet,
                          heddle_error *err);
  void (*device_fault)(heddle_device *dev, int32_t api_code, const char *text);
  heddle_status (*memory_create)(heddle_device *dev, uint32_t kind, uint64_t bytes, uint64_t align, uint64_t granule,
                                 heddle__memory **out, heddle_error *err);
  void (*memory_release)(heddle__memory *m);
  const heddle__route_note *(*find)(const heddle_device *from, const heddle_device *to, heddle__route route);
  heddle__route_cost (*cost_of)(const heddle_device *from, const heddle_device *to, heddle__route route);
  bool (*fetches)(const heddle_device *owner, const heddle_device *dev);
  heddle_status (*add)(const heddle_device *from, const heddle_device *to, heddle__route route,
                       const heddle__route_cost *cost, heddle_error *err);
} heddle__routes_host;

/* libheddle looks up heddle_routes_entry (core/beside.h), which takes the table above. */
typedef struct heddle__routes_table {
  const char *version; /* heddle_version() of the library */
  /* Adds notes of what the disk knows of a pair. Any thread. */
  void (*recall)(const heddle_device *from, const heddle_device *to);
  /* heddle__route_test, of a route that is not known or off. */
  heddle_status (*test)(heddle_device *from, heddle_device *to, heddle__route route, heddle_error *err);
} heddle__routes_table;

/* ---------------------------------------------------------------- between the files of the library */

/* Moves patterns over a route and times it. HEDDLE_OK: cost is what was measured. HEDDLE_EFAILED: the bytes were wrong, or
 * a call failed, in words that do not name the devices; wrong tells the first. Other failures say nothing of the route. */
heddle_status heddle__route_probe(const heddle__routes_host *host, heddle_device *from, heddle_device *to,
                                  heddle__route route, heddle__route_cost *cost, bool *wrong, heddle_error *err);

/* What is remembered of an ordered pair, one member a route. */
typedef struct heddle__route_record {
  bool is_there[HEDDLE__ROUTE_STAGED2 + 1];
  heddle__route_cost costs[HEDDLE__ROUTE_STAGED2 + 1];
} heddle__route_record;

/* Reads the record of a pair; false where there is none, or it is damaged or of other drivers or plugins. */
bool heddle__route_record_read(const heddle__routes_host *host, const heddle_device *from, const heddle_device *to,
                               heddle__route_record *out);
/* Adds one finding to what is remembered. Says in the log why, where it cannot. */
void heddle__route_record_add(const heddle__routes_host *host, const heddle_device *from, const heddle_device *to,
                              heddle__route route, const heddle__route_cost *cost);

void heddle__routes_say(const heddle__routes_host *host, const heddle_device *dev, int32_t level, const char *format,
                        ...) __attribute__((format(printf, 4, 5)));

#endif
