/* frontends/onnx/arena.h: the memory of one reading: everything that protobuf-c unpacks and that upgrades add to it is
 * freed at once, also after a failure (heddle__arena_drop). */
#ifndef HEDDLE_ONNX_ARENA_H
#define HEDDLE_ONNX_ARENA_H

#include <protobuf-c/protobuf-c.h>

#include "core/arena.h"

/* Zeroed memory; NULL where there is none, or the limit is reached. */
void *heddle__onnx_take(heddle__arena *arena, size_t bytes);

/* Text by printf's rules; NULL as above. */
char *heddle__onnx_format(heddle__arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* For protobuf-c: takes from the arena, and frees nothing. */
ProtobufCAllocator heddle__onnx_allocator(heddle__arena *arena);

#endif
