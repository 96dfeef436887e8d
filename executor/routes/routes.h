/* executor/routes/routes.h: the self-test of routes, and what is remembered of it on the disk. */
#ifndef HEDDLE_EXECUTOR_ROUTES_ROUTES_H
#define HEDDLE_EXECUTOR_ROUTES_ROUTES_H

#include <stdarg.h>

#include "core/config.h"
#include "executor/memory.h"
#include "executor/route_costs.h"

/* Adds notes of what the disk knows of a pair. Any thread. */
void heddle__routes_read(const heddle_device *from, const heddle_device *to);
/* heddle__route_test, of a route that is not known or off. */
heddle_status heddle__route_retest(heddle_device *from, heddle_device *to, heddle__route route, heddle_error *err);

/* ---------------------------------------------------------------- between the files of this room */

/* Moves patterns over a route and times it. HEDDLE_OK: cost is what was measured. HEDDLE_EFAILED: the bytes were wrong,
 * or a call failed, with a text that does not name the devices; wrong is true for the first. Other failures say nothing
 * of the route. */
heddle_status heddle__route_probe(heddle_device *from, heddle_device *to, heddle__route route, heddle__route_cost *cost,
                                  bool *wrong, heddle_error *err);

/* What is remembered of an ordered pair, one member a route. */
typedef struct heddle__route_record {
  bool is_there[HEDDLE__ROUTE_STAGED2 + 1];
  heddle__route_cost costs[HEDDLE__ROUTE_STAGED2 + 1];
} heddle__route_record;

/* Reads the record of a pair; false where there is none, or it is damaged or of other drivers or plugins. */
bool heddle__route_record_read(const heddle_device *from, const heddle_device *to, heddle__route_record *out);
/* Adds one finding to what is remembered. Says in the log why, where it cannot. */
void heddle__route_record_add(const heddle_device *from, const heddle_device *to, heddle__route route,
                              const heddle__route_cost *cost);

void heddle__routes_say(const heddle_device *dev, int32_t level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
