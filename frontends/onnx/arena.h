/* frontends/onnx/arena.h: the memory of one reading: everything that protobuf-c unpacks and that upgrades add to it goes
 * at once, whatever went wrong. */
#ifndef HEDDLE_ONNX_ARENA_H
#define HEDDLE_ONNX_ARENA_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct heddle__onnx_arena {
  struct heddle__onnx_block *blocks;
  uint64_t used, limit; /* bytes */
  bool is_over;         /* the limit stood in the way of an allocation */
  bool is_out;          /* there was no memory, or the limit stood in the way */
} heddle__onnx_arena;

/* Zeroed memory; NULL where there is none, or the limit is reached. */
void *heddle__onnx_take(heddle__onnx_arena *arena, size_t bytes);

/* Text by printf's rules; NULL as above. */
char *heddle__onnx_format(heddle__onnx_arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* For protobuf-c: takes from the arena, and frees nothing. */
ProtobufCAllocator heddle__onnx_allocator(heddle__onnx_arena *arena);

/* Frees all of it. */
void heddle__onnx_drop(heddle__onnx_arena *arena);

#endif
