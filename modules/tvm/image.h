/* modules/tvm/image.h: a library that is mapped into the process, as its own dynamic symbols tell of it. Lookups are of
 * this library alone: dlsym would go on in the libraries that it needs. */
#ifndef HEDDLE_MODULES_TVM_IMAGE_H
#define HEDDLE_MODULES_TVM_IMAGE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct heddle__image {
  char *base;
  const Elf64_Sym *symbols;
  const char *strings;
  size_t count;
  const Elf64_Phdr *segments;
  size_t n_segments;
} heddle__image;

/* Of what dlopen gave; false where the library has no symbols that can be listed. */
bool heddle__image_of(void *handle, heddle__image *out);

/* A symbol that the library defines, of STT_FUNC or STT_OBJECT (0: either); NULL: none. */
const Elf64_Sym *heddle__image_find(const heddle__image *image, const char *name, int type);

static inline void *heddle__image_address(const heddle__image *image, const Elf64_Sym *s) {
  return image->base + s->st_value;
}

static inline const char *heddle__image_name(const heddle__image *image, const Elf64_Sym *s) {
  return image->strings + s->st_name;
}

/* Bytes from an address to the end of its segment, or to the end of the symbol where that is nearer and known; 0 where
 * the address is in none, or lacks the flags (PF_W, PF_X). */
size_t heddle__image_room(const heddle__image *image, const Elf64_Sym *s, unsigned flags);

#endif
