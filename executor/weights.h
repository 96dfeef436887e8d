/* executor/weights.h: packed constants in a file of the user's cache folder, which later processes map instead of packing
 * again; docs/weights.md. A file is what one program wants, whole: where one weight is missing, there is none. The work is
 * done in executor/weights/. */
#ifndef HEDDLE_EXECUTOR_WEIGHTS_H
#define HEDDLE_EXECUTOR_WEIGHTS_H

#include "executor/model.h"

/* The places of a plan's packed constants in a file: one that was found, or one in the making. */
typedef struct heddle__weights {
  heddle_tensor *tensor; /* the file's bytes: they live as long as it */
  bool filled;           /* they are packed constants already */
} heddle__weights;

/* The file for a plan, of the model's package or of the folder; NULL where there is none: it is switched off, or the folder
 * cannot be used, which the log says. folder is the setting, or NULL, from says where it came from. Blocks on the disk. Any
 * thread. */
heddle__weights *heddle__weights_begin(heddle_model *m, const heddle__plan *plan, const char *folder, const char *from);
/* Where an allocation of the plan lies; NULL where it has no place. *bytes is what may be imported from there on. */
void *heddle__weights_at(const heddle__weights *w, uint32_t alloc, uint64_t *bytes);
/* Ends the making: the file is named and can be found (good: every place was filled), or dropped. What was imported
 * stays. */
void heddle__weights_close(heddle__weights *w, bool good);

/* Whether an allocation is a constant that such a file may hold: on an inline device, in a layout of its own. */
bool heddle__weights_holds(const heddle__plan *plan, uint32_t alloc);

/* heddle__weights_begin where a plan packs enough; NULL otherwise. */
heddle__weights *heddle__weights_open(heddle_model *m, const heddle__plan *plan);

#endif
