/* executor/region_key.h: what distinguishes one region from another. */
#ifndef HEDDLE_EXECUTOR_REGION_KEY_H
#define HEDDLE_EXECUTOR_REGION_KEY_H

#include "core/cache_folder.h"
#include "heddle/plugin.h"

/* The digest of a region as a device is asked it: operators, attributes, types, shapes, which inputs are constants (of
 * short ones, their bytes) and the flags. label: words for people, with what it is in them. */
heddle__digest heddle__region_digest(const heddle_pregion *r, char *label, size_t size);

#endif
