/* core/beside.c: opening the libraries that lie beside libheddle. */
#define _GNU_SOURCE /* dladdr */
#include "core/beside.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/elf.h"
#include "core/error.h"

/* DIR/file or DIR/../lib/file, where DIR holds this code; freed with heddle__free. */
static char *path_of(const char *file, const Dl_info *own) {
  char *real = realpath(own->dli_fname[0] == '/' ? own->dli_fname : "/proc/self/exe", NULL);
  char *slash = real != NULL ? strrchr(real, '/') : NULL;
  char *path = NULL;
  for (int i = 0; i < 2 && slash != NULL && path == NULL; i++) {
    path = heddle__format(i == 0 ? "%.*s/%s" : "%.*s/../lib/%s", (int)(slash - real), real, file);
    if (path == NULL || access(path, R_OK) == 0) break;
    heddle__free(path);
    path = NULL;
  }
  free(real);
  return path;
}

void *heddle__beside(const char *file, int mode, const char *symbol, const char *what, heddle_error *err) {
  Dl_info own;
  void *found = NULL;
  const bool known = dladdr((const void *)(uintptr_t)&heddle__beside, &own) != 0 && own.dli_fname != NULL;
  char *path = known ? path_of(file, &own) : NULL;
  if (path == NULL) {
    heddle__fail(err, HEDDLE_EUNSUPPORTED, "%s %s, which is not beside libheddle: install it there", what, file);
    return NULL;
  }
  heddle_status s = heddle__elf_check(path, err);
  /* what is opened stays for ever, so this code has to, which it calls */
  (void)dlopen(own.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
  void *library = s == HEDDLE_OK ? dlopen(path, RTLD_NOW | mode | RTLD_NODELETE) : NULL;
  if (s == HEDDLE_OK && library == NULL) {
    const char *words = dlerror();
    s = heddle__fail(err, HEDDLE_EABI, "it could not be loaded: %s", words != NULL ? words : "no reason given");
  }
  if (library != NULL) {
    found = dlsym(library, symbol);
    if (found == NULL) s = heddle__fail(err, HEDDLE_EABI, "it has no %s", symbol);
  }
  if (s != HEDDLE_OK) heddle__prefix(err, s, "%s: ", path);
  heddle__free(path);
  return found;
}
