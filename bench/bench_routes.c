/* bench/bench_routes.c: the route between each two devices, in both directions, as the self-test measures it; nothing is
 * read from a cache or written to it. Usage: bench_routes DEVICE DEVICE ...: a line a pair, "FROM TO ROUTE NS NS_PER_BYTE",
 * words of the route joined by '-'; devices that are not there are left out and said on standard error. */
#include <stdio.h>
#include <string.h>

#include "core/device.h"
#include "executor/route_costs.h"

enum { MOST = 16 };

static const char *const names[] = {"same", "direct", "shared", "peer", "staged", "staged-twice"};

static int pair(heddle_device *from, heddle_device *to) {
  heddle_error err = {0};
  heddle__route route = heddle__route_expect(from, to);
  /* A page is the owner's: where the first device cannot be one, it is the second. */
  bool turned = route == HEDDLE__ROUTE_SHARED && !heddle__route_shares(from, to);
  if (heddle__route_test(turned ? to : from, turned ? from : to, route, &err) != HEDDLE_OK) {
    fprintf(stderr, "%s to %s, %s: %s\n", from->name, to->name, names[route], err.text);
    return 1;
  }
  heddle__route after = heddle__route_expect(from, to);
  if (after != route) return pair(from, to); /* it was wrong */
  heddle__route_cost cost = heddle__route_cost_of(from, to, route);
  printf("%s %s %s %.0f %.6f\n", from->name, to->name, names[route], cost.latency_ns, cost.ns_per_byte);
  return 0;
}

int main(int argc, char **argv) {
  static const heddle_setting settings[] = {{"routes.test", "again"}, {"routes.cache_dir", "off"}, {"log", "warn"}};
  heddle_device *devices[MOST];
  heddle_context *ctx = NULL;
  heddle_error err = {0};
  int n = 0, failed = 0;
  if (heddle_context_create(settings, 3, NULL, NULL, &ctx, &err) != HEDDLE_OK) {
    fprintf(stderr, "%s\n", err.text);
    return 1;
  }
  for (int i = 1; i < argc && n < MOST; i++) {
    if (heddle_context_find_device(ctx, argv[i], &devices[n], &err) == HEDDLE_OK) n++;
    else fprintf(stderr, "%s: %s\n", argv[i], err.text);
  }
  for (int i = 0; i < n; i++)
    for (int k = 0; k < n; k++)
      if (i != k) failed += pair(devices[i], devices[k]);
  heddle_context_release(ctx);
  return failed != 0;
}
