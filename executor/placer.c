/* executor/placer.c: opens libheddle_place.so for models that are placed automatically, and lends it what it needs. */
#include "executor/placer.h"

#include "core/alloc.h"
#include "core/beside.h"
#include "core/registry.h"

static heddle_status hop(heddle_device *from, heddle_device *to, bool test, heddle__hop *out, heddle_error *err) {
  heddle__route route = HEDDLE__ROUTE_DIRECT;
  heddle_status s = HEDDLE_OK;
  if (from != NULL && to != NULL) {
    heddle__routes_recall((heddle_device *[]){from, to}, 2);
    route = heddle__route_expect(from, to);
    const bool back = route == HEDDLE__ROUTE_SHARED && !heddle__route_shares(from, to); /* the owner comes first */
    if (test) s = heddle__route_test(back ? to : from, back ? from : to, route, err);
    route = heddle__route_expect(from, to); /* after the test it may be another */
  }
  const heddle__route_cost cost = heddle__route_cost_of(from, to, route);
  *out = (heddle__hop){cost.latency_ns, cost.ns_per_byte, cost.measured};
  return s;
}

static const heddle__placer_host host = {
    heddle__alloc,        heddle__free,          heddle__vlogf,          heddle__now_ns,
    heddle__config_get,   heddle__config_each,   heddle__context_number, heddle__plan_alloc,
    heddle__plan_format,  heddle__place_ask,     heddle__group_nodes,    heddle__device_open,
    heddle__device_close, heddle__device_settle, heddle__device_fault,   hop};

heddle_status heddle__placer_open(heddle_context *ctx, heddle__placer **out, heddle_error *err) {
  const void *table = NULL;
  heddle_status s = heddle__open_beside("libheddle_place.so.0", "automatic placement needs", "heddle_place_entry", 0,
                                        NULL, &table, err);
  return s == HEDDLE_OK ? ((const heddle__placer_table *)table)->open(&host, ctx, out, err) : s;
}

void heddle__placer_close(heddle__placer *p) {
  if (p != NULL) p->t->close(p);
}
