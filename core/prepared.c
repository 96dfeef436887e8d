/* core/prepared.c: the shelves of all contexts. */
#include "core/prepared.h"

#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "core/parts.h"
#include "core/registry.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static heddle__shelf *shelves; /* the newest first */

void heddle__shelf_add(heddle__shelf *shelf) {
  pthread_mutex_lock(&lock);
  shelf->next = shelves;
  shelves = shelf;
  pthread_mutex_unlock(&lock);
}

void heddle__shelf_remove(heddle__shelf *shelf) {
  pthread_mutex_lock(&lock);
  for (heddle__shelf **link = &shelves; *link != NULL; link = &(*link)->next) {
    if (*link != shelf) continue;
    *link = shelf->next;
    break;
  }
  pthread_mutex_unlock(&lock);
}

int64_t heddle__shelf_copy(const heddle_context *ctx, const char *name, void *to, uint64_t room) {
#if !HEDDLE_HAS_PACKAGES /* nothing is on a shelf */
  (void)ctx, (void)name, (void)to, (void)room;
  return -1;
#else
  const void *data = NULL;
  uint64_t bytes = 0;
  char note[HEDDLE__SHELF_NOTE] = "";
  int64_t found = -1;
  pthread_mutex_lock(&lock);
  for (heddle__shelf *o = shelves; o != NULL && found < 0; o = o->next) {
    if (o->ctx != ctx || !o->find(o->user, name, &data, &bytes, note) || bytes > INT64_MAX) continue;
    found = (int64_t)bytes;
    if (to != NULL) memcpy(to, data, bytes < room ? (size_t)bytes : (size_t)room);
  }
  pthread_mutex_unlock(&lock);
  if (note[0] != '\0') heddle__logf(&ctx->log, HEDDLE_LOG_WARN, "prepared", "%s", note);
  return found;
#endif
}
