/* modules/pack/libelf.h: the functions of libelf that packing takes. The library is opened when the first file is packed:
 * a program that only runs models does not need it. */
#ifndef HEDDLE_MODULES_PACK_LIBELF_H
#define HEDDLE_MODULES_PACK_LIBELF_H

#include <libelf.h>

#include "heddle/status.h"

typedef struct heddle__libelf {
  unsigned (*version)(unsigned version);
  Elf *(*memory)(char *image, size_t bytes);
  Elf *(*begin)(int file, Elf_Cmd command, Elf *of);
  int (*end)(Elf *elf);
  Elf_Kind (*kind)(Elf *elf);
  int (*error)(void);
  const char *(*message)(int error);
  Elf64_Ehdr *(*header)(Elf *elf);
  Elf64_Phdr *(*segments)(Elf *elf);
  int (*n_segments)(Elf *elf, size_t *out);
  int (*n_sections)(Elf *elf, size_t *out);
  int (*names)(Elf *elf, size_t *out);
  char *(*name)(Elf *elf, size_t section, size_t offset);
  Elf_Scn *(*section)(Elf *elf, size_t i);
  Elf64_Shdr *(*describe)(Elf_Scn *section);
  Elf_Data *(*data)(Elf_Scn *section, Elf_Data *after);
  Elf64_Ehdr *(*new_header)(Elf *elf);
  Elf64_Phdr *(*new_segments)(Elf *elf, size_t n);
  Elf_Scn *(*new_section)(Elf *elf);
  Elf_Data *(*new_data)(Elf_Scn *section);
  unsigned (*flag)(Elf *elf, Elf_Cmd command, unsigned flags);
  off_t (*update)(Elf *elf, Elf_Cmd command);
} heddle__libelf;

/* HEDDLE_EUNSUPPORTED where libelf.so.1 is not installed. Any thread. */
heddle_status heddle__libelf_open(const heddle__libelf **out, heddle_error *err);

/* Why its last call of this thread failed. */
const char *heddle__libelf_reason(const heddle__libelf *e);

#endif
