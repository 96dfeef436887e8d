/* core/arena.h: memory that is taken piece by piece and freed at once: of a plan, of a graph that is rewritten, and of a
 * model that is read. One thread at a time. */
#ifndef HEDDLE_CORE_ARENA_H
#define HEDDLE_CORE_ARENA_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed it is empty and has no limit. */
typedef struct heddle__arena {
  struct heddle__block *blocks;
  uint64_t used, limit; /* bytes of blocks; limit 0: none */
  bool is_over;         /* the limit stopped an allocation */
  bool is_out;          /* memory or the limit stopped an allocation */
} heddle__arena;

/* count elements of size bytes, zeroed and aligned to 16; NULL where memory is out or the limit is reached. */
void *heddle__arena_take(heddle__arena *arena, size_t count, size_t size);

/* Text by printf's rules; NULL as above. */
char *heddle__arena_format(heddle__arena *arena, const char *format, va_list args);

/* Frees all of it. */
void heddle__arena_drop(heddle__arena *arena);

#endif
