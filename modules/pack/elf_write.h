/* modules/pack/elf_write.h: writes a shared library anew with modules that it carries: the same code, and one more segment
 * that holds them. */
#ifndef HEDDLE_MODULES_PACK_ELF_WRITE_H
#define HEDDLE_MODULES_PACK_ELF_WRITE_H

#include "modules/pack/elf_file.h"

/* The section that the modules are in. */
#define HEDDLE__BLOB_SECTION ".heddle.blob"

/* Writes to an empty file that can be read too. symbol becomes the name of blob, and is added where the library has none
 * of that name. What f has of modules is zeroed in it: f can only be finished afterwards. HEDDLE_EUNSUPPORTED where the
 * library has no room for one more program header. */
heddle_status heddle__elf_write(heddle__elf_file *f, const char *symbol, const void *blob, size_t bytes, int file,
                                heddle_error *err);

/* elf_new.c: a library that is changed. */
typedef struct heddle__elf_new {
  heddle__elf_file *f;
  heddle__elf_section *sections; /* of f, and behind them room for two more */
  size_t n_sections;
  Elf64_Phdr *segments; /* with room for one more */
  size_t n_segments;
  unsigned char *owned[8]; /* bytes of sections that were made */
  size_t n_owned;
} heddle__elf_new;

/* Bytes in the place of a section's, which is of that size then. NULL: memory is out. */
unsigned char *heddle__elf_replace(heddle__elf_new *n, size_t section, size_t bytes);

/* elf_symbols.c: adds a symbol: to the symbols, their names, the hash tables and the versions, whose sections have new bytes
 * then and no place yet. *number: its number. */
heddle_status heddle__elf_add_symbol(heddle__elf_new *n, const char *name, size_t *number, heddle_error *err);

/* elf_place.c: gives the new segment its place, at the end of what is loaded, with the sections that are marked in it in
 * their order, and the last section. HEDDLE_EUNSUPPORTED: see above. */
heddle_status heddle__elf_place(heddle__elf_new *n, bool *moved, heddle_error *err);

#endif
