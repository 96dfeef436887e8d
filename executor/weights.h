/* executor/weights.h: packed constants in a file of the user's cache folder, which later processes map instead of packing
 * again; docs/weights.md. A file is what one program wants, whole: where one weight is missing, there is none. The work is
 * done by libheddle_weights.so (executor/weights/), of libheddle's version; this is also what crosses between the two. */
#ifndef HEDDLE_EXECUTOR_WEIGHTS_H
#define HEDDLE_EXECUTOR_WEIGHTS_H

#include "executor/model.h"

/* The places of a plan's packed constants in a file: one that was found, or one in the making. */
typedef struct heddle__weights {
  const struct heddle__weights_table *t;
  heddle_tensor *tensor; /* the file's bytes: they live as long as it */
  bool filled;           /* they are packed constants already */
} heddle__weights;

/* What the library uses of libheddle's. */
typedef struct heddle__weights_host {
  void *(*alloc)(size_t count, size_t size);
  void (*free)(void *p);
  void (*vlogf)(const heddle__log *log, int32_t level, const char *component, const char *format, va_list args);
  bool (*holds)(const heddle__plan *plan, uint32_t alloc); /* heddle__weights_holds */
  heddle_status (*number)(heddle_context *ctx, const char *key, int64_t fallback, int64_t min, int64_t max,
                          int64_t *out, heddle_error *err);
  uint64_t (*now_ns)(void);
  heddle_status (*wrap)(void *data, heddle_dtype dtype, const int64_t *shape, uint32_t ndim, const int64_t *strides,
                        heddle_release_fn release, void *user, heddle_tensor **out, heddle_error *err);
  void (*release)(heddle_tensor *t);
} heddle__weights_host;

/* libheddle looks up heddle_weights_entry (core/beside.h), which takes nothing. */
typedef struct heddle__weights_table {
  const char *version; /* heddle_version() of the library */

  /* The file for a plan; NULL where there is none: it is switched off, or the folder cannot be used, which the log says.
   * folder is the setting, from says where it came from. Blocks on the disk. Any thread. */
  heddle__weights *(*open)(const heddle__weights_host *host, heddle_model *m, const heddle__plan *plan,
                           const char *folder, const char *from);
  /* Where an allocation of the plan lies; NULL where it has no place. *bytes is what may be imported from there on. */
  void *(*at)(const heddle__weights *w, uint32_t alloc, uint64_t *bytes);
  /* Ends the making: the file is named and can be found (good: every place was filled), or dropped. What was imported
   * stays. */
  void (*close)(heddle__weights *w, bool good);
} heddle__weights_table;

/* Whether an allocation is a constant that such a file may hold: on an inline device, in a layout of its own. */
bool heddle__weights_holds(const heddle__plan *plan, uint32_t alloc);

/* Opens the library and asks it, where a plan packs enough; NULL otherwise. */
heddle__weights *heddle__weights_open(heddle_model *m, const heddle__plan *plan);

#endif
