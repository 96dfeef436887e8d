/* frontends/onnx/arena.c: memory that is taken piece by piece and freed at once, up to a limit. */
#include "frontends/onnx/arena.h"

#include <stdarg.h>
#include <stdio.h>

#include "core/alloc.h"

#define BLOCK 65536
#define ALIGN 16

typedef struct heddle__onnx_block {
  struct heddle__onnx_block *next;
  size_t used, bytes; /* of what follows the head */
} block;

enum { HEAD = (sizeof(block) + ALIGN - 1) / ALIGN * ALIGN };

void *heddle__onnx_take(heddle__onnx_arena *arena, size_t bytes) {
  block *b = arena->blocks;
  if (bytes > SIZE_MAX / 2) return NULL;
  bytes = (bytes + ALIGN - 1) / ALIGN * ALIGN;
  if (b == NULL || b->bytes - b->used < bytes) {
    size_t size = bytes > BLOCK / 4 ? bytes : BLOCK;
    if (size > arena->limit - arena->used) {
      arena->is_over = arena->is_out = true;
      return NULL;
    }
    b = heddle__alloc(1, HEAD + size);
    if (b == NULL) {
      arena->is_out = true;
      return NULL;
    }
    arena->used += size;
    b->bytes = size;
    if (size != BLOCK && arena->blocks != NULL) { /* a large piece: the block in use stays the one in use */
      b->next = arena->blocks->next;
      arena->blocks->next = b;
    } else {
      b->next = arena->blocks;
      arena->blocks = b;
    }
  }
  char *at = (char *)b + HEAD + b->used;
  b->used += bytes;
  return at;
}

char *heddle__onnx_format(heddle__onnx_arena *arena, const char *format, ...) {
  va_list args;
  va_start(args, format);
  int n = vsnprintf(NULL, 0, format, args);
  va_end(args);
  char *text = n >= 0 ? heddle__onnx_take(arena, (size_t)n + 1) : NULL;
  if (text == NULL) return NULL;
  va_start(args, format);
  vsnprintf(text, (size_t)n + 1, format, args);
  va_end(args);
  return text;
}

static void *take(void *arena, size_t bytes) {
  return heddle__onnx_take(arena, bytes);
}

static void keep(void *arena, void *p) {
  (void)arena;
  (void)p;
}

ProtobufCAllocator heddle__onnx_allocator(heddle__onnx_arena *arena) {
  return (ProtobufCAllocator){.alloc = take, .free = keep, .allocator_data = arena};
}

void heddle__onnx_drop(heddle__onnx_arena *arena) {
  for (block *b = arena->blocks; b != NULL;) {
    block *next = b->next;
    heddle__free(b);
    b = next;
  }
  arena->blocks = NULL;
  arena->used = 0;
}
