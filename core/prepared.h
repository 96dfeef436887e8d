/* core/prepared.h: files of caches that packages carry, offered to who looks for them in folders of caches: rooms of
 * libheddle, and plugins, whose service config gives the bytes of the file NAME under the key HEDDLE__PREPARED_KEY NAME
 * (plugins/common/filecache.c asks for it), and an empty text under the bare key while a package is prepared. Who finds one checks it as it checks a file of its folder. */
#ifndef HEDDLE_CORE_PREPARED_H
#define HEDDLE_CORE_PREPARED_H

#include <stdbool.h>
#include <stdint.h>

#include "heddle/device.h"

#define HEDDLE__PREPARED_KEY "prepared:"

enum { HEDDLE__SHELF_NOTE = 400 };

/* What one package offers to a context. find gives bytes that stay until the shelf is removed; one call at a time. note
 * gets what the log is to say. */
typedef struct heddle__shelf {
  struct heddle__shelf *next;
  const heddle_context *ctx;
  bool (*find)(void *user, const char *name, const void **data, uint64_t *bytes, char note[HEDDLE__SHELF_NOTE]);
  void *user;
} heddle__shelf;

/* The memory is the caller's, and stays until it is removed. Any thread. */
void heddle__shelf_add(heddle__shelf *offer);
void heddle__shelf_remove(heddle__shelf *offer);

/* Copies at most room bytes of a file that is offered to a context; its size, or -1 where there is none. Any thread. */
int64_t heddle__shelf_copy(const heddle_context *ctx, const char *name, void *to, uint64_t room);

#endif
