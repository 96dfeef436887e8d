/* modules/pack/elf_write.c: writes a shared library anew with the modules that it carries, through libelf. */
#include "modules/pack/elf_write.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "core/alloc.h"
#include "core/error.h"

static bool is_loaded(const Elf64_Shdr *h) {
  return (h->sh_flags & SHF_ALLOC) != 0;
}

static bool has_bytes(const Elf64_Shdr *h) {
  return h->sh_type != SHT_NULL && h->sh_type != SHT_NOBITS;
}

/* The section of an earlier packing, where it is the end of the last segment; 0: there is none. */
static size_t find_own(const heddle__elf_new *n, Elf64_Phdr **segment) {
  *segment = NULL;
  for (size_t i = 0; i < n->n_segments; i++)
    if (n->segments[i].p_type == PT_LOAD) *segment = &n->segments[i];
  for (size_t i = 1; i < n->n_sections && *segment != NULL; i++) {
    const heddle__elf_section *s = &n->sections[i];
    const Elf64_Phdr *p = *segment;
    if (strcmp(s->name, HEDDLE__BLOB_SECTION) != 0 || s->head.sh_type != SHT_PROGBITS || s->data == NULL) continue;
    bool is_end = s->head.sh_offset >= p->p_offset && s->head.sh_addr >= p->p_vaddr &&
                  s->head.sh_offset - p->p_offset == s->head.sh_addr - p->p_vaddr && p->p_filesz == p->p_memsz &&
                  s->head.sh_offset + s->head.sh_size == p->p_offset + p->p_filesz;
    if (is_end) return i;
  }
  return 0;
}

/* The symbol's bytes and place, in the dynamic symbols and, where it is there, in those that strip removes. */
static void point_symbol(heddle__elf_new *n, size_t number, size_t section, const char *name) {
  const Elf64_Shdr *h = &n->sections[section].head;
  Elf64_Sym *s = (Elf64_Sym *)(void *)n->sections[n->f->symbols].data + number;
  s->st_value = h->sh_addr;
  s->st_size = h->sh_size;
  s->st_shndx = (Elf64_Half)section;
  for (size_t i = 1; i < n->f->n_sections; i++) {
    const heddle__elf_section *table = &n->sections[i];
    if (table->head.sh_type != SHT_SYMTAB || table->data == NULL || table->head.sh_link >= n->f->n_sections) continue;
    const heddle__elf_section *text = &n->sections[table->head.sh_link];
    for (uint64_t k = 0; k + sizeof *s <= table->head.sh_size && text->data != NULL; k += sizeof *s) {
      Elf64_Sym one;
      memcpy(&one, table->data + k, sizeof one);
      size_t room = one.st_name < text->head.sh_size ? (size_t)(text->head.sh_size - one.st_name) : 0;
      if (strlen(name) >= room || memcmp(text->data + one.st_name, name, strlen(name) + 1) != 0) continue;
      one.st_value = h->sh_addr;
      one.st_size = h->sh_size;
      one.st_shndx = (Elf64_Half)section;
      memcpy(table->data + k, &one, sizeof one);
    }
  }
}

/* A section's name behind the others; they are not loaded. */
static heddle_status add_name(heddle__elf_new *n, const char *name, Elf64_Word *out, heddle_error *err) {
  heddle__elf_section *text = &n->sections[n->f->names];
  size_t old = (size_t)text->head.sh_size, more = strlen(name) + 1;
  const unsigned char *was = text->data;
  if (is_loaded(&text->head) || was == NULL || old > UINT32_MAX / 2)
    return heddle__fail(err, HEDDLE_EFORMAT, "its names of sections are malformed");
  unsigned char *data = heddle__elf_replace(n, n->f->names, old + more);
  if (data == NULL) return heddle__no_memory(err, "a packed library");
  memcpy(data, was, old);
  memcpy(data + old, name, more);
  *out = (Elf64_Word)old;
  return HEDDLE_OK;
}

static heddle_status add_segment(heddle__elf_new *n, const char *symbol, size_t *number, heddle_error *err) {
  bool *moved = heddle__alloc(n->n_sections + 1, sizeof *moved);
  size_t added = *number == 0;
  heddle__elf_section *own = &n->sections[n->n_sections];
  own->name = HEDDLE__BLOB_SECTION;
  own->head.sh_type = SHT_PROGBITS;
  own->head.sh_flags = SHF_ALLOC;
  own->head.sh_addralign = 16;
  heddle_status s =
      moved != NULL ? add_name(n, own->name, &own->head.sh_name, err) : heddle__no_memory(err, "a packed library");
  if (s == HEDDLE_OK && added) s = heddle__elf_add_symbol(n, symbol, number, err);
  for (size_t i = 1; i < n->f->n_sections && s == HEDDLE_OK; i++) /* what has grown needs a new place */
    moved[i] = added && is_loaded(&n->sections[i].head) && n->sections[i].data != n->f->sections[i].data;
  n->n_sections++;
  if (s == HEDDLE_OK) s = heddle__elf_place(n, moved, err);
  heddle__free(moved);
  return s;
}

/* ---- the file */

static heddle_status refuse(const heddle__elf_new *n, heddle_error *err) {
  return heddle__fail(err, HEDDLE_EFORMAT, "it cannot be written anew: %s", heddle__libelf_reason(n->f->e));
}

/* A section without bytes has no part in where the file ends, and libelf fills a file up to the offset of each. What the header
 * of an inactive section holds is undefined. */
static void confine(Elf64_Shdr *h, uint64_t end) {
  if (h->sh_type == SHT_NULL) *h = (Elf64_Shdr){.sh_name = h->sh_name};
  else if (!has_bytes(h) && h->sh_offset > end) h->sh_offset = end;
}

/* Sections that are not loaded, and the headers of all, behind what is. */
static uint64_t place_rest(heddle__elf_new *n) {
  uint64_t end = n->f->head.e_phoff + n->n_segments * sizeof(Elf64_Phdr);
  for (size_t i = 1; i < n->n_sections; i++) {
    const Elf64_Shdr *h = &n->sections[i].head;
    if (is_loaded(h) && has_bytes(h) && h->sh_offset + h->sh_size > end) end = h->sh_offset + h->sh_size;
  }
  for (size_t i = 1; i < n->n_sections; i++) {
    Elf64_Shdr *h = &n->sections[i].head;
    confine(h, end);
    if (is_loaded(h) || h->sh_type == SHT_NULL) continue;
    uint64_t align = h->sh_addralign > 8 ? h->sh_addralign : 8;
    if (align > 4096) align = 4096;
    h->sh_offset = end = (end + align - 1) & ~(align - 1);
    if (has_bytes(h)) end += h->sh_size;
  }
  return (end + 7) & ~UINT64_C(7);
}

static heddle_status put_section(const heddle__elf_new *n, Elf *elf, size_t i, heddle_error *err) {
  const heddle__libelf *e = n->f->e;
  const heddle__elf_section *from = &n->sections[i];
  Elf_Scn *scn = e->new_section(elf);
  Elf64_Shdr *h = scn != NULL ? e->describe(scn) : NULL;
  if (h == NULL) return refuse(n, err);
  *h = from->head;
  if (from->data == NULL || !has_bytes(h)) return HEDDLE_OK;
  Elf_Data *d = e->new_data(scn);
  if (d == NULL) return refuse(n, err);
  d->d_buf = from->data;
  d->d_size = (size_t)h->sh_size;
  d->d_type = ELF_T_BYTE; /* as it is in the file */
  d->d_align = 1;
  d->d_off = 0;
  d->d_version = EV_CURRENT;
  return HEDDLE_OK;
}

static heddle_status put_file(heddle__elf_new *n, int file, heddle_error *err) {
  const heddle__libelf *e = n->f->e;
  uint64_t headers = place_rest(n);
  heddle_status s = HEDDLE_OK;
  Elf *elf = e->begin(file, ELF_C_WRITE, NULL);
  if (elf == NULL) return refuse(n, err);
  (void)e->flag(elf, ELF_C_SET, ELF_F_LAYOUT | ELF_F_PERMISSIVE);
  Elf64_Ehdr *head = e->new_header(elf);
  Elf64_Phdr *segments = head != NULL ? e->new_segments(elf, n->n_segments) : NULL;
  if (segments == NULL) s = refuse(n, err);
  for (size_t i = 1; i < n->n_sections && s == HEDDLE_OK; i++) s = put_section(n, elf, i, err);
  if (s == HEDDLE_OK) {
    Elf64_Half n_segments = head->e_phnum, n_sections = head->e_shnum;
    *head = n->f->head;
    head->e_phnum = n_segments;
    head->e_shnum = n_sections;
    head->e_shoff = headers;
    memcpy(segments, n->segments, n->n_segments * sizeof *segments);
    if (e->update(elf, ELF_C_WRITE) < 0) s = refuse(n, err);
  }
  e->end(elf);
  return s;
}

/* What was written is read again: sections of a malformed library may lie over one another. */
static heddle_status check_written(int file, const char *symbol, const void *blob, size_t bytes, heddle_error *err) {
  struct stat info;
  heddle__elf_file f = {.elf = NULL};
  heddle__span found = {NULL, 0};
  heddle__blob_layout layout;
  const char *name = "";
  heddle_error why = {0};
  if (fstat(file, &info) != 0 || info.st_size <= 0) return heddle__fail(err, HEDDLE_EIO, "what was written is lost");
  size_t all = (size_t)info.st_size;
  void *image = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
  if (image == MAP_FAILED) return heddle__no_memory(err, "a packed library");
  heddle_status s = heddle__elf_read(image, all, false, &f, &why);
  if (s == HEDDLE_OK) s = heddle__elf_blob(&f, &found, &layout, &name, &why);
  bool good =
      s == HEDDLE_OK && strcmp(name, symbol) == 0 && found.bytes == bytes && memcmp(found.data, blob, bytes) == 0;
  heddle__elf_finish(&f);
  munmap(image, all);
  return good ? HEDDLE_OK : heddle__fail(err, HEDDLE_EFORMAT, "it is malformed: its sections cannot be written anew");
}

/* The modules that the library had where its compiler put them: they are not read any more. */
static heddle_status clear_old(const heddle__elf_new *n, size_t own, heddle_error *err) {
  heddle__span old;
  heddle__blob_layout layout;
  const char *symbol;
  heddle_status s = heddle__elf_blob(n->f, &old, &layout, &symbol, err);
  if (s != HEDDLE_OK || old.data == NULL || own != 0) return s;
  uint64_t bytes = 8;
  for (unsigned i = 0; i < 8 && old.bytes >= 8; i++) bytes += (uint64_t)old.data[i] << (8 * i);
  if (old.bytes >= 8 && bytes >= 8 && bytes <= old.bytes)
    memset((unsigned char *)(uintptr_t)old.data, 0, (size_t)bytes);
  return s;
}

heddle_status heddle__elf_write(heddle__elf_file *f, const char *symbol, const void *blob, size_t bytes, int file,
                                heddle_error *err) {
  heddle__elf_new n = {.f = f, .n_sections = f->n_sections, .n_segments = f->n_segments};
  Elf64_Phdr *segment = NULL;
  size_t number = heddle__elf_find(f, symbol), own = 0;
  n.sections = heddle__alloc(f->n_sections + 2, sizeof *n.sections);
  n.segments = heddle__alloc(f->n_segments + 1, sizeof *n.segments);
  heddle_status s = n.sections && n.segments ? HEDDLE_OK : heddle__no_memory(err, "a packed library");
  if (s == HEDDLE_OK) {
    memcpy(n.sections, f->sections, f->n_sections * sizeof *n.sections);
    if (f->n_segments > 0) memcpy(n.segments, f->segments, f->n_segments * sizeof *n.segments);
    if (number != 0) own = find_own(&n, &segment);
    s = clear_old(&n, own, err);
  }
  if (s == HEDDLE_OK && own != 0) {
    n.sections[own].head.sh_size = bytes;
    n.sections[own].data = (unsigned char *)(uintptr_t)blob;
    segment->p_filesz = segment->p_memsz = n.sections[own].head.sh_addr - segment->p_vaddr + bytes;
  } else if (s == HEDDLE_OK) {
    own = n.n_sections;
    n.sections[own].head.sh_size = bytes;
    n.sections[own].data = (unsigned char *)(uintptr_t)blob;
    s = add_segment(&n, symbol, &number, err);
  }
  if (s == HEDDLE_OK) {
    point_symbol(&n, number, own, symbol);
    s = put_file(&n, file, err);
  }
  if (s == HEDDLE_OK) s = check_written(file, symbol, blob, bytes, err);
  for (size_t i = 0; i < n.n_owned; i++) heddle__free(n.owned[i]);
  heddle__free(n.sections);
  heddle__free(n.segments);
  return s;
}
