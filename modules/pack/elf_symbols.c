/* modules/pack/elf_symbols.c: adds a symbol to a library's dynamic ones. The others keep their numbers, which relocations
 * hold: so the GNU hash table, whose buckets are rows of neighbours, gets one bucket with all of them. */
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "modules/pack/elf_write.h"

static heddle_status no_memory(heddle_error *err) {
  return heddle__no_memory(err, "a packed library's symbols");
}

static heddle_status malformed(heddle_error *err, const char *what) {
  return heddle__fail(err, HEDDLE_EFORMAT, "its %s is malformed", what);
}

unsigned char *heddle__elf_replace(heddle__elf_new *n, size_t section, size_t bytes) {
  unsigned char *data =
      n->n_owned < sizeof n->owned / sizeof n->owned[0] ? heddle__alloc_aligned(bytes > 0 ? bytes : 1, 16) : NULL;
  if (data == NULL) return NULL;
  memset(data, 0, bytes);
  n->owned[n->n_owned++] = data;
  n->sections[section].data = data;
  n->sections[section].head.sh_size = bytes;
  return data;
}

/* The section with so many bytes more behind those that it has. */
static unsigned char *extend(heddle__elf_new *n, size_t section, size_t more) {
  const unsigned char *old = n->sections[section].data;
  size_t bytes = (size_t)n->sections[section].head.sh_size;
  unsigned char *data = heddle__elf_replace(n, section, bytes + more);
  if (data != NULL && bytes > 0) memcpy(data, old, bytes);
  return data != NULL ? data + bytes : NULL;
}

static size_t find_section(const heddle__elf_new *n, Elf64_Word type, size_t symbols) {
  for (size_t i = 1; i < n->n_sections; i++) {
    const Elf64_Shdr *h = &n->sections[i].head;
    if (h->sh_type == type && h->sh_link == symbols && (h->sh_flags & SHF_ALLOC) != 0 && n->sections[i].data != NULL)
      return i;
  }
  return 0;
}

static uint32_t gnu_hash(const char *name) {
  uint32_t h = 5381;
  for (; *name != '\0'; name++) h = h * 33 + (unsigned char)*name;
  return h;
}

static uint32_t plain_hash(const char *name) {
  uint32_t h = 0;
  for (; *name != '\0'; name++) {
    h = (h << 4) + (unsigned char)*name;
    h ^= (h >> 24) & 0xF0;
    h &= 0x0FFFFFFF;
  }
  return h;
}

/* The name of the i-th symbol, after the new one was added. */
static const char *name_of(const heddle__elf_new *n, size_t symbols, size_t i) {
  const heddle__elf_section *text = &n->sections[n->sections[symbols].head.sh_link];
  const Elf64_Sym *s = (const Elf64_Sym *)(const void *)n->sections[symbols].data + i;
  if (s->st_name >= text->head.sh_size ||
      memchr(text->data + s->st_name, 0, (size_t)(text->head.sh_size - s->st_name)) == NULL)
    return "";
  return (const char *)text->data + s->st_name;
}

/* bucket count, first symbol, words of the filter, its shift; the filter; buckets; a word for each symbol from the first on,
 * whose low bit ends a row. */
static heddle_status make_gnu(heddle__elf_new *n, size_t at, size_t symbols, size_t count, heddle_error *err) {
  enum { SHIFT = 6 };
  uint32_t old[4], first = (uint32_t)count - 1, words = 1;
  size_t bytes = (size_t)n->sections[at].head.sh_size;
  if (bytes < sizeof old) return malformed(err, "hash table");
  memcpy(old, n->sections[at].data, sizeof old);
  if (old[2] > bytes / 8 || old[0] > bytes / 4 || sizeof old + 8 * (size_t)old[2] + 4 * (size_t)old[0] > bytes)
    return malformed(err, "hash table");
  for (uint32_t i = 0; i < old[0]; i++) { /* where no bucket has a symbol, the table's first one means nothing */
    uint32_t bucket;
    memcpy(&bucket, n->sections[at].data + sizeof old + 8 * (size_t)old[2] + 4 * (size_t)i, sizeof bucket);
    if (bucket != 0 && old[1] < first) first = old[1];
  }
  if (first == 0) return malformed(err, "hash table");
  size_t hashed = count - first;
  while ((size_t)words * 8 < hashed) words *= 2;
  unsigned char *data = heddle__elf_replace(n, at, sizeof old + 8 * (size_t)words + 4 + 4 * hashed);
  if (data == NULL) return no_memory(err);
  const uint32_t head[4] = {1, first, words, SHIFT};
  uint64_t *filter = (uint64_t *)(void *)(data + sizeof head);
  uint32_t *rows = (uint32_t *)(void *)(data + sizeof head + 8 * (size_t)words);
  memcpy(data, head, sizeof head);
  rows[0] = first;
  for (size_t i = 0; i < hashed; i++) {
    uint32_t h = gnu_hash(name_of(n, symbols, first + i));
    filter[h / 64 % words] |= UINT64_C(1) << (h % 64) | UINT64_C(1) << ((h >> SHIFT) % 64);
    rows[1 + i] = (h & ~UINT32_C(1)) | (i + 1 == hashed);
  }
  return HEDDLE_OK;
}

/* bucket count, symbol count, buckets, for each symbol the next one of its row. */
static heddle_status make_plain(heddle__elf_new *n, size_t at, size_t symbols, size_t count, heddle_error *err) {
  uint32_t buckets = (uint32_t)count / 2 + 1;
  uint32_t *words = (uint32_t *)(void *)heddle__elf_replace(n, at, 4 * (2 + (size_t)buckets + count));
  if (words == NULL) return no_memory(err);
  words[0] = buckets;
  words[1] = (uint32_t)count;
  for (size_t i = 1; i < count; i++) {
    uint32_t *bucket = &words[2 + plain_hash(name_of(n, symbols, i)) % buckets];
    words[2 + buckets + i] = *bucket;
    *bucket = (uint32_t)i;
  }
  return HEDDLE_OK;
}

heddle_status heddle__elf_add_symbol(heddle__elf_new *n, const char *name, size_t *number, heddle_error *err) {
  size_t symbols = n->f->symbols, text = n->sections[symbols].head.sh_link, bytes = strlen(name) + 1;
  size_t gnu = find_section(n, SHT_GNU_HASH, symbols), plain = find_section(n, SHT_HASH, symbols);
  size_t versions = find_section(n, SHT_GNU_versym, symbols);
  uint64_t at = n->sections[text].head.sh_size;
  *number = (size_t)(n->sections[symbols].head.sh_size / sizeof(Elf64_Sym));
  if (gnu == 0 && plain == 0)
    return heddle__fail(err, HEDDLE_EUNSUPPORTED, "it has no hash table of its dynamic symbols");
  if (*number > UINT32_MAX / 16 || at > UINT32_MAX / 2 || n->sections[text].data == NULL)
    return malformed(err, "table of symbols");
  if (versions != 0 && n->sections[versions].head.sh_size != 2 * (uint64_t)*number)
    return malformed(err, "table of versions");
  unsigned char *more_text = extend(n, text, bytes), *more = extend(n, symbols, sizeof(Elf64_Sym));
  if (more_text == NULL || more == NULL) return no_memory(err);
  memcpy(more_text, name, bytes);
  const Elf64_Sym symbol = {.st_name = (Elf64_Word)at, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT)};
  memcpy(more, &symbol, sizeof symbol);
  if (versions != 0) {
    const uint16_t global = 1;
    unsigned char *row = extend(n, versions, sizeof global);
    if (row == NULL) return no_memory(err);
    memcpy(row, &global, sizeof global);
  }
  heddle_status s = gnu != 0 ? make_gnu(n, gnu, symbols, *number + 1, err) : HEDDLE_OK;
  return s == HEDDLE_OK && plain != 0 ? make_plain(n, plain, symbols, *number + 1, err) : s;
}
