/* modules/pack/libelf.c: opens libelf and finds its functions. */
#include "modules/pack/libelf.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "core/error.h"

static heddle__libelf table;
static bool is_found;
static const char *lacks; /* the first name that it does not have */

static void find_call(void *library, const char *name, void *function, size_t bytes) {
  void *symbol = dlsym(library, name);
  if (symbol == NULL && lacks == NULL) lacks = name;
  memcpy(function, &symbol, bytes);
}

static void open_library(void) {
  void *library = dlopen("libelf.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == NULL) return;
#define FIND(member, name) find_call(library, name, (void *)&table.member, sizeof table.member)
  FIND(version, "elf_version");
  FIND(memory, "elf_memory");
  FIND(begin, "elf_begin");
  FIND(end, "elf_end");
  FIND(kind, "elf_kind");
  FIND(error, "elf_errno");
  FIND(message, "elf_errmsg");
  FIND(header, "elf64_getehdr");
  FIND(segments, "elf64_getphdr");
  FIND(n_segments, "elf_getphdrnum");
  FIND(n_sections, "elf_getshdrnum");
  FIND(names, "elf_getshdrstrndx");
  FIND(name, "elf_strptr");
  FIND(section, "elf_getscn");
  FIND(describe, "elf64_getshdr");
  FIND(data, "elf_rawdata");
  FIND(new_header, "elf64_newehdr");
  FIND(new_segments, "elf64_newphdr");
  FIND(new_section, "elf_newscn");
  FIND(new_data, "elf_newdata");
  FIND(flag, "elf_flagelf");
  FIND(update, "elf_update");
#undef FIND
  is_found = lacks == NULL && table.version(EV_CURRENT) != EV_NONE;
}

heddle_status heddle__libelf_open(const heddle__libelf **out, heddle_error *err) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, open_library);
  *out = &table;
  if (is_found) return HEDDLE_OK;
  if (lacks != NULL)
    return heddle__fail(err, HEDDLE_EUNSUPPORTED, "packing needs libelf, and the one that is installed lacks %s",
                        lacks);
  return heddle__fail(err, HEDDLE_EUNSUPPORTED,
                      "packing needs libelf.so.1, which is not installed (Debian package libelf1)");
}

const char *heddle__libelf_reason(const heddle__libelf *e) {
  const char *words = e->message(e->error());
  return words != NULL ? words : "libelf gives no reason";
}
