/* core/elf.h: looks at a file before dlopen does, and refuses what would kill or confuse the process there.
 * Reads headers only; any thread; blocks on the file. */
#ifndef HEDDLE_CORE_ELF_H
#define HEDDLE_CORE_ELF_H

#include "heddle/status.h"

/* HEDDLE_EABI, with why, for what is no shared library, one of another machine, class or byte order, or one that needs
 * a sanitizer runtime that this process lacks. Every offset in the file is checked. */
heddle_status heddle__elf_check(const char *path, heddle_error *err);

/* The same, and HEDDLE_EDENIED for one that has the loader look for other libraries in places of its own. */
heddle_status heddle__elf_check_alone(const char *path, heddle_error *err);

/* The sanitizers whose runtimes this process has: HEDDLE_FEATURE_* bits. */
uint64_t heddle__elf_sanitizers(void);

#endif
