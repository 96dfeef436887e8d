/* core/beside.h: the libraries that lie beside libheddle and are opened when they are first needed: they and libheddle
 * are of one build and exchange one table each. */
#ifndef HEDDLE_CORE_BESIDE_H
#define HEDDLE_CORE_BESIDE_H

#include "heddle/status.h"

/* Opens NAME (such as "libheddle_tvm.so.0") from libheddle's own folder, or from ../lib seen from it, and gives what its
 * function ENTRY answers to host: a table that begins with its version (const char *), which must be libheddle's. The
 * library stays for ever, and libheddle with it. flags are dlopen's (RTLD_GLOBAL or 0). ENTRY is a function of one
 * argument, host, whose result is such a table or NULL. what begins the sentence about a library that is not there.
 * HEDDLE_EUNSUPPORTED, HEDDLE_EABI, HEDDLE_ENOMEM. Any thread; opening again is cheap. */
heddle_status heddle__open_beside(const char *name, const char *what, const char *entry, int flags, const void *host,
                                  const void **table, heddle_error *err);

#endif
