/* core/beside.h: libraries of libheddle's own that lie beside it and are opened when they are needed. */
#ifndef HEDDLE_CORE_BESIDE_H
#define HEDDLE_CORE_BESIDE_H

#include "heddle/status.h"

/* The address of symbol in file ("libheddle_tvm.so.0"), which is opened if it is not: from libheddle's own folder, or from
 * ../lib beside a program that it is linked into. It stays open, and so does libheddle. NULL with words; what: who needs
 * it ("compiled libraries need"). mode: RTLD_LOCAL or RTLD_GLOBAL. Any thread. */
void *heddle__beside(const char *file, int mode, const char *symbol, const char *what, heddle_error *err);

#endif
