/* modules/pack/elf_file.h: a shared library or an object as a file that is looked at and not run: its sections, its symbols,
 * the modules that it carries. Files are untrusted: every place in them is checked. */
#ifndef HEDDLE_MODULES_PACK_ELF_FILE_H
#define HEDDLE_MODULES_PACK_ELF_FILE_H

#include <stdbool.h>

#include "modules/pack/libelf.h"
#include "modules/tvm/blob.h"

typedef struct heddle__elf_section {
  Elf64_Shdr head;
  const char *name;
  unsigned char *data; /* NULL: it has no bytes in the file */
} heddle__elf_section;

typedef struct heddle__elf_file {
  const heddle__libelf *e;
  Elf *elf;
  Elf64_Ehdr head;
  size_t bytes; /* of the file */
  Elf64_Phdr *segments;
  size_t n_segments;
  heddle__elf_section *sections;
  size_t n_sections, names; /* names: the section of sections' names */
  size_t symbols;           /* .dynsym; of an object .symtab; 0: it has none */
  size_t dynamic;           /* 0 of an object */
} heddle__elf_file;

/* Reads the file that image is (it stays, and may be changed); HEDDLE_EFORMAT for what is none of this kind of machine.
 * is_object: an object (.o), else a shared library. Finished with heddle__elf_finish in any case. */
heddle_status heddle__elf_read(void *image, size_t bytes, bool is_object, heddle__elf_file *out, heddle_error *err);
void heddle__elf_finish(heddle__elf_file *f);

/* The symbols of f->symbols, each behind the other; the first is none. Their table, and the section of their names. */
Elf64_Sym *heddle__elf_symbols(const heddle__elf_file *f, size_t *n);
const char *heddle__elf_name(const heddle__elf_file *f, const Elf64_Sym *s); /* "" where its name is out of bounds */

/* The number of a symbol that is defined and is seen by others; 0: there is none. */
size_t heddle__elf_find(const heddle__elf_file *f, const char *name);

/* Where the modules lie that it carries, and how; data NULL: it carries none. *layout is that of the generation of its
 * functions also where there are none. *symbol: the name that such a blob has. */
heddle_status heddle__elf_blob(const heddle__elf_file *f, heddle__span *out, heddle__blob_layout *layout,
                               const char **symbol, heddle_error *err);

/* Whether it has functions, besides those that every library has for its start and end. */
bool heddle__elf_has_functions(const heddle__elf_file *f);

#endif
