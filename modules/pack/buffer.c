/* modules/pack/buffer.c: bytes that are put one behind another. */
#include "modules/pack/buffer.h"

#include <string.h>

#include "core/alloc.h"

void heddle__buffer_put(heddle__buffer *b, const void *data, size_t n) {
  if (b->failed) return;
  if (n > b->room - b->n) {
    size_t room = b->room;
    while (room - b->n < n && room < SIZE_MAX / 4) room = 2 * room + 256;
    unsigned char *more = room - b->n >= n ? heddle__grow(b->data, b->room, room, 1) : NULL;
    b->failed = more == NULL;
    if (more == NULL) return;
    b->data = more;
    b->room = room;
  }
  if (n > 0 && data != NULL) memcpy(b->data + b->n, data, n);
  else if (n > 0) memset(b->data + b->n, 0, n);
  b->n += n;
}

void heddle__buffer_u64(heddle__buffer *b, uint64_t value) {
  unsigned char text[8];
  for (int i = 0; i < 8; i++) text[i] = (unsigned char)(value >> (8 * i));
  heddle__buffer_put(b, text, sizeof text);
}

void heddle__buffer_string(heddle__buffer *b, const void *text, size_t n) {
  heddle__buffer_u64(b, n);
  heddle__buffer_put(b, text, n);
}

void heddle__buffer_align(heddle__buffer *b, size_t align) {
  heddle__buffer_put(b, NULL, (align - b->n % align) % align);
}

void heddle__buffer_finish(heddle__buffer *b) {
  heddle__free(b->data);
  *b = (heddle__buffer){.n = 0};
}
