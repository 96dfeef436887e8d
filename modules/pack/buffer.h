/* modules/pack/buffer.h: bytes that are put one behind another. After a failed allocation nothing is added, and failed says
 * so at the end. */
#ifndef HEDDLE_MODULES_PACK_BUFFER_H
#define HEDDLE_MODULES_PACK_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct heddle__buffer {
  unsigned char *data;
  size_t n, room;
  bool failed;
} heddle__buffer;

void heddle__buffer_put(heddle__buffer *b, const void *data, size_t n); /* data NULL: so many zeros */
void heddle__buffer_u64(heddle__buffer *b, uint64_t value);             /* low byte first */
void heddle__buffer_string(heddle__buffer *b, const void *text, size_t n);
void heddle__buffer_align(heddle__buffer *b, size_t align); /* zeros up to a multiple of a power of two */
void heddle__buffer_finish(heddle__buffer *b);

#endif
