/* executor/prepare.h: what a package carries for devices: the model is loaded and run once for each list of them, with folders
 * of caches of its own, and the files that are left there are packed. */
#ifndef HEDDLE_EXECUTOR_PREPARE_H
#define HEDDLE_EXECUTOR_PREPARE_H

#include "graph/package.h"
#include "heddle/pack.h"

/* Writes a package as heddle__package_write does, for the targets and dims of o. HEDDLE_EINVAL: an input has no fixed shape, or a list names no device;
 * HEDDLE_EIO; otherwise as models fail that are loaded and run. Blocks. */
heddle_status heddle__prepare(const char *path, const char *text, size_t bytes, const heddle_params *params,
                              const heddle_pack_options *o, heddle_error *err);

#endif
