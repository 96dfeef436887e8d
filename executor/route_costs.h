/* executor/route_costs.h: what is known of the ways between two devices: which one a value would take, how long that
 * takes, and which were found wrong. Figures are measured by the self-test of routes where there was one, on this machine
 * with these drivers (docs/routes.md); else they are defaults, the same everywhere. */
#ifndef HEDDLE_EXECUTOR_ROUTE_COSTS_H
#define HEDDLE_EXECUTOR_ROUTE_COSTS_H

#include <stdatomic.h>

#include "core/context.h"

/* How a value gets from one device to another; chosen once a pair. */
typedef enum heddle__route {
  HEDDLE__ROUTE_SAME,   /* no copy */
  HEDDLE__ROUTE_DIRECT, /* between the host's memory and a device: one copy */
  HEDDLE__ROUTE_SHARED, /* a page that both use: none */
  HEDDLE__ROUTE_PEER,   /* one copy between two devices of a plugin */
  HEDDLE__ROUTE_STAGED, /* over a hop buffer on the host: two copies */
  HEDDLE__ROUTE_STAGED2 /* over two hop buffers: two copies and one of the host's */
} heddle__route;

/* Time from when a value is there until it can be used on the other side: latency_ns + bytes * ns_per_byte, with the
 * waking of a waiting thread in the latency. */
typedef struct heddle__route_cost {
  double latency_ns;
  double ns_per_byte;
  bool measured; /* by the self-test; false: a default */
  bool off;      /* the self-test found it wrong: it is not used */
} heddle__route_cost;

/* What is known of a route from one device to another; NULL is the host, which is like any inline device. Of SHARED the
 * two are in either order. Any thread; takes no lock. */
heddle__route_cost heddle__route_cost_of(const heddle_device *from, const heddle_device *to, heddle__route route);

/* Whether user can compute in the UNIFIED memory of owner: their descriptions allow it, and no test found it wrong. */
bool heddle__route_shares(const heddle_device *owner, const heddle_device *user);

/* Whether there is a direct copy from one to the other, that no test found wrong. */
bool heddle__route_peers(const heddle_device *from, const heddle_device *to);

/* Whether host memory of owner's (its PINNED or UNIFIED memory, or plain where it is inline) can be the host side of copies
 * of dev. */
bool heddle__route_fetches(const heddle_device *owner, const heddle_device *dev);

/* The route of a value that one device computes and only one other device reads. Any thread. */
heddle__route heddle__route_expect(const heddle_device *from, const heddle_device *to);

/* Reads what earlier processes measured between each two of the devices, in both directions; what this process knows
 * stays. Nothing where the setting routes.test is 0. Any thread; blocks on the disk the first time. */
void heddle__routes_recall(heddle_device *const *devices, uint32_t n);

/* Tests one route, unless it is known or the setting routes.test is 0; of SHARED, from is whose memory the page is, and
 * both directions are tested. Both devices are opened for it. A wrong route is turned off and warned of in the log, which
 * is no failure where another one is left (SHARED, PEER); for the others it is HEDDLE_EFAILED. HEDDLE_EDEVICE: a
 * device was lost by it; HEDDLE_ETIMEOUT: it hung. Any thread; blocks for some milliseconds. */
heddle_status heddle__route_test(heddle_device *from, heddle_device *to, heddle__route route, heddle_error *err);

/* ---------------------------------------------------------------- between the files of routes */

/* What a context keeps of routes; NULL where memory is out. */
typedef struct heddle__route_table {
  heddle__attachment attachment; /* first */
  _Atomic(const struct heddle__route_note *) notes;
  atomic_bool said_untested, said_unkept; /* reported once a context: no tests, and no file of their results */
} heddle__route_table;
heddle__route_table *heddle__route_table_of(heddle_context *ctx);

/* One thing that is known; a list of the context's, which only grows, in which the first that fits counts. With route
 * SAME it says that the disk was asked about the pair. */
typedef struct heddle__route_note {
  const struct heddle__route_note *next;
  const heddle_device *from, *to;
  heddle__route route;
  heddle__route_cost cost;
} heddle__route_note;

/* The note of exactly this, or NULL. */
const heddle__route_note *heddle__route_find(const heddle_device *from, const heddle_device *to, heddle__route route);
/* Adds one. HEDDLE_ENOMEM. */
heddle_status heddle__route_add(const heddle_device *from, const heddle_device *to, heddle__route route,
                                const heddle__route_cost *cost, heddle_error *err);

#endif
