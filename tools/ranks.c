/* tools/ranks.c: libheddle_mpi is opened only where ranks are named, so that the tool needs no MPI. */
#include "ranks.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heddle/mpi.h"

typedef heddle_status (*create_fn)(const void *comm, const heddle_setting *settings, size_t n_settings,
                                   heddle_log_fn log, void *log_user, heddle_context **out, heddle_error *err);

heddle_status ranks_context(const char *devices, const heddle_setting *settings, size_t n, heddle_context **out,
                            heddle_error *err) {
  const char *list = devices != NULL ? devices : getenv("HEDDLE_DEVICES");
  if (list == NULL || strchr(list, '/') == NULL) return heddle_context_create(settings, n, NULL, NULL, out, err);
  void *library = dlopen("libheddle_mpi.so.0", RTLD_NOW | RTLD_GLOBAL); /* global: MPI opens parts of its own */
  create_fn create = NULL;
  if (library != NULL) {
    void *found = dlsym(library, "heddle_context_create_mpi");
    memcpy(&create, &found, sizeof create);
  }
  if (create != NULL) return create(NULL, settings, n, NULL, NULL, out, err);
  const char *why = dlerror();
  snprintf(err->text, sizeof err->text, "the devices '%.200s' name ranks, for which libheddle_mpi is needed: %.400s",
           list, why != NULL ? why : "it lacks its function");
  return err->status = HEDDLE_EUNSUPPORTED;
}
