/* executor/weights.h: packed constants in a file of the user's cache folder, which later processes map instead of packing
 * again; docs/weights.md. A file is what one program wants, whole: where one weight is missing, there is none. */
#ifndef HEDDLE_EXECUTOR_WEIGHTS_H
#define HEDDLE_EXECUTOR_WEIGHTS_H

#include "executor/model.h"

/* The places of a plan's packed constants in such a file. */
typedef struct heddle__weights heddle__weights;

/* The file for a plan: one that was found, or one in the making. NULL where there is none: it is switched off, the plan
 * packs little or for devices that are not inline, or the folder cannot be used, which the log says. Blocks on the
 * disk. Any thread. */
heddle__weights *heddle__weights_open(heddle_model *m, const heddle__plan *plan);

/* Where an allocation of the plan lies; NULL where it has no place. *bytes is what may be imported from there on; *filled
 * says whether it holds the packed bytes already. The memory lives as long as the file's tensor. */
void *heddle__weights_at(const heddle__weights *w, uint32_t alloc, uint64_t *bytes, bool *filled);
heddle_tensor *heddle__weights_tensor(const heddle__weights *w);

/* Ends the making: the file is named and can be found (good: every place was filled), or dropped. What was imported
 * stays. Takes NULL. */
void heddle__weights_close(heddle__weights *w, bool good);

#endif
