/* core/beside.c: opens the libraries that lie beside libheddle: found from libheddle's own address, so that a build tree
 * and an installation that was moved both work. Nothing else of a process ever loads them. */
#define _GNU_SOURCE /* dladdr */
#include "core/beside.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/elf.h"
#include "core/error.h"

typedef const void *(*entry_fn)(const void *host);

/* DIR/NAME or DIR/../lib/NAME, where DIR holds this code; freed with heddle__free. */
static char *path_of(const char *file, const char *name) {
  char *real = realpath(file[0] == '/' ? file : "/proc/self/exe", NULL);
  char *slash = real != NULL ? strrchr(real, '/') : NULL;
  char *path = NULL;
  for (int i = 0; i < 2 && slash != NULL && path == NULL; i++) {
    path = heddle__format("%.*s/%s%s", (int)(slash - real), real, i == 0 ? "" : "../lib/", name);
    if (path == NULL || access(path, R_OK) == 0) break;
    heddle__free(path);
    path = NULL;
  }
  free(real);
  return path;
}

heddle_status heddle__open_beside(const char *name, const char *what, const char *entry, int flags, const void *host,
                                  const void **table, heddle_error *err) {
  Dl_info own;
  bool known = dladdr((const void *)(uintptr_t)&heddle__open_beside, &own) != 0 && own.dli_fname != NULL;
  char *path = known ? path_of(own.dli_fname, name) : NULL;
  if (path == NULL)
    return heddle__fail(err, HEDDLE_EUNSUPPORTED, "%s %s, which is not beside libheddle: install it there", what, name);
  heddle_status s = heddle__elf_check(path, err);
  /* It stays for ever, so this code has to, which it calls. */
  (void)dlopen(own.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
  void *library = s == HEDDLE_OK ? dlopen(path, RTLD_NOW | RTLD_NODELETE | flags) : NULL;
  if (s == HEDDLE_OK && library == NULL) {
    const char *words = dlerror();
    s = heddle__fail(err, HEDDLE_EABI, "it could not be loaded: %s", words != NULL ? words : "no reason given");
  }
  if (s == HEDDLE_OK) {
    entry_fn enter = NULL;
    void *symbol = dlsym(library, entry);
    memcpy(&enter, &symbol, sizeof enter);
    *table = enter != NULL ? enter(host) : NULL;
    const char *version = *table != NULL ? *(const char *const *)*table : "?";
    if (strcmp(version, heddle_version()) != 0)
      s = heddle__fail(err, HEDDLE_EABI, "it is of version %s, libheddle of %s", version, heddle_version());
  }
  if (s != HEDDLE_OK) heddle__prefix(err, s, "%s: ", path);
  heddle__free(path);
  return s;
}
