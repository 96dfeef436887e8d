/* Any bytes as a library that is packed: no crash, no leak, a refusal has words, and what was written holds the blob where its
 * symbol says. The first byte says whether the identification of a library of this machine is put over what is there. */
#define _GNU_SOURCE /* memfd_create */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/alloc.h"
#include "modules/pack/elf_write.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_anew(heddle__elf_file *f, const char *symbol, heddle_error *err) {
  static const unsigned char blob[16] = {8};
  static int out = -1;
  if (out < 0) out = memfd_create("packed", 0);
  if (out < 0 || ftruncate(out, 0) != 0 || lseek(out, 0, SEEK_SET) != 0) abort();
  heddle_status s = heddle__elf_write(f, symbol, blob, sizeof blob, out, err); /* reads it again, and compares */
  if (s != HEDDLE_OK && (err->status != s || err->text[0] == '\0')) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const size_t live = heddle__alloc_live();
  heddle_error err = {0};
  heddle__elf_file f = {.elf = NULL};
  heddle__span found;
  heddle__blob_layout layout;
  const char *symbol;
  if (size == 0) return 0;
  unsigned char *image = heddle__alloc_aligned(size, 64);
  if (image == NULL) return 0;
  memcpy(image, data + 1, size - 1);
  if (data[0] % 2 == 1 && size > 64) {
    static const unsigned char ident[] = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT};
    static const uint16_t kind[] = {ET_DYN, EM_X86_64};
    memcpy(image, ident, sizeof ident);
    memcpy(image + 16, kind, sizeof kind);
  }
  heddle_status s = heddle__elf_read(image, size - 1, false, &f, &err);
  if (s == HEDDLE_OK) s = heddle__elf_blob(&f, &found, &layout, &symbol, &err);
  if (s == HEDDLE_OK) write_anew(&f, symbol, &err);
  else if (err.status != s || err.text[0] == '\0') abort();
  heddle__elf_finish(&f);
  heddle__free(image);
  if (heddle__alloc_live() != live) abort();
  return 0;
}
