/* A lost device is reported to the host as another one.
 * caught by: health/lost-fault
 * and by: health/reset
 * says: with the cookie */
#include "base.h"

/* The host's table with one function of our own. */
static heddle_host table;
static const heddle_host *real;

static void fault(void *ctx, uint64_t cookie, int32_t code, const char *text) {
  real->device_fault(ctx, cookie + 1, code, text);
}

static heddle_status open_instance(const heddle_host *host, heddle_pinstance **out, heddle_error *err) {
  table = *host;
  real = host;
  table.device_fault = fault;
  return base_open_instance(&table, out, err);
}

#define base_open_instance open_instance
#include "tables.h"
