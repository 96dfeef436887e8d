/* modules/tvm/text.c: strings and bytes that calls return: the thread's, of any length, one of each kind at a time. */
#include <pthread.h>
#include <string.h>

#include "core/alloc.h"
#include "modules/tvm/thread.h"

static pthread_key_t at_end; /* frees a thread's texts when it ends */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void finish(void *arg) {
  heddle__tvm_thread *self = arg;
  for (int i = 0; i < HEDDLE__TEXTS; i++) {
    heddle__free(self->texts[i].data);
    self->texts[i] = (heddle__text){NULL, 0};
  }
}

static void make_key(void) {
  (void)pthread_key_create(&at_end, finish);
}

/* The bytes may be those that the thread keeps already, or a part of them. */
char *heddle__tvm_keep_as(int kind, const void *bytes, size_t n) {
  heddle__tvm_thread *self = heddle__tvm_self();
  heddle__text *t = &self->texts[kind];
  if (n >= t->room) {
    size_t room = n + 1 > 256 ? n + 1 : 256;
    char *more = heddle__alloc(room, 1); /* the old text is read before it goes */
    if (more == NULL) {
      heddle__tvm_say(NULL, "out of memory: the result of a call");
      return NULL;
    }
    (void)pthread_once(&once, make_key);
    (void)pthread_setspecific(at_end, self);
    if (n > 0) memcpy(more, bytes, n);
    heddle__free(t->data);
    *t = (heddle__text){more, room};
  } else if (n > 0) {
    memmove(t->data, bytes, n);
  }
  t->data[n] = '\0';
  return t->data;
}

void heddle__tvm_keep_block(int kind, void *block) {
  heddle__tvm_thread *self = heddle__tvm_self();
  (void)pthread_once(&once, make_key);
  (void)pthread_setspecific(at_end, self);
  heddle__free(self->texts[kind].data);
  self->texts[kind] = (heddle__text){block, 0};
}

const char *heddle__tvm_keep(const void *bytes, size_t n) {
  return heddle__tvm_keep_as(HEDDLE__TEXT_STRING, bytes, n);
}

heddle__bytes *heddle__tvm_keep_bytes(const void *bytes, size_t n) {
  heddle__tvm_thread *self = heddle__tvm_self();
  const char *kept = heddle__tvm_keep_as(HEDDLE__TEXT_BYTES, bytes, n);
  if (kept == NULL) return NULL;
  self->bytes = (heddle__bytes){kept, n};
  return &self->bytes;
}
