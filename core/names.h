/* core/names.h: a table of names with a number each, for a lookup by name. It has memory of an arena, for as many names as its
 * maker says; the names stay where they are. One thread at a time. Header only. */
#ifndef HEDDLE_CORE_NAMES_H
#define HEDDLE_CORE_NAMES_H

#include <stdbool.h>
#include <string.h>

#include "core/arena.h"
#include "plugins/common/fnv.h"

typedef struct heddle__names {
  struct heddle__name_slot {
    const char *name; /* NULL: the slot is empty */
    size_t number;
  } * slots; /* linear probing, at most half full */
  size_t mask;
} heddle__names;

/* false where memory is out. */
static inline bool heddle__names_make(heddle__names *t, heddle__arena *arena, size_t most) {
  size_t size = 16;
  while (size < 2 * most) size *= 2;
  t->slots = (struct heddle__name_slot *)heddle__arena_take(arena, size, sizeof *t->slots);
  t->mask = size - 1;
  return t->slots != NULL;
}

static inline struct heddle__name_slot *heddle__names_slot(const heddle__names *t, const char *name) {
  const uint64_t h = fnv1a_text(name);
  size_t at = (size_t)(h ^ h >> 29) & t->mask;
  while (t->slots[at].name != NULL && strcmp(t->slots[at].name, name) != 0) at = (at + 1) & t->mask;
  return &t->slots[at];
}

/* The number of a name, or otherwise where it is not there. */
static inline size_t heddle__names_find(const heddle__names *t, const char *name, size_t otherwise) {
  const struct heddle__name_slot *slot = heddle__names_slot(t, name);
  return slot->name != NULL ? slot->number : otherwise;
}

/* A name that is there gets the new number. */
static inline void heddle__names_put(heddle__names *t, const char *name, size_t number) {
  *heddle__names_slot(t, name) = (struct heddle__name_slot){name, number};
}

#endif
