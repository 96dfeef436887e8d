/* executor/route_costs.c: the list of what is known of routes; the self-test (executor/routes/) reads what
 * other processes found and tests what is untested. */
#include "executor/route_costs.h"

#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/parts.h"
#include "core/registry.h"
#include "executor/memory.h"
#include "executor/routes/routes.h"

enum { MOST_IMPORT_ALIGN = 4096 };

/* Where nothing was measured: microseconds to wake a waiting thread, and tenths of a nanosecond a byte, 10 GB/s a copy.
 * By route: same, direct, shared, peer, staged, staged twice. */
static const unsigned char defaults[][2] = {{0, 0}, {20, 1}, {10, 0}, {20, 1}, {40, 2}, {50, 3}};

static heddle__route_cost default_of(heddle__route route) {
  return (heddle__route_cost){1e3 * defaults[route][0], 0.1 * defaults[route][1], false, false};
}

/* ---- the list */

static void free_table(heddle__attachment *self) {
  heddle__route_table *t = (heddle__route_table *)(void *)self;
  for (const heddle__route_note *n = atomic_load(&t->notes), *next; n != NULL; n = next) {
    next = n->next;
    heddle__free((void *)(uintptr_t)n);
  }
  heddle__free(t);
}

static heddle__attachment *make_table(void) {
  heddle__route_table *t = heddle__alloc(1, sizeof *t);
  if (t == NULL) return NULL;
  t->attachment.free = free_table;
  return &t->attachment;
}

heddle__route_table *heddle__route_table_of(heddle_context *ctx) {
  return (heddle__route_table *)(void *)heddle__context_attached(ctx, make_table);
}

static const heddle__route_note *notes_of(const heddle_device *dev) {
  heddle__route_table *t = heddle__route_table_of(dev->ctx);
  return t != NULL ? atomic_load_explicit(&t->notes, memory_order_acquire) : NULL;
}

const heddle__route_note *heddle__route_find(const heddle_device *from, const heddle_device *to, heddle__route route) {
  const heddle__route_note *n = notes_of(from);
  while (n != NULL && (n->from != from || n->to != to || n->route != route)) n = n->next;
  return n;
}

heddle_status heddle__route_add(const heddle_device *from, const heddle_device *to, heddle__route route,
                                const heddle__route_cost *cost, heddle_error *err) {
  heddle__route_table *t = heddle__route_table_of(from->ctx);
  heddle__route_note *n = t != NULL ? heddle__alloc(1, sizeof *n) : NULL;
  if (n == NULL) return heddle__no_memory(err, "what is known of routes");
  const heddle__route_note *first = atomic_load(&t->notes);
  *n = (heddle__route_note){NULL, from, to, route, *cost};
  do n->next = first;
  while (!atomic_compare_exchange_weak(&t->notes, &first, n));
  return HEDDLE_OK;
}

static bool is_end(const heddle_device *known, const heddle_device *asked) {
  return known == asked || (asked == NULL && heddle__device_inline(known));
}

heddle__route_cost heddle__route_cost_of(const heddle_device *from, const heddle_device *to, heddle__route route) {
  const heddle_device *any = from != NULL ? from : to;
  const heddle__route_note *n = any != NULL ? notes_of(any) : NULL;
  for (; n != NULL && route != HEDDLE__ROUTE_SAME; n = n->next) {
    if (n->route != route || (n->cost.off && route == HEDDLE__ROUTE_SHARED)) continue;
    if (is_end(n->from, from) && is_end(n->to, to)) return n->cost;
    if (route == HEDDLE__ROUTE_SHARED && is_end(n->from, to) && is_end(n->to, from)) return n->cost;
  }
  return default_of(route);
}

/* ---- which route */

static bool is_off(const heddle_device *from, const heddle_device *to, heddle__route route) {
  const heddle__route_note *n = heddle__route_find(from, to, route);
  return n != NULL && n->cost.off;
}

bool heddle__route_shares(const heddle_device *owner, const heddle_device *user) {
  const uint64_t import = user->desc.import_alignment, caps = owner->desc.caps;
  if (heddle__device_inline(owner) || (caps & HEDDLE_CAP_UNIFIED) == 0 || import == 0 ||
      is_off(owner, user, HEDDLE__ROUTE_SHARED))
    return false;
  if (heddle__device_inline(user)) return true;
  const uint64_t aligns = (owner->desc.alignment - 1) & owner->desc.alignment; /* of both, powers of two */
  return (user->desc.caps & HEDDLE_CAP_IMPORT_UNIFIED) != 0 && (caps & HEDDLE_CAP_NONCOHERENT) == 0 &&
         user->t->memory.import_host != NULL && import <= MOST_IMPORT_ALIGN &&
         (aligns | ((user->desc.alignment - 1) & user->desc.alignment)) == 0;
}

bool heddle__route_peers(const heddle_device *from, const heddle_device *to) {
  /* What heddle check-plugin saw fail is not used. */
  if (from->abilities[HEDDLE_ABILITY_PEER] == HEDDLE_ABILITY_FAILS ||
      to->abilities[HEDDLE_ABILITY_PEER] == HEDDLE_ABILITY_FAILS)
    return false;
  return from != to && from->instance == to->instance && to->t->copy.peer != NULL && to->t->copy.can_peer != NULL &&
         to->t->copy.can_peer(to->instance, to->index, from->index, NULL) == HEDDLE_OK &&
         !is_off(from, to, HEDDLE__ROUTE_PEER);
}

bool heddle__route_fetches(const heddle_device *owner, const heddle_device *dev) {
  const uint64_t import = dev->desc.import_alignment;
  bool coherent = heddle__device_inline(owner) || (owner->desc.caps & HEDDLE_CAP_NONCOHERENT) == 0;
  if (owner == dev) return true;
  if (!heddle__device_inline(owner) && owner->instance == dev->instance &&
      owner->desc.event_domain == dev->desc.event_domain)
    return true;
  /* A range of plain host memory or of another plugin's pinned memory, imported whole (arenas are page-aligned). */
  return coherent && import != 0 && import <= MOST_IMPORT_ALIGN && dev->t->memory.import_host != NULL;
}

heddle__route heddle__route_expect(const heddle_device *from, const heddle_device *to) {
  bool from_host = heddle__device_inline(from), to_host = heddle__device_inline(to);
  if (from == to || (from_host && to_host)) return HEDDLE__ROUTE_SAME;
  if (heddle__route_shares(from, to) || heddle__route_shares(to, from)) return HEDDLE__ROUTE_SHARED;
  const heddle_device *host = from_host ? from : to;
  if (from_host || to_host) return host->desc.import_alignment != 0 ? HEDDLE__ROUTE_DIRECT : HEDDLE__ROUTE_STAGED;
  if (heddle__route_peers(from, to)) return HEDDLE__ROUTE_PEER;
  return heddle__route_fetches(from, to) ? HEDDLE__ROUTE_STAGED : HEDDLE__ROUTE_STAGED2;
}

/* ---- the self-test */

/* Whether there is one: the setting routes.test does not turn it off. err: the setting is none of its values. */
static bool is_tested(heddle_context *ctx, heddle_error *err) {
  const char *test = "1", *origin;
  if (heddle__config_get(ctx->config, "routes.test", &test, &origin)) {
    if (heddle__config_is_off(test)) return false;
    static const char *const words[] = {"1", "on", "yes", "true", "again"};
    bool known = false;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) known = known || strcmp(test, words[i]) == 0;
    if (!known) {
      (void)heddle__fail(err, HEDDLE_EINVAL, "setting 'routes.test' is '%.40s' (%s); it can be 0, 1 or again", test,
                         origin);
      return false;
    }
  }
#if !HEDDLE_HAS_ROUTES
  heddle__route_table *table = heddle__route_table_of(ctx);
  if (table != NULL && !atomic_exchange(&table->said_untested, true)) /* each pair of devices comes here */
    heddle__logf(&ctx->log, HEDDLE_LOG_WARN, "routes",
                 "routes are not tested: this build of Heddle has no self-test of "
                 "routes (built with HEDDLE_ROUTES=OFF)");
#endif
  return HEDDLE_HAS_ROUTES;
}

void heddle__routes_recall(heddle_device *const *devices, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = 0; k < n; k++) {
      bool is_pair =
          devices[i] != devices[k] && !(heddle__device_inline(devices[i]) && heddle__device_inline(devices[k]));
      if (!is_pair || heddle__route_find(devices[i], devices[k], HEDDLE__ROUTE_SAME) != NULL) continue;
      if (!is_tested(devices[i]->ctx, NULL)) return;
#if HEDDLE_HAS_ROUTES
      heddle__routes_read(devices[i], devices[k]);
#endif
      const heddle__route_cost none = default_of(HEDDLE__ROUTE_SAME);
      (void)heddle__route_add(devices[i], devices[k], HEDDLE__ROUTE_SAME, &none, NULL);
    }
}

heddle_status heddle__route_test(heddle_device *from, heddle_device *to, heddle__route route, heddle_error *err) {
  const heddle__route_note *known = heddle__route_find(from, to, route);
  heddle_error why = {0};
  bool spare = route == HEDDLE__ROUTE_SHARED || route == HEDDLE__ROUTE_PEER;
  if (known != NULL && (spare || !known->cost.off)) return HEDDLE_OK;
#if HEDDLE_HAS_ROUTES
  if (is_tested(from->ctx, &why)) return heddle__route_retest(from, to, route, err);
#else
  (void)is_tested(from->ctx, &why);
#endif
  if (why.status != 0 && err != NULL) *err = why;
  if (why.status != 0) return why.status;
  const heddle__route_cost cost = default_of(route);
  return heddle__route_add(from, to, route, &cost, err);
}
