/* Keeping drivers loaded. The Vulkan loader unloads them with the last instance, and lavapipe's compiler (LLVM) with them:
 * that loses memory each time, and loading it again takes longer than all else that an instance does. */
#define _GNU_SOURCE /* dl_iterate_phdr */
#include "pin.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

enum { MOST_NEW = 128, MOST_NAMES = 16384 };

typedef struct found {
  uint32_t count, since, n;
  size_t used;
  char names[MOST_NAMES]; /* one behind the other, each with its terminator */
} found;

static int count_one(struct dl_phdr_info *info, size_t size, void *arg) {
  (void)info, (void)size;
  ++*(uint32_t *)arg;
  return 0;
}

uint32_t vlk_objects_loaded(void) {
  uint32_t n = 0;
  dl_iterate_phdr(count_one, &n);
  return n;
}

/* Objects stand in the order in which they were loaded. */
static int note_one(struct dl_phdr_info *info, size_t size, void *arg) {
  found *f = arg;
  (void)size;
  if (f->count++ < f->since || info->dlpi_name == NULL || info->dlpi_name[0] != '/') return 0;
  const size_t length = strlen(info->dlpi_name) + 1;
  if (f->n == MOST_NEW || length > sizeof f->names - f->used) return 1;
  memcpy(f->names + f->used, info->dlpi_name, length);
  f->used += length;
  f->n++;
  return 0;
}

void vlk_objects_keep(const heddle_host *host, uint32_t since) {
  found *f = host->alloc(host->ctx, sizeof *f, _Alignof(found));
  if (f == NULL) return;
  f->count = f->n = 0;
  f->since = since;
  f->used = 0;
  dl_iterate_phdr(note_one, f); /* which may not open any itself */
  const char *name = f->names;
  for (uint32_t i = 0; i < f->n; i++, name += strlen(name) + 1) {
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD | RTLD_NODELETE);
    if (library != NULL) dlclose(library); /* the mark stays */
  }
  host->free(host->ctx, f);
}
