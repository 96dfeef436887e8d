/* modules/beside.h: parts of Heddle that are libraries of their own, beside libheddle and opened when they are needed. */
#ifndef HEDDLE_MODULES_BESIDE_H
#define HEDDLE_MODULES_BESIDE_H

#include <stdbool.h>

#include "heddle/status.h"

/* Opens DIR/FILE or DIR/../lib/FILE, where DIR holds this code, for the rest of the process, and looks up its entry:
 * *entry, a pointer to a function. global: what is loaded later finds its names. HEDDLE_EUNSUPPORTED where the file is
 * not there, HEDDLE_EABI where it cannot be loaded. Any thread; blocks on the file. */
heddle_status heddle__open_beside(const char *file, const char *symbol, bool global, void *entry, heddle_error *err);

/* HEDDLE_EABI unless the version that its entry told is that of this code. */
heddle_status heddle__check_beside(const char *file, const char *version, heddle_error *err);

#endif
