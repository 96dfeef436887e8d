/* core/context_process.c: the one context that callers in a process share who have no settings of their own. It stays
 * until the process ends: what is registered by name lives as long. */
#include <pthread.h>
#include <stdatomic.h>

#include "core/context.h"
#include "core/error.h"

heddle_status heddle_context_process(heddle_context **out, heddle_error *err) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards ctx while it is made */
  static _Atomic(heddle_context *) ctx;
  if (out == NULL) return heddle__fail(err, HEDDLE_EINVAL, "out is NULL");
  heddle_context *now = atomic_load_explicit(&ctx, memory_order_acquire);
  if (now == NULL) {
    heddle_status s = HEDDLE_OK;
    pthread_mutex_lock(&lock);
    now = atomic_load_explicit(&ctx, memory_order_relaxed);
    if (now == NULL) s = heddle_context_create(NULL, 0, NULL, NULL, &now, err);
    if (s == HEDDLE_OK) atomic_store_explicit(&ctx, now, memory_order_release);
    pthread_mutex_unlock(&lock);
    if (s != HEDDLE_OK) return s;
  }
  *out = heddle_context_retain(now);
  return HEDDLE_OK;
}
