/* executor/place/costs.h: what operators were measured to take on devices, in memory and in the user's cache folder: a
 * file for each device, which is as good as absent where it is damaged. docs/placement.md has its form. */
#ifndef HEDDLE_EXECUTOR_PLACE_COSTS_H
#define HEDDLE_EXECUTOR_PLACE_COSTS_H

#include <pthread.h>

#include "core/cache_folder.h"
#include "executor/place/placer.h"

/* Half of the interval in which the median lies is margin. */
typedef struct heddle__time {
  double ns, margin;
} heddle__time;

typedef struct heddle__costs {
  heddle_context *ctx;
  const char *folder; /* NULL: nothing is kept on the disk; borrowed from the configuration */
  uint64_t limit;     /* bytes of its files; not 0 */
  bool folder_given;  /* by the user: then it is a warning that it cannot be used */
  bool ignore_kept;   /* what is on the disk is measured again */
  pthread_mutex_t lock;
  struct heddle__cost_book *books; /* a list, one a device */
} heddle__costs;

/* ctx, folder, limit, folder_given and ignore_kept are set before. false: there is no lock to be had. */
bool heddle__costs_start(heddle__costs *c);
void heddle__costs_finish(heddle__costs *c);

/* What was measured; false where nothing was. The disk is read at the first question about a device. Any thread. */
bool heddle__costs_find(heddle__costs *c, const heddle_device *dev, const heddle__digest *region, heddle__time *out);
/* Takes a figure; where memory is out it is dropped. Any thread. */
void heddle__costs_add(heddle__costs *c, const heddle_device *dev, const heddle__digest *region,
                       const heddle__time *time, const char *label);
/* Writes what is new to the disk, with what others have written there since; says in the log where that cannot be. */
void heddle__costs_keep(heddle__costs *c);

/* A line of the log. */
void heddle__place_say(heddle_context *ctx, int32_t level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
