/* executor/routes/routes.c: what becomes of what a test finds: a note of the
 * context's, a line of the log, and where it says something of the machine rather than of the moment, a record. */
#include "executor/routes/routes.h"

#include <string.h>

#include "core/error.h"
#include "core/failure.h"
#include "core/registry.h"

static const char *const names[] = {"same", "direct", "shared", "peer", "staged", "staged twice"};

void heddle__routes_say(const heddle_device *dev, int32_t level, const char *format, ...) {
  va_list args;
  va_start(args, format);
  heddle__vlogf(&dev->ctx->log, level, "routes", format, args);
  va_end(args);
}

static bool is_again(const heddle_device *dev) {
  const char *value, *origin;
  return heddle__config_get(dev->ctx->config, "routes.test", &value, &origin) && strcmp(value, "again") == 0;
}

void heddle__routes_read(const heddle_device *from, const heddle_device *to) {
  heddle__route_record record;
  if (is_again(from) || !heddle__route_record_read(from, to, &record)) return;
  for (int r = 0; r <= HEDDLE__ROUTE_STAGED2; r++) {
    if (!record.is_there[r] || heddle__route_find(from, to, (heddle__route)r) != NULL) continue;
    if (record.costs[r].off)
      heddle__routes_say(from, HEDDLE_LOG_INFO, "%s to %s, %s: known to be wrong, not used", from->name, to->name,
                         names[r]);
    (void)heddle__route_add(from, to, (heddle__route)r, &record.costs[r], NULL);
  }
}

static heddle_status probe(heddle_device *from, heddle_device *to, heddle__route route, heddle__route_cost *cost,
                           bool *wrong, heddle_error *err) {
  heddle_status s = heddle__device_open(from, err);
  if (s != HEDDLE_OK) return s;
  s = heddle__device_open(to, err);
  if (s == HEDDLE_OK) {
    s = heddle__route_probe(from, to, route, cost, wrong, err);
    if (s == HEDDLE_EDEVICE) { /* whose it is, its plugin has reported; a health check of both finds it */
      for (int i = 0; i < 2; i++) {
        heddle_device *dev = i == 0 ? from : to;
        heddle_error why = {0};
        if (dev->t->device.health(dev->handle, &why) == HEDDLE_EDEVICE)
          heddle__device_fault(dev, why.api_code, why.text);
      }
    }
    heddle__device_close(to);
  }
  heddle__device_close(from);
  return s;
}

heddle_status heddle__route_retest(heddle_device *from, heddle_device *to, heddle__route route, heddle_error *err) {
  heddle__route_cost cost = {0};
  heddle_error why = {0};
  bool wrong = false, spare = route == HEDDLE__ROUTE_PEER || route == HEDDLE__ROUTE_SHARED;
  const char *way = names[route];
  const uint64_t start = heddle__now_ns();
  heddle_status s = probe(from, to, route, &cost, &wrong, &why);
  if (s == HEDDLE_OK) {
    heddle__routes_say(from, HEDDLE_LOG_INFO, "%s to %s, %s: %.1f us and %.3f ns a byte; tested in %.1f ms", from->name,
                       to->name, way, cost.latency_ns / 1e3, cost.ns_per_byte,
                       (double)(heddle__now_ns() - start) / 1e6);
    heddle__route_record_add(from, to, route, &cost);
    return heddle__route_add(from, to, route, &cost, err);
  }
  if (s == HEDDLE_ENOMEM || s == HEDDLE_ELIMIT) { /* a run may still fit */
    heddle__routes_say(from, HEDDLE_LOG_INFO, "%s to %s, %s: not tested: %s", from->name, to->name, way, why.text);
    cost = heddle__route_cost_of(from, to, route);
    return heddle__route_add(from, to, route, &cost, err);
  }
  if (err != NULL) *err = why;
  if (s == HEDDLE_EDEVICE || s == HEDDLE_ETIMEOUT || (!wrong && !spare))
    return heddle__prefix_on(heddle__device_inline(to) ? from->name : to->name, err, s,
                             "the self-test of the route from %s to %s (%s): ", from->name, to->name, way);
  cost.off = true;
  if (wrong) heddle__route_record_add(from, to, route, &cost);
  if (spare) {
    heddle__routes_say(from, HEDDLE_LOG_WARN, "%s to %s, %s: the route is wrong and not used: %s", from->name, to->name,
                       way, why.text);
    return heddle__route_add(from, to, route, &cost, err);
  }
  return heddle__prefix(
      err, HEDDLE_EFAILED,
      "the route from %s to %s (%s) is wrong, and there is no other; leave one of the devices out, or "
      "mend its driver: ",
      from->name, to->name, way);
}
