/* modules/beside.c: opens the libraries that lie beside libheddle. They stay for ever, so libheddle has to as well. */
#define _GNU_SOURCE /* dladdr */
#include "modules/beside.h"

#include <dlfcn.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/elf.h"
#include "core/error.h"
#include "core/registry.h"

heddle_status heddle__open_beside(const char *file, const char *symbol, bool global, void *entry, heddle_error *err) {
  Dl_info own;
  char *folder = heddle__own_folder(), *path = NULL;
  int i = 0;
  for (; i < 2 && folder != NULL; i++) {
    heddle__free(path);
    path = heddle__format(i == 0 ? "%s/%s" : "%s/../lib/%s", folder, file);
    if (path == NULL || access(path, R_OK) == 0) break;
  }
  heddle__free(folder);
  if (path == NULL) return heddle__no_memory(err, file);
  if (i == 2) {
    heddle__free(path);
    return heddle__fail(err, HEDDLE_EUNSUPPORTED, "%s, which is not beside libheddle: install it there", file);
  }
  heddle_status s = heddle__elf_check(path, err);
  if (dladdr((const void *)(uintptr_t)&heddle__open_beside, &own) != 0 && own.dli_fname != NULL)
    (void)dlopen(own.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
  void *opened = s == HEDDLE_OK ? dlopen(path, RTLD_NOW | (global ? RTLD_GLOBAL : RTLD_LOCAL) | RTLD_NODELETE) : NULL;
  void *found = opened != NULL ? dlsym(opened, symbol) : NULL;
  if (s == HEDDLE_OK && found == NULL) {
    const char *words = dlerror();
    s = heddle__fail(err, HEDDLE_EABI, "it could not be loaded: %s", words != NULL ? words : "no reason given");
  }
  if (s == HEDDLE_OK) memcpy(entry, &found, sizeof found);
  else heddle__prefix(err, s, "%s: ", path);
  heddle__free(path);
  return s;
}

heddle_status heddle__check_beside(const char *file, const char *version, heddle_error *err) {
  if (strcmp(version, heddle_version()) == 0) return HEDDLE_OK;
  return heddle__fail(err, HEDDLE_EABI, "%s is of version %s, libheddle of %s", file, version, heddle_version());
}
