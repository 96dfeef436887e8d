/* modules/tvm/image.c: reads the dynamic section of a mapped library. The loader has read it before us, and would have
 * ended the process over one that is malformed. */
#define _GNU_SOURCE /* dlinfo, dl_iterate_phdr */
#include "modules/tvm/image.h"

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int find_segments(struct dl_phdr_info *info, size_t size, void *user) {
  heddle__image *image = user;
  (void)size;
  if ((char *)info->dlpi_addr != image->base) return 0;
  image->segments = info->dlpi_phdr;
  image->n_segments = info->dlpi_phnum;
  return 1;
}

/* How many symbols a GNU hash table knows: the last one of its last chain. */
static size_t count_gnu(const uint32_t *hash) {
  uint32_t n_buckets = hash[0], first = hash[1], n_bloom = hash[2], last = 0;
  const uint32_t *buckets = hash + 4 + (size_t)n_bloom * 2, *chains = buckets + n_buckets;
  for (uint32_t i = 0; i < n_buckets; i++)
    if (buckets[i] > last) last = buckets[i];
  if (last < first) return first;
  while ((chains[last - first] & 1) == 0) last++;
  return (size_t)last + 1;
}

bool heddle__image_of(void *handle, heddle__image *out) {
  struct link_map *map = NULL;
  const uint32_t *gnu = NULL, *hash = NULL;
  *out = (heddle__image){.base = NULL};
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0) return false;
  out->base = (char *)map->l_addr;
  for (const Elf64_Dyn *d = map->l_ld; d->d_tag != DT_NULL; d++) {
    /* glibc has put the base in where it may write; the vDSO's kind of section keeps offsets */
    const char *at = (const char *)d->d_un.d_ptr;
    if (d->d_un.d_ptr < map->l_addr) at = out->base + d->d_un.d_ptr;
    if (d->d_tag == DT_SYMTAB) out->symbols = (const Elf64_Sym *)(const void *)at;
    if (d->d_tag == DT_STRTAB) out->strings = at;
    if (d->d_tag == DT_GNU_HASH) gnu = (const uint32_t *)(const void *)at;
    if (d->d_tag == DT_RELA) out->relocations[0] = (const Elf64_Rela *)(const void *)at;
    if (d->d_tag == DT_JMPREL) out->relocations[1] = (const Elf64_Rela *)(const void *)at;
    if (d->d_tag == DT_RELASZ) out->n_relocations[0] = d->d_un.d_val / sizeof(Elf64_Rela);
    if (d->d_tag == DT_PLTRELSZ) out->n_relocations[1] = d->d_un.d_val / sizeof(Elf64_Rela);
    if (d->d_tag == DT_HASH) hash = (const uint32_t *)(const void *)at;
  }
  if (hash != NULL) out->count = hash[1];
  else if (gnu != NULL) out->count = count_gnu(gnu);
  dl_iterate_phdr(find_segments, out);
  return out->symbols != NULL && out->strings != NULL && out->count > 0 && out->segments != NULL;
}

/* What a segment says of an address in it; false: it is in another one. */
static bool look(const Elf64_Phdr *p, uint64_t at, heddle__symbol *out) {
  if (p->p_type != PT_LOAD || (p->p_flags & PF_R) == 0 || at < p->p_vaddr || at - p->p_vaddr >= p->p_memsz)
    return false;
  out->room = (size_t)(p->p_memsz - (at - p->p_vaddr));
  out->is_function = (p->p_flags & PF_X) != 0;
  out->is_writable = (p->p_flags & PF_W) != 0;
  return true;
}

/* A symbol that the library defines as function or data, if it lies where such may lie. One without a type, as
 * assembly text may leave it, is what its place can be. */
static bool describe(const heddle__image *image, const Elf64_Sym *s, heddle__symbol *out) {
  int type = ELF64_ST_TYPE(s->st_info);
  size_t i = 0;
  if (s->st_shndx == SHN_UNDEF || (type != STT_FUNC && type != STT_OBJECT && type != STT_NOTYPE)) return false;
  *out = (heddle__symbol){.name = image->strings + s->st_name,
                          .address = image->base + s->st_value,
                          .is_weak = ELF64_ST_BIND(s->st_info) == STB_WEAK};
  while (i < image->n_segments && !look(&image->segments[i], s->st_value, out)) i++;
  if (i == image->n_segments || (type == STT_FUNC && !out->is_function)) return false;
  if (type != STT_NOTYPE) out->is_function = type == STT_FUNC;
  if (s->st_size != 0 && s->st_size < out->room) out->room = (size_t)s->st_size;
  return true;
}

static bool find_in_image(const void *self, const char *head, const char *name, heddle__symbol_kind kind,
                          heddle__symbol *out) {
  const heddle__image *image = self;
  size_t n = strlen(head);
  for (size_t i = 0; i < image->count; i++) {
    const char *whole = image->strings + image->symbols[i].st_name;
    if (strncmp(whole, head, n) == 0 && strcmp(whole + n, name) == 0 && describe(image, &image->symbols[i], out) &&
        out->is_function == (kind == HEDDLE__SYMBOL_FUNCTION))
      return true;
  }
  return false;
}

static void each(const void *self, void (*fn)(void *user, const heddle__symbol *symbol), void *user) {
  const heddle__image *image = self;
  heddle__symbol s;
  for (size_t i = 0; i < image->count; i++)
    if (ELF64_ST_BIND(image->symbols[i].st_info) != STB_LOCAL && describe(image, &image->symbols[i], &s)) fn(user, &s);
}

heddle__symbols heddle__image_symbols(const heddle__image *image) {
  static const heddle__symbols_table table = {find_in_image, each};
  return (heddle__symbols){&table, image, ""};
}

/* ---- imports */

#if defined __x86_64__
enum { OF_CALL = R_X86_64_JUMP_SLOT, OF_TABLE = R_X86_64_GLOB_DAT, OF_DATA = R_X86_64_64 };
#elif defined __aarch64__
enum { OF_CALL = R_AARCH64_JUMP_SLOT, OF_TABLE = R_AARCH64_GLOB_DAT, OF_DATA = R_AARCH64_ABS64 };
#else
#error "imports are known for x86-64 and aarch64"
#endif

bool heddle__image_imports(const heddle__image *image, const char *head) {
  for (size_t i = 0; i < image->count; i++)
    if (image->symbols[i].st_shndx == SHN_UNDEF &&
        strncmp(image->strings + image->symbols[i].st_name, head, strlen(head)) == 0)
      return true;
  return false;
}

/* Whether the loader has made a place read-only when it was done; the last page in part stays writable. */
static bool is_locked(const heddle__image *image, uint64_t at, size_t page) {
  for (size_t i = 0; i < image->n_segments; i++) {
    const Elf64_Phdr *p = &image->segments[i];
    if (p->p_type != PT_GNU_RELRO) continue;
    uint64_t from = p->p_vaddr / page * page, to = (p->p_vaddr + p->p_memsz) / page * page;
    if (at >= from && at < to) return true;
  }
  return false;
}

static bool put(const heddle__image *image, uint64_t at, const void *value) {
  char *slot = image->base + at;
  if (memcmp(slot, &value, sizeof value) == 0) return true;
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  bool locked = is_locked(image, at, page);
  if (locked && mprotect(slot - at % page, page, PROT_READ | PROT_WRITE) != 0) return false;
  memcpy(slot, &value, sizeof value);
  if (locked) (void)mprotect(slot - at % page, page, PROT_READ);
  return true;
}

bool heddle__image_rebind(const heddle__image *image, const char *name, void *address) {
  for (int k = 0; k < 2; k++) {
    for (size_t i = 0; i < image->n_relocations[k]; i++) {
      const Elf64_Rela *r = &image->relocations[k][i];
      uint64_t kind = ELF64_R_TYPE(r->r_info), number = ELF64_R_SYM(r->r_info);
      if ((kind != OF_CALL && kind != OF_TABLE && kind != OF_DATA) || number >= image->count) continue;
      const Elf64_Sym *s = &image->symbols[number];
      if (s->st_shndx != SHN_UNDEF || strcmp(image->strings + s->st_name, name) != 0) continue;
      const char *value = (const char *)address + (kind == OF_DATA ? r->r_addend : 0);
      if (!put(image, r->r_offset, value)) return false;
    }
  }
  return true;
}

/* ---- any file */

typedef struct place {
  const char *address;
  heddle__symbol *out;
} place;

static int locate(struct dl_phdr_info *info, size_t size, void *user) {
  const place *p = user;
  (void)size;
  for (size_t i = 0; i < info->dlpi_phnum; i++)
    if (look(&info->dlpi_phdr[i], (uint64_t)(uintptr_t)p->address - info->dlpi_addr, p->out)) return 1;
  return 0;
}

bool heddle__image_locate(const void *address, heddle__symbol *out) {
  place p = {address, out};
  return dl_iterate_phdr(locate, &p) != 0;
}
