/* conformance/elf_symbols.c: reads the table of dynamic symbols of an ELF file by its section headers ("System V
 * Application Binary Interface", chapters 4 and 5). */
#include "conformance/elf_symbols.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__x86_64__)
enum { OUR_MACHINE = EM_X86_64 };
#elif defined(__aarch64__)
enum { OUR_MACHINE = EM_AARCH64 };
#else
#error "this machine's number in ELF headers is not known here"
#endif

typedef struct image {
  const unsigned char *at;
  uint64_t bytes;
} image;

static bool inside(const image *file, uint64_t offset, uint64_t bytes) {
  return offset <= file->bytes && bytes <= file->bytes - offset;
}

static const char *check_header(const image *file, Elf64_Ehdr *h) {
  if (!inside(file, 0, sizeof *h) || memcmp(file->at, ELFMAG, SELFMAG) != 0) return "it is no ELF file";
  memcpy(h, file->at, sizeof *h);
  if (h->e_ident[EI_CLASS] != ELFCLASS64) return "it is for 32-bit programs";
  if (h->e_ident[EI_DATA] != ELFDATA2LSB) return "it is big-endian";
  if (h->e_machine != OUR_MACHINE) return "it is for another kind of processor";
  if (h->e_type != ET_DYN) return "it is no shared library";
  if (h->e_shnum == 0 || h->e_shentsize != sizeof(Elf64_Shdr) ||
      !inside(file, h->e_shoff, (uint64_t)h->e_shnum * sizeof(Elf64_Shdr)))
    return "it has no table of sections";
  return NULL;
}

static Elf64_Shdr section(const image *file, const Elf64_Ehdr *h, uint64_t i) {
  Elf64_Shdr s;
  memcpy(&s, file->at + h->e_shoff + i * sizeof s, sizeof s);
  return s;
}

static const char *walk(const image *file, elf_symbol_fn each, void *sink) {
  Elf64_Ehdr h;
  const char *bad = check_header(file, &h);
  if (bad != NULL) return bad;
  for (uint64_t i = 0; i < h.e_shnum; i++) {
    Elf64_Shdr table = section(file, &h, i);
    if (table.sh_type != SHT_DYNSYM) continue;
    if (table.sh_link >= h.e_shnum) return "its table of symbols is malformed";
    Elf64_Shdr names = section(file, &h, table.sh_link);
    if (!inside(file, table.sh_offset, table.sh_size) || !inside(file, names.sh_offset, names.sh_size) ||
        names.sh_size == 0 || file->at[names.sh_offset + names.sh_size - 1] != '\0')
      return "its table of symbols is malformed";
    for (uint64_t n = 1; n < table.sh_size / sizeof(Elf64_Sym); n++) {
      Elf64_Sym s;
      memcpy(&s, file->at + table.sh_offset + n * sizeof s, sizeof s);
      if (s.st_name >= names.sh_size) return "its table of symbols is malformed";
      bool defined = s.st_shndx != SHN_UNDEF && ELF64_ST_BIND(s.st_info) != STB_LOCAL;
      if (!each(sink, (const char *)file->at + names.sh_offset + s.st_name, defined)) return NULL;
    }
    return NULL;
  }
  return "it has no dynamic symbols";
}

const char *elf_symbols(const char *path, elf_symbol_fn each, void *sink) {
  struct stat info;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return strerror(errno);
  const char *bad = "it is no regular file";
  if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0) {
    image file = {.bytes = (uint64_t)info.st_size};
    void *at = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (at == MAP_FAILED) {
      bad = strerror(errno);
    } else {
      file.at = at;
      bad = walk(&file, each, sink);
      munmap(at, (size_t)info.st_size);
    }
  }
  close(fd);
  return bad;
}
