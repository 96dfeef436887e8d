/* modules/pack/elf_file.c: reads a shared library or an object through libelf, without running it. */
#include "modules/pack/elf_file.h"

#include <string.h>

#include "core/alloc.h"
#include "core/error.h"

enum { MOST_SECTIONS = 0xFE00, MOST_SEGMENTS = 256 };

#if defined(__x86_64__)
enum { OUR_MACHINE = EM_X86_64 };
#else
enum { OUR_MACHINE = EM_AARCH64 };
#endif

static heddle_status bad(heddle_error *err, const char *what) {
  return heddle__fail(err, HEDDLE_EFORMAT, "%s", what);
}

static heddle_status check_head(const Elf64_Ehdr *h, bool is_object, heddle_error *err) {
  if (h->e_machine != OUR_MACHINE)
    return heddle__fail(err, HEDDLE_EFORMAT, "it is for another kind of processor (ELF machine %u, this is %d)",
                        (unsigned)h->e_machine, (int)OUR_MACHINE);
  if (h->e_type != (is_object ? ET_REL : ET_DYN))
    return bad(err, is_object ? "it is no object file, but an ELF file of another type"
                              : "it is no shared library, but an ELF file of another type");
  return HEDDLE_OK;
}

static heddle_status read_segments(heddle__elf_file *f, heddle_error *err) {
  if (f->e->n_segments(f->elf, &f->n_segments) != 0 || f->n_segments > MOST_SEGMENTS)
    return bad(err, "its program headers are malformed");
  if (f->n_segments == 0) return HEDDLE_OK;
  const Elf64_Phdr *p = f->e->segments(f->elf);
  if (p == NULL) return bad(err, "its program headers are malformed");
  f->segments = heddle__alloc(f->n_segments, sizeof *f->segments);
  if (f->segments == NULL) return heddle__no_memory(err, "a library's headers");
  memcpy(f->segments, p, f->n_segments * sizeof *p);
  return HEDDLE_OK;
}

/* Each section's bytes are in the file. */
static heddle_status read_section(heddle__elf_file *f, size_t i, size_t bytes, heddle_error *err) {
  heddle__elf_section *s = &f->sections[i];
  Elf_Scn *scn = f->e->section(f->elf, i);
  const void *head = scn != NULL ? f->e->describe(scn) : NULL;
  if (head == NULL) return bad(err, "its section headers are malformed");
  memcpy(&s->head, head, sizeof s->head); /* it lies where the file says, aligned or not */
  const Elf64_Shdr *h = &s->head;
  s->name = f->e->name(f->elf, f->names, h->sh_name);
  if (s->name == NULL) return bad(err, "a section's name is out of bounds");
  if (i == 0 || h->sh_type == SHT_NOBITS || h->sh_type == SHT_NULL) return HEDDLE_OK;
  if (h->sh_offset > bytes || h->sh_size > bytes - h->sh_offset)
    return bad(err, "it is cut off: a section has no bytes");
  if (h->sh_addralign > 1 && (h->sh_addralign & (h->sh_addralign - 1)) != 0)
    return bad(err, "a section's alignment is no power of two");
  const Elf_Data *d = h->sh_size > 0 ? f->e->data(scn, NULL) : NULL;
  if (h->sh_size > 0 && (d == NULL || d->d_buf == NULL || d->d_size != h->sh_size))
    return bad(err, "a section cannot be read");
  s->data = d != NULL ? d->d_buf : NULL;
  return HEDDLE_OK;
}

/* A table of symbols with the strings of their names. */
static bool is_table(const heddle__elf_file *f, size_t i) {
  const Elf64_Shdr *h = &f->sections[i].head;
  return h->sh_entsize == sizeof(Elf64_Sym) && h->sh_size % sizeof(Elf64_Sym) == 0 && h->sh_size > 0 &&
         h->sh_link > 0 && h->sh_link < f->n_sections && f->sections[h->sh_link].head.sh_type == SHT_STRTAB &&
         (h->sh_offset % _Alignof(Elf64_Sym)) == 0;
}

static heddle_status read_sections(heddle__elf_file *f, size_t bytes, bool is_object, heddle_error *err) {
  if (f->e->n_sections(f->elf, &f->n_sections) != 0 || f->n_sections > MOST_SECTIONS)
    return bad(err, "its section headers are malformed");
  if (f->n_sections < 2) return bad(err, "it has no section headers");
  if (f->e->names(f->elf, &f->names) != 0 || f->names == 0 || f->names >= f->n_sections)
    return bad(err, "it has no names of sections");
  f->sections = heddle__alloc(f->n_sections, sizeof *f->sections);
  if (f->sections == NULL) return heddle__no_memory(err, "a library's headers");
  heddle_status s = HEDDLE_OK;
  for (size_t i = 0; i < f->n_sections && s == HEDDLE_OK; i++) s = read_section(f, i, bytes, err);
  for (size_t i = 1; i < f->n_sections && s == HEDDLE_OK; i++) {
    Elf64_Word type = f->sections[i].head.sh_type;
    if (type == SHT_DYNAMIC && !is_object) f->dynamic = i;
    if (type != (is_object ? SHT_SYMTAB : SHT_DYNSYM)) continue;
    if (!is_table(f, i) || f->symbols != 0) return bad(err, "its table of symbols is malformed");
    f->symbols = i;
  }
  if (s == HEDDLE_OK && !is_object && (f->dynamic == 0 || f->sections[f->dynamic].data == NULL))
    return bad(err, "it has no dynamic section");
  if (s == HEDDLE_OK && !is_object && f->symbols == 0) return bad(err, "it has no dynamic symbols");
  return s;
}

heddle_status heddle__elf_read(void *image, size_t bytes, bool is_object, heddle__elf_file *out, heddle_error *err) {
  const unsigned char *ident = image;
  *out = (heddle__elf_file){.elf = NULL};
  if (bytes < sizeof(Elf64_Ehdr) || memcmp(ident, ELFMAG, SELFMAG) != 0) return bad(err, "it is no ELF file");
  if (ident[EI_CLASS] != ELFCLASS64) return bad(err, "it is for 32-bit programs, this is a 64-bit one");
  if (ident[EI_DATA] != ELFDATA2LSB) return bad(err, "it is big-endian, this machine is little-endian");
  heddle_status s = heddle__libelf_open(&out->e, err);
  if (s != HEDDLE_OK) return s;
  out->elf = out->e->memory(image, bytes);
  const Elf64_Ehdr *h = out->elf != NULL && out->e->kind(out->elf) == ELF_K_ELF ? out->e->header(out->elf) : NULL;
  if (h == NULL) return heddle__fail(err, HEDDLE_EFORMAT, "it is malformed: %s", heddle__libelf_reason(out->e));
  out->head = *h;
  out->bytes = bytes;
  s = check_head(h, is_object, err);
  if (s == HEDDLE_OK) s = read_segments(out, err);
  return s == HEDDLE_OK ? read_sections(out, bytes, is_object, err) : s;
}

void heddle__elf_finish(heddle__elf_file *f) {
  if (f->elf != NULL) f->e->end(f->elf);
  heddle__free(f->segments);
  heddle__free(f->sections);
  *f = (heddle__elf_file){.elf = NULL};
}

Elf64_Sym *heddle__elf_symbols(const heddle__elf_file *f, size_t *n) {
  *n = f->symbols != 0 ? (size_t)(f->sections[f->symbols].head.sh_size / sizeof(Elf64_Sym)) : 0;
  return (Elf64_Sym *)(void *)f->sections[f->symbols].data;
}

const char *heddle__elf_name(const heddle__elf_file *f, const Elf64_Sym *s) {
  const heddle__elf_section *text = &f->sections[f->sections[f->symbols].head.sh_link];
  if (text->data == NULL || s->st_name >= text->head.sh_size ||
      memchr(text->data + s->st_name, 0, (size_t)(text->head.sh_size - s->st_name)) == NULL)
    return "";
  return (const char *)text->data + s->st_name;
}

static bool is_defined(const heddle__elf_file *f, const Elf64_Sym *s) {
  return s->st_shndx != SHN_UNDEF && s->st_shndx < f->n_sections && ELF64_ST_BIND(s->st_info) != STB_LOCAL;
}

size_t heddle__elf_find(const heddle__elf_file *f, const char *name) {
  size_t n;
  const Elf64_Sym *symbols = heddle__elf_symbols(f, &n);
  for (size_t i = 1; i < n; i++)
    if (is_defined(f, &symbols[i]) && strcmp(heddle__elf_name(f, &symbols[i]), name) == 0) return i;
  return 0;
}

static bool begins(const char *text, const char *with) {
  return strncmp(text, with, strlen(with)) == 0;
}

bool heddle__elf_has_functions(const heddle__elf_file *f) {
  size_t n;
  const Elf64_Sym *symbols = heddle__elf_symbols(f, &n);
  for (size_t i = 1; i < n; i++) {
    const char *name = heddle__elf_name(f, &symbols[i]);
    bool is_own = strcmp(name, "_init") == 0 || strcmp(name, "_fini") == 0;
    if (is_defined(f, &symbols[i]) && ELF64_ST_TYPE(symbols[i].st_info) == STT_FUNC && !is_own) return true;
  }
  return false;
}

static heddle__blob_layout layout_of(const heddle__elf_file *f) {
  size_t n;
  const Elf64_Sym *symbols = heddle__elf_symbols(f, &n);
  heddle__blob_layout layout = HEDDLE__BLOB_PACKED;
  for (size_t i = 1; i < n; i++) {
    const char *name = heddle__elf_name(f, &symbols[i]);
    if (!is_defined(f, &symbols[i])) continue;
    bool code = ELF64_ST_TYPE(symbols[i].st_info) == STT_FUNC;
    if (begins(name, "__tvm_ffi__library_") || (code && begins(name, "__tvm_ffi_"))) return HEDDLE__BLOB_FFI;
    if (begins(name, "__TVMFFI") || begins(name, "__tvm_ffi_library_")) layout = HEDDLE__BLOB_FFI21;
  }
  return layout;
}

heddle_status heddle__elf_blob(const heddle__elf_file *f, heddle__span *out, heddle__blob_layout *layout,
                               const char **symbol, heddle_error *err) {
  static const char *const names[] = {"__tvm_dev_mblob", "__tvm_ffi_library_bin", "__tvm_ffi__library_bin"};
  size_t n, at = 0;
  const Elf64_Sym *symbols = heddle__elf_symbols(f, &n);
  *out = (heddle__span){NULL, 0};
  *layout = layout_of(f);
  for (size_t i = 0; i < 3 && at == 0; i++) {
    at = heddle__elf_find(f, names[i]);
    if (at != 0) *layout = (heddle__blob_layout)i;
  }
  *symbol = names[*layout];
  if (at == 0) return HEDDLE_OK;
  const heddle__elf_section *s = &f->sections[symbols[at].st_shndx];
  uint64_t from = symbols[at].st_value - (f->head.e_type == ET_REL ? 0 : s->head.sh_addr);
  if (s->data == NULL || from >= s->head.sh_size)
    return heddle__fail(err, HEDDLE_EFORMAT, "its %s lies where it has no bytes", names[*layout]);
  *out = (heddle__span){s->data + from, s->head.sh_size - from};
  return HEDDLE_OK;
}
