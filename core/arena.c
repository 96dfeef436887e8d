/* core/arena.c: memory that is taken piece by piece and freed at once; see arena.h. */
#include "core/arena.h"

#include <stdio.h>

#include "core/alloc.h"

#define BLOCK_BYTES ((size_t)64 * 1024)
#define ALIGN ((size_t)16)

typedef struct heddle__block {
  struct heddle__block *next;
  size_t used, bytes; /* of what follows the head */
} block;

enum { HEAD = (sizeof(block) + ALIGN - 1) / ALIGN * ALIGN };

static block *make_block(heddle__arena *arena, size_t bytes) {
  const bool is_large = bytes > BLOCK_BYTES / 4;
  const size_t size = is_large ? bytes : BLOCK_BYTES;
  const bool fits = arena->limit == 0 || size <= arena->limit - arena->used;
  block *b = fits ? heddle__alloc(1, HEAD + size) : NULL;
  if (b == NULL) {
    arena->is_over = arena->is_over || !fits;
    arena->is_out = true;
    return NULL;
  }
  block **at =
      is_large && arena->blocks != NULL ? &arena->blocks->next : &arena->blocks; /* the one in use stays first */
  arena->used += size;
  b->bytes = size;
  b->next = *at;
  *at = b;
  return b;
}

void *heddle__arena_take(heddle__arena *arena, size_t count, size_t size) {
  uint64_t bytes = 0;
  if (!heddle__mul(count, size, &bytes) || bytes > SIZE_MAX / 2) {
    arena->is_out = true;
    return NULL;
  }
  bytes = (bytes + ALIGN - 1) / ALIGN * ALIGN;
  block *b = arena->blocks;
  if (b == NULL || b->bytes - b->used < bytes) b = make_block(arena, (size_t)bytes);
  if (b == NULL) return NULL;
  char *at = (char *)b + HEAD + b->used;
  b->used += (size_t)bytes;
  return at;
}

char *heddle__arena_format(heddle__arena *arena, const char *format, va_list args) {
  va_list again;
  va_copy(again, args);
  const int n = vsnprintf(NULL, 0, format, args);
  char *text = n >= 0 ? heddle__arena_take(arena, (size_t)n + 1, 1) : NULL;
  if (text != NULL) vsnprintf(text, (size_t)n + 1, format, again);
  va_end(again);
  return text;
}

void heddle__arena_drop(heddle__arena *arena) {
  for (block *b = arena->blocks; b != NULL;) {
    block *next = b->next;
    heddle__free(b);
    b = next;
  }
  arena->blocks = NULL;
  arena->used = 0;
}
