/* What the two files about libraries share (library.c, library_open.c): settings, and what is open. */
#ifndef HEDDLE_PLUGINS_COMMON_GPU_LIBRARY_STATE_H
#define HEDDLE_PLUGINS_COMMON_GPU_LIBRARY_STATE_H

#include "plugins/common/gpu/library.h"

enum { GPU_LIBRARY_PATH_BYTES = 1024 };

/* A library: what its setting says, and its table of calls once it is open. */
typedef struct gpu_opened {
  char path[GPU_LIBRARY_PATH_BYTES]; /* of the setting; empty: look by names */
  bool off;
  bool absent; /* no file of it is installed: known before it is opened */
  void *calls; /* NULL: it is not open */
} gpu_opened;

struct gpu_libraries {
  pthread_mutex_t lock; /* guards tried, calls, and the states of devices; libraries are called with it held */
  bool tried;
  gpu_opened each[GPU_LIBRARIES];
};

static inline const gpu_library *gpu_library_at(const heddle_pinstance *self, int i) {
  return i >= GPU_LIBRARIES || self->vendor->library == NULL ? NULL : self->vendor->library->list[i];
}

/* A line in the log. */
P_PRINTF(3, 4)
void gpu_library_say(const heddle_pinstance *self, int32_t level, const char *format, ...);

/* Opens those that are there; insist: that one is missing is an error. With the lock of gpu_libraries, or before any other
 * thread has the instance. */
heddle_status gpu_library_open_all(heddle_pinstance *self, bool insist, heddle_error *err);

#endif
