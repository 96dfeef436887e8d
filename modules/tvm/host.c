/* modules/tvm/host.c: the few inner functions of libheddle's that the loaders use, through the table that the entry got
 * or that libheddle gives, and the state of a thread. Of core/, only core/error.c is compiled into this library: it
 * keeps no state. */
#include <string.h>

#include "core/alloc.h"
#include "modules/tvm/thread.h"

static _Atomic(const heddle__tvm_host *) host;

/* In the place of a libheddle of another build, whose functions cannot be called: nothing can be allocated. */
static void *no_alloc(size_t count, size_t size) {
  (void)count, (void)size;
  return NULL;
}

static void *no_grow(void *old, size_t old_count, size_t new_count, size_t size) {
  (void)old, (void)old_count, (void)new_count, (void)size;
  return NULL;
}

static void *no_aligned(size_t bytes, size_t align) {
  (void)bytes, (void)align;
  return NULL;
}

static void no_free(void *p) {
  (void)p;
}

static const heddle__tvm_host no_host = {
    .layout = HEDDLE_TVM_LAYOUT, .alloc = no_alloc, .grow = no_grow, .alloc_aligned = no_aligned, .free = no_free};

bool heddle__tvm_enter(const void *given) {
  const heddle__tvm_host *none = NULL;
  if (given == NULL || strcmp(*(const char *const *)given, HEDDLE_TVM_LAYOUT) != 0) return false;
  atomic_compare_exchange_strong(&host, &none, given);
  return true;
}

/* A program that calls TVM's C API may be here before libheddle opened this library. */
const heddle__tvm_host *heddle__tvm_host_table(void) {
  const heddle__tvm_host *h = atomic_load_explicit(&host, memory_order_acquire);
  if (h != NULL) return h;
  if (!heddle__tvm_enter(heddle_tvm_host())) return &no_host;
  return atomic_load_explicit(&host, memory_order_acquire);
}

heddle__tvm_thread *heddle__tvm_self(void) {
  static _Thread_local heddle__tvm_thread self;
  return &self;
}

void *heddle__alloc(size_t count, size_t size) {
  return heddle__tvm_host_table()->alloc(count, size);
}

void *heddle__grow(void *old, size_t old_count, size_t new_count, size_t size) {
  return heddle__tvm_host_table()->grow(old, old_count, new_count, size);
}

void *heddle__alloc_aligned(size_t bytes, size_t align) {
  return heddle__tvm_host_table()->alloc_aligned(bytes, align);
}

void heddle__free(void *p) {
  heddle__tvm_host_table()->free(p);
}

char *heddle__strndup(const char *s, size_t n) {
  char *copy = heddle__alloc(n + 1, 1);
  if (copy != NULL && n > 0) memcpy(copy, s, n);
  return copy;
}
