/* modules/pack/elf_place.c: the place of the new segment. The table of program headers stays where it is, since tools that
 * write a library anew (strip) look for it there, and grows by one: the sections behind it move into the new segment, which
 * can be done with those that are found by an entry of the dynamic section or are notes. */
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "modules/pack/elf_write.h"

/* The entry of the dynamic section with a section's address; DT_NULL: there is none. */
static Elf64_Sxword entry_of(const heddle__elf_new *n, size_t i) {
  const Elf64_Shdr *h = &n->sections[i].head;
  switch (h->sh_type) {
  case SHT_DYNSYM: return DT_SYMTAB;
  case SHT_GNU_HASH: return DT_GNU_HASH;
  case SHT_HASH: return DT_HASH;
  case SHT_GNU_versym: return DT_VERSYM;
  case SHT_GNU_verneed: return DT_VERNEED;
  case SHT_GNU_verdef: return DT_VERDEF;
  case SHT_STRTAB: return i == n->sections[n->f->symbols].head.sh_link ? DT_STRTAB : DT_NULL;
  default: return DT_NULL;
  }
}

static bool lies_in(const Elf64_Shdr *h, uint64_t from, uint64_t to) {
  return h->sh_type != SHT_NULL && h->sh_type != SHT_NOBITS && h->sh_size > 0 && h->sh_offset < to &&
         h->sh_offset + h->sh_size > from;
}

/* Marks what stands in the way of one more program header; where it is a note, all notes, which segments of their own
 * hold together. */
static heddle_status make_room(const heddle__elf_new *n, bool *moved, heddle_error *err) {
  uint64_t from = n->f->head.e_phoff, to = from + (n->n_segments + 1) * sizeof(Elf64_Phdr);
  bool notes = false;
  for (size_t i = 1; i < n->f->n_sections; i++) {
    const Elf64_Shdr *h = &n->f->sections[i].head;
    if (!lies_in(h, from, to) || (h->sh_flags & SHF_ALLOC) == 0) continue;
    if (h->sh_type == SHT_NOTE) notes = true;
    else if (entry_of(n, i) != DT_NULL) moved[i] = true;
    else
      return heddle__fail(err, HEDDLE_EUNSUPPORTED,
                          "it has no room for one more program header: section %.60s is behind them",
                          n->f->sections[i].name);
  }
  for (size_t i = 1; i < n->f->n_sections; i++)
    if (notes && n->sections[i].head.sh_type == SHT_NOTE && (n->sections[i].head.sh_flags & SHF_ALLOC) != 0)
      moved[i] = true;
  return HEDDLE_OK;
}

/* Where loaded bytes end, in the file and in memory. */
static heddle_status find_end(const heddle__elf_new *n, Elf64_Phdr *out, size_t *last, heddle_error *err) {
  bool any = false;
  *out = (Elf64_Phdr){.p_type = PT_LOAD, .p_flags = PF_R, .p_align = 4096};
  for (size_t i = 0; i < n->n_segments; i++) {
    const Elf64_Phdr *p = &n->segments[i];
    if (p->p_type != PT_LOAD) continue;
    const uint64_t most = UINT64_C(1) << 46;
    if (p->p_offset > n->f->bytes || p->p_filesz > n->f->bytes - p->p_offset || p->p_vaddr > most ||
        p->p_memsz > most || p->p_align > (1 << 24) || (p->p_align & (p->p_align - 1)) != 0)
      return heddle__fail(err, HEDDLE_EFORMAT, "its program header %u is malformed", (unsigned)i);
    if (p->p_offset + p->p_filesz > out->p_offset) out->p_offset = p->p_offset + p->p_filesz;
    if (p->p_vaddr + p->p_memsz > out->p_vaddr) out->p_vaddr = p->p_vaddr + p->p_memsz;
    if (p->p_align > out->p_align) out->p_align = p->p_align;
    *last = i;
    any = true;
  }
  if (!any) return heddle__fail(err, HEDDLE_EFORMAT, "nothing of it is loaded");
  for (size_t i = 1; i < n->f->n_sections; i++) {
    const Elf64_Shdr *h = &n->f->sections[i].head;
    bool counts = (h->sh_flags & SHF_ALLOC) != 0 && h->sh_type != SHT_NOBITS && h->sh_type != SHT_NULL;
    if (counts && h->sh_offset + h->sh_size > out->p_offset) out->p_offset = h->sh_offset + h->sh_size;
  }
  out->p_offset = (out->p_offset + out->p_align - 1) & ~(out->p_align - 1);
  out->p_vaddr = out->p_paddr = (out->p_vaddr + out->p_align - 1) & ~(out->p_align - 1);
  return HEDDLE_OK;
}

static void give_place(heddle__elf_section *s, Elf64_Phdr *p) {
  uint64_t align = s->head.sh_addralign > 16 ? s->head.sh_addralign : 16;
  if (s->head.sh_type == SHT_NOTE) align = s->head.sh_addralign; /* a segment's notes lie side by side */
  if (align > p->p_align) align = p->p_align;
  if (align > 1) p->p_filesz = (p->p_filesz + align - 1) & ~(align - 1);
  s->head.sh_offset = p->p_offset + p->p_filesz;
  s->head.sh_addr = p->p_vaddr + p->p_filesz;
  p->p_filesz += s->head.sh_size;
}

static void change_dynamic(heddle__elf_new *n, const bool *moved) {
  const heddle__elf_section *d = &n->sections[n->f->dynamic];
  for (size_t at = 0; at + sizeof(Elf64_Dyn) <= d->head.sh_size; at += sizeof(Elf64_Dyn)) {
    Elf64_Dyn entry;
    memcpy(&entry, d->data + at, sizeof entry);
    if (entry.d_tag == DT_NULL) return;
    for (size_t i = 1; i < n->f->n_sections; i++) {
      if (!moved[i]) continue;
      Elf64_Sxword tag = entry_of(n, i);
      if (tag == entry.d_tag) entry.d_un.d_ptr = n->sections[i].head.sh_addr;
      if (tag == DT_STRTAB && entry.d_tag == DT_STRSZ) entry.d_un.d_val = n->sections[i].head.sh_size;
    }
    memcpy(d->data + at, &entry, sizeof entry);
  }
}

/* Segments of notes follow them. */
static void move_segments(heddle__elf_new *n, const bool *moved) {
  for (size_t k = 0; k < n->n_segments; k++) {
    Elf64_Phdr *p = &n->segments[k];
    uint64_t from = UINT64_MAX, to = 0, address = UINT64_MAX;
    if (p->p_type != PT_NOTE && p->p_type != PT_GNU_PROPERTY) continue;
    for (size_t i = 1; i < n->f->n_sections; i++) {
      const Elf64_Shdr *old = &n->f->sections[i].head, *h = &n->sections[i].head;
      if (!moved[i] || h->sh_type != SHT_NOTE || !lies_in(old, p->p_offset, p->p_offset + p->p_filesz)) continue;
      if (h->sh_offset < from) from = h->sh_offset;
      if (h->sh_addr < address) address = h->sh_addr;
      if (h->sh_offset + h->sh_size > to) to = h->sh_offset + h->sh_size;
    }
    if (to == 0) continue;
    p->p_offset = from;
    p->p_vaddr = p->p_paddr = address;
    p->p_filesz = p->p_memsz = to - from;
  }
}

heddle_status heddle__elf_place(heddle__elf_new *n, bool *moved, heddle_error *err) {
  Elf64_Phdr p;
  size_t last = 0;
  heddle_status s = make_room(n, moved, err);
  if (s == HEDDLE_OK) s = find_end(n, &p, &last, err);
  if (s != HEDDLE_OK) return s;
  for (size_t i = 1; i < n->f->n_sections; i++)
    if (moved[i]) give_place(&n->sections[i], &p);
  give_place(&n->sections[n->n_sections - 1], &p);
  p.p_memsz = p.p_filesz;
  move_segments(n, moved);
  change_dynamic(n, moved);
  for (size_t i = n->n_segments; i > last + 1; i--) n->segments[i] = n->segments[i - 1];
  n->segments[last + 1] = p;
  n->n_segments++;
  for (size_t i = 0; i < n->n_segments; i++)
    if (n->segments[i].p_type == PT_PHDR) n->segments[i].p_filesz = n->segments[i].p_memsz = n->n_segments * sizeof p;
  return HEDDLE_OK;
}
