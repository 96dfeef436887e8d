/* executor/place_hop.c: what a copy between two devices takes, for automatic placement (executor/place/). */
#include "executor/place/placer.h"

#include "core/parts.h"
#include "core/registry.h"

heddle_status heddle__placer_hop(heddle_device *from, heddle_device *to, bool test, heddle__hop *out,
                                 heddle_error *err) {
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

#if !HEDDLE_HAS_PLACE
heddle_status heddle__placer_open(heddle_context *ctx, heddle__placer **out, heddle_error *err) {
  (void)ctx;
  *out = NULL;
  return heddle__left_out(err, "automatic placement", "HEDDLE_PLACE");
}

void heddle__placer_close(heddle__placer *p) {
  (void)p; /* there is none */
}

heddle_status heddle__placer_place(heddle__placer *p, heddle__plan *plan, heddle_error *err) {
  (void)p, (void)plan, (void)err;
  return HEDDLE_OK;
}
#endif
