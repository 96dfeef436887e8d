/* modules/tvm/workspace.c: scratch memory of compiled code on the host: a stack per thread, of a few chunks that grow
 * in the first run and stay until the thread ends. Code gives memory back in the opposite order; where it does not, a
 * block waits for those above it. */
#include <pthread.h>
#include <string.h>

#include "core/alloc.h"
#include "modules/tvm/launch.h"

#define ALIGN 128 /* what code of v0.7 to v0.9 takes for granted; later code is content with 64 */
#define FIRST_CHUNK (UINT64_C(1) << 16)
#define MOST (UINT64_C(1) << 46)
enum { CHUNKS = 32 };

/* Before each block, in ALIGN bytes of its own. */
typedef struct header {
  struct header *below;
  uint64_t top; /* of the chunk, before this block */
  uint32_t chunk;
  bool free;
} header;

_Static_assert(sizeof(header) <= ALIGN, "a block's header");

typedef struct heddle__scratch {
  char *chunks[CHUNKS];
  uint64_t sizes[CHUNKS], tops[CHUNKS];
  uint32_t count, current;
  header *last;
} heddle__scratch;

static atomic_ullong held, most; /* bytes of the chunks of all threads, now and at most so far */

static void count(uint64_t more, uint64_t less) {
  unsigned long long now = atomic_fetch_add_explicit(&held, more - less, memory_order_relaxed) + more - less;
  unsigned long long before = atomic_load_explicit(&most, memory_order_relaxed);
  while (now > before && !atomic_compare_exchange_weak(&most, &before, now)) continue;
}

uint64_t heddle__tvm_scratch_most(void) {
  return atomic_load_explicit(&most, memory_order_relaxed);
}

static pthread_key_t at_end; /* frees a thread's stack when the thread ends */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void finish(void *arg) {
  heddle__scratch *s = arg;
  for (uint32_t i = 0; i < s->count; i++) {
    count(0, s->sizes[i]);
    heddle__free(s->chunks[i]);
  }
  heddle__free(s);
  heddle__tvm_self()->scratch = NULL;
}

static void make_key(void) {
  (void)pthread_key_create(&at_end, finish); /* without a key, a thread's stack is not given back */
}

static heddle__scratch *own(void) {
  heddle__tvm_thread *self = heddle__tvm_self();
  if (self->scratch == NULL) {
    pthread_once(&once, make_key);
    self->scratch = heddle__alloc(1, sizeof *self->scratch);
    (void)pthread_setspecific(at_end, self->scratch);
  }
  return self->scratch;
}

/* A chunk with room for bytes becomes the current one; those between are passed over until the stack is back below. */
static bool make_room(heddle__scratch *s, uint64_t bytes) {
  while (s->current < s->count && s->sizes[s->current] - s->tops[s->current] < bytes) {
    if (s->tops[s->current] == 0) { /* it is empty: a larger one takes its place */
      heddle__free(s->chunks[s->current]);
      s->chunks[s->current] = heddle__alloc_aligned((size_t)bytes, ALIGN);
      uint64_t size = s->chunks[s->current] != NULL ? bytes : 0;
      count(size, s->sizes[s->current]);
      s->sizes[s->current] = size;
      return s->chunks[s->current] != NULL;
    }
    s->current++;
  }
  if (s->current < s->count) return true;
  if (s->count == CHUNKS) return false;
  uint64_t size = s->count == 0 ? FIRST_CHUNK : 2 * s->sizes[s->count - 1];
  if (size < bytes) size = bytes;
  s->chunks[s->count] = heddle__alloc_aligned((size_t)size, ALIGN);
  if (s->chunks[s->count] == NULL) return false;
  count(size, 0);
  s->sizes[s->count] = size;
  s->tops[s->count] = 0;
  s->current = s->count++;
  return true;
}

void *heddle__tvm_alloc_workspace(int device_type, int device_id, uint64_t bytes, int code_hint, int bits_hint) {
  (void)code_hint, (void)bits_hint;
  if (device_type != HEDDLE_DEVICE_CPU) return heddle__lane_alloc(device_type, device_id, bytes);
  heddle__scratch *s = own();
  uint64_t whole = bytes <= MOST ? ALIGN + (bytes + ALIGN - 1) / ALIGN * ALIGN : 0;
  if (s == NULL || whole == 0 || !make_room(s, whole)) {
    if (s != NULL) s->current = s->last != NULL ? s->last->chunk : 0;
    heddle__tvm_say(NULL, "out of memory: scratch memory of a compiled function");
    return NULL;
  }
  header *h = (header *)(void *)(s->chunks[s->current] + s->tops[s->current]);
  *h = (header){.below = s->last, .top = s->tops[s->current], .chunk = s->current};
  s->tops[s->current] += whole;
  s->last = h;
  return (char *)h + ALIGN;
}

static void drop_last(heddle__scratch *s) {
  s->tops[s->last->chunk] = s->last->top;
  s->current = s->last->chunk;
  s->last = s->last->below;
}

int heddle__tvm_free_workspace(int device_type, int device_id, void *p) {
  heddle__scratch *s = heddle__tvm_self()->scratch;
  (void)device_id;
  if (device_type != HEDDLE_DEVICE_CPU) return heddle__lane_free(p);
  if (p == NULL || s == NULL) return 0;
  ((header *)(void *)((char *)p - ALIGN))->free = true;
  while (s->last != NULL && s->last->free) drop_last(s);
  return 0;
}

void *heddle__tvm_scratch_mark(const heddle__tvm_thread *self) {
  return self->scratch != NULL ? self->scratch->last : NULL;
}

void heddle__tvm_scratch_back(heddle__tvm_thread *self, const void *mark) {
  heddle__scratch *s = self->scratch;
  while (s != NULL && s->last != NULL && s->last != mark) drop_last(s);
}
