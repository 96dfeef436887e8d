/* core/layers/host.c: the entry of libheddle_layers.so, and libheddle's functions behind the names that core/ has,
 * through the table that the entry got. Of core/, only core/error.c is compiled into this library: it keeps no state. */
#include <stdarg.h>

#include "core/alloc.h"
#include "core/layers/call.h"
#include "core/thread.h"

static _Atomic(const heddle__layers_host *) given_host;

static const heddle__layers_host *host(void) {
  return atomic_load_explicit(&given_host, memory_order_acquire);
}

void *heddle__alloc(size_t count, size_t size) {
  return host()->alloc(count, size);
}

bool heddle__config_get(const heddle__config *config, const char *key, const char **value, const char **origin) {
  return host()->config_get(config, key, value, origin);
}

bool heddle__config_is_off(const char *value) {
  return host()->config_is_off(value);
}

heddle_status heddle__context_number(heddle_context *ctx, const char *key, int64_t fallback, int64_t min, int64_t max,
                                     int64_t *out, heddle_error *err) {
  return host()->context_number(ctx, key, fallback, min, max, out, err);
}

uint64_t heddle__now_ns(void) {
  return host()->now_ns();
}

heddle_status heddle__thread_start(pthread_t *out, void *(*run)(void *), void *arg, const char *what,
                                   heddle_error *err) {
  return host()->thread_start(out, run, arg, what, err);
}

heddle_status heddle__waker_init(heddle__waker *w, heddle_error *err) {
  return host()->waker_init(w, err);
}

bool heddle__waker_wait(heddle__waker *w, unsigned seen, uint64_t deadline_ns) {
  return host()->waker_wait(w, seen, deadline_ns);
}

heddle_status heddle__fence_create(heddle__waker *waker, heddle__fence **out, heddle_error *err) {
  return host()->fence_create(waker, out, err);
}

heddle_pfence heddle__fence_handle(const heddle__fence *f) {
  return host()->fence_handle(f);
}

heddle_status heddle__fence_error(heddle__fence *f, heddle_error *err) {
  return host()->fence_error(f, err);
}

void heddle__free(void *p) {
  host()->free(p);
}

void heddle__waker_finish(heddle__waker *w) {
  host()->waker_finish(w);
}

void heddle__waker_wake(heddle__waker *w) {
  host()->waker_wake(w);
}

void heddle__fence_free(heddle__fence *f) {
  host()->fence_free(f);
}

void heddle__fence_signal(heddle_pfence fence, uint64_t value) {
  host()->fence_signal(fence, value);
}

void heddle__fence_fail(heddle_pfence fence, heddle_status status, const char *text) {
  host()->fence_fail(fence, status, text);
}

void heddle__logf(const heddle__log *log, int32_t level, const char *component, const char *format, ...) {
  va_list args;
  va_start(args, format);
  host()->vlogf(log, level, component, format, args);
  va_end(args);
}

static const heddle__layers_table table = {HEDDLE_VERSION, heddle__layers_wrap};

__attribute__((visibility("default"))) const void *heddle_layers_entry(const void *given);

const void *heddle_layers_entry(const void *given) {
  const heddle__layers_host *none = NULL;
  atomic_compare_exchange_strong(&given_host, &none, given);
  return given != NULL ? &table : NULL;
}
