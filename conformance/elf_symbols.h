/* conformance/elf_symbols.h: the dynamic symbols of a shared library's file. */
#ifndef HEDDLE_CONFORMANCE_ELF_SYMBOLS_H
#define HEDDLE_CONFORMANCE_ELF_SYMBOLS_H

#include <stdbool.h>

/* Called for each symbol with its name and whether the file defines it for others; ends at the first false. */
typedef bool (*elf_symbol_fn)(void *sink, const char *name, bool defined);

/* NULL, or why the file is no library that this machine could load: what is checked, in the words of the ELF format.
 * Blocks on the file; the whole file is mapped, and a malformed one is reported, not followed. */
const char *elf_symbols(const char *path, elf_symbol_fn each, void *sink);

#endif
