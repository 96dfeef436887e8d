/* Any bytes as a plugin's file, as it is looked at before dlopen: no crash, no leak, and a refusal has words. The first
 * byte says whether the identification of a library of this machine is put over what is there. */
#define _GNU_SOURCE /* memfd_create */
#include <elf.h>
#include <string.h>

#include "core/alloc.h"
#include "core/elf.h"
#include "memory_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const size_t live = heddle__alloc_live();
  heddle_error err = {0};
  char path[40];
  if (size == 0) return 0;
  int file = memory_file(data + 1, size - 1);
  if (data[0] % 2 == 1) {
    static const unsigned char ident[] = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT};
    static const uint16_t kind[] = {ET_DYN, EM_X86_64}, entry = sizeof(Elf64_Phdr);
    if (pwrite(file, ident, sizeof ident, 0) < 0 || pwrite(file, kind, sizeof kind, offsetof(Elf64_Ehdr, e_type)) < 0 ||
        pwrite(file, &entry, sizeof entry, offsetof(Elf64_Ehdr, e_phentsize)) < 0)
      abort();
  }
  memory_path(file, path);
  heddle_status s = heddle__elf_check(path, &err);
  if (s != HEDDLE_OK && (err.status != s || err.text[0] == '\0')) abort();
  if (heddle__alloc_live() != live) abort();
  return 0;
}
