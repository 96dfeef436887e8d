/* Any bytes as the file of what a test of routes found: what is taken has times that are numbers within limits. An odd
 * first byte seals them with their digest, which otherwise nothing gets past. */
#include "executor/routes/routes.h"

#include <math.h>
#include <stdlib.h>

static void say(const heddle_device *dev, int32_t level, const char *format, ...) {
  (void)dev, (void)level, (void)format;
}

#define heddle__routes_say say /* in the log of no context */
#include "executor/routes/record.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  body b;
  const place p = {.key = {{0, 0}}};
  if (size == 0) return 0;
  memset(&b, 0, sizeof b);
  memcpy(&b, data + 1, size - 1 < sizeof b ? size - 1 : sizeof b);
  if (data[0] % 2 == 1) {
    memcpy(b.magic, MAGIC, sizeof b.magic);
    b.key = p.key;
    seal(&b);
  }
  if (!is_good(&b, &p)) return 0;
  for (int r = 0; r <= HEDDLE__ROUTE_STAGED2; r++)
    if (!isfinite(b.routes[r].latency_ns) || !isfinite(b.routes[r].ns_per_byte) || b.routes[r].latency_ns < 0) abort();
  return 0;
}
