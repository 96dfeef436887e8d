/* modules/tvm/image.c: reads the dynamic section of a mapped library. The loader has read it before us, and would have
 * ended the process over one that is malformed. */
#define _GNU_SOURCE /* dlinfo, dl_iterate_phdr */
#include "modules/tvm/image.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

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
    if (d->d_tag == DT_HASH) hash = (const uint32_t *)(const void *)at;
  }
  if (hash != NULL) out->count = hash[1];
  else if (gnu != NULL) out->count = count_gnu(gnu);
  dl_iterate_phdr(find_segments, out);
  return out->symbols != NULL && out->strings != NULL && out->count > 0 && out->segments != NULL;
}

const Elf64_Sym *heddle__image_find(const heddle__image *image, const char *name, int type) {
  for (size_t i = 0; i < image->count; i++) {
    const Elf64_Sym *s = &image->symbols[i];
    int kind = ELF64_ST_TYPE(s->st_info);
    if (s->st_shndx == SHN_UNDEF || (kind != STT_FUNC && kind != STT_OBJECT) || (type != 0 && kind != type)) continue;
    if (strcmp(heddle__image_name(image, s), name) == 0) return s;
  }
  return NULL;
}

size_t heddle__image_room(const heddle__image *image, const Elf64_Sym *s, unsigned flags) {
  for (size_t i = 0; i < image->n_segments; i++) {
    const Elf64_Phdr *p = &image->segments[i];
    if (p->p_type != PT_LOAD || s->st_value < p->p_vaddr || s->st_value - p->p_vaddr >= p->p_memsz) continue;
    if ((p->p_flags & flags) != flags) return 0;
    size_t room = (size_t)(p->p_memsz - (s->st_value - p->p_vaddr));
    return s->st_size != 0 && s->st_size < room ? (size_t)s->st_size : room;
  }
  return 0;
}
