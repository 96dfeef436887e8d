/* oneDNN's own threads are OpenMP's, and it is never given more than one: how many a call may use is a number of the
 * calling thread's, which is set before each call of oneDNN and put back behind it, so that the program around Heddle
 * sees none of it. Work for several threads is cut into primitives of one thread each (onednn_parts.c), which run on
 * the core's pool; docs/decisions/cpu.md says why.
 *
 * omp_set_num_threads must be that of the OpenMP run time that libdnnl uses. It is looked up through libdnnl's handle,
 * which finds the one among its dependencies, whatever its maker; linking one here could bring a second into the
 * process, as clang's does. */
#include "onednn_internal.h"

#include <dlfcn.h>

/* POSIX has dlsym give functions as void *, which ISO C cannot cast. */
static bool find(void *library, const char *name, void *function, size_t bytes) {
  void *symbol = dlsym(library, name);
  if (symbol != NULL) memcpy(function, &symbol, bytes);
  return symbol != NULL;
}

heddle_status onednn_threads_init(onednn *self, heddle_error *err) {
  void *library = dlopen("libdnnl.so.3", RTLD_LAZY | RTLD_LOCAL); /* it is loaded: this plugin is linked to it */
  bool found = library != NULL && find(library, "omp_get_max_threads", &self->omp_get, sizeof self->omp_get) &&
               find(library, "omp_set_num_threads", &self->omp_set, sizeof self->omp_set);
  if (library != NULL) dlclose(library);
  if (found) return HEDDLE_OK;
  return p_fail(err, HEDDLE_EFAILED, 0, "cpu: libdnnl.so.3 does not bring an OpenMP run time; cpu.onednn=off works");
}

int onednn_threads_enter(const onednn *self) {
  int before = self->omp_get();
  if (before != 1) self->omp_set(1);
  return before;
}

void onednn_threads_leave(const onednn *self, int before) {
  if (before != 1) self->omp_set(before);
}
