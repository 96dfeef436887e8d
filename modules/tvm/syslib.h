/* modules/tvm/syslib.h: the symbols that objects linked into the program have registered for themselves, before main or
 * when a library with such objects is opened: TVM's system library. */
#ifndef HEDDLE_MODULES_TVM_SYSLIB_H
#define HEDDLE_MODULES_TVM_SYSLIB_H

#include <stdint.h>

#include "modules/tvm/symbols.h"

/* One symbol; the name is copied. A name that is there already gets the new address, but for variables that take a
 * library's address (their names end in _ctx): each of them is kept. 0, or -1 where memory is out. Any thread, at any
 * time of the process. */
int heddle__system_register(const char *name, void *address);

/* The symbols as a prefix sees them; prefix outlives it. */
heddle__symbols heddle__system_symbols(const char *prefix);

/* Changes with each registration. */
uint64_t heddle__system_changes(void);

/* Writes value to each variable of a name (with the prefix, else without), now, and of the name with the prefix when one
 * is registered later. name ends in _ctx. Where a variable cannot be written its name is given, else NULL. */
const char *heddle__system_bind(const char *prefix, const char *name, void *value);

/* What has to be said of registrations since the last time: names that were replaced. "" where there is nothing. */
void heddle__system_notes(char *out, size_t size);

#endif
