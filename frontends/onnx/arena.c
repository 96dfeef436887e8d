/* frontends/onnx/arena.c: the arena of a reading as protobuf-c takes it. */
#include "frontends/onnx/arena.h"

void *heddle__onnx_take(heddle__arena *arena, size_t bytes) {
  return heddle__arena_take(arena, bytes, 1);
}

char *heddle__onnx_format(heddle__arena *arena, const char *format, ...) {
  va_list args;
  va_start(args, format);
  char *text = heddle__arena_format(arena, format, args);
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

ProtobufCAllocator heddle__onnx_allocator(heddle__arena *arena) {
  return (ProtobufCAllocator){.alloc = take, .free = keep, .allocator_data = arena};
}
