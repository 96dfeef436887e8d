/* modules/tvm/image.h: a library that is mapped into the process, as its own dynamic symbols tell of it. Lookups are of
 * this library alone: dlsym would go on in the libraries that it needs. */
#ifndef HEDDLE_MODULES_TVM_IMAGE_H
#define HEDDLE_MODULES_TVM_IMAGE_H

#include <elf.h>

#include "modules/tvm/symbols.h"

typedef struct heddle__image {
  char *base;
  const Elf64_Sym *symbols;
  const char *strings;
  size_t count;
  const Elf64_Rela *relocations[2]; /* of data and of calls; with how many */
  size_t n_relocations[2];
  const Elf64_Phdr *segments;
  size_t n_segments;
} heddle__image;

/* Of what dlopen gave; false where the library has no symbols that can be listed. */
bool heddle__image_of(void *handle, heddle__image *out);

/* The names that it defines. The image must stay where it is. */
heddle__symbols heddle__image_symbols(const heddle__image *image);

/* Whether it imports a name that begins so. */
bool heddle__image_imports(const heddle__image *image, const char *head);

/* Makes all that the library imports by a name point to address, wherever the loader of the system found that name: one
 * process may have several that offer it. No code of the library may run meanwhile. False: its memory could not be made
 * writable. */
bool heddle__image_rebind(const heddle__image *image, const char *name, void *address);

/* What lies at an address of any file that is mapped: sets room, is_function (it can be executed) and is_writable of
 * out; false where no file holds it. */
bool heddle__image_locate(const void *address, heddle__symbol *out);

#endif
