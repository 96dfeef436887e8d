/* Steps that a library of the vendor's does in place of a kernel of ours: matrix products (cuBLASLt, rocBLAS) and
 * convolutions (cuDNN). The libraries are opened where they are installed; what none takes the kernels do. The calls
 * gpu_library_* are for the instance, devices and operators; the rest is between library.c and the libraries. */
#ifndef HEDDLE_PLUGINS_COMMON_GPU_LIBRARY_H
#define HEDDLE_PLUGINS_COMMON_GPU_LIBRARY_H

#include "plugins/common/gpu/gpu.h"

typedef struct gpu_library gpu_library;

enum { GPU_LIBRARIES = 3 }; /* of a vendor, at most */

/* The libraries of a vendor; NULL after the last. Of several that take a step the first has it. */
typedef struct gpu_library_vendor {
  const gpu_library *list[GPU_LIBRARIES];
} gpu_library_vendor;

/* One step made ready. Immutable but for what a library guards itself. A library's own step begins with it. */
typedef struct gpu_library_step {
  heddle_pdevice *dev;
  const gpu_library *library;
  void *state; /* what the library has on this device */
} gpu_library_step;

extern const gpu_library gpu_tensor_cores; /* tensor.c: a kernel of ours, for the end of a list */

/* ---------------------------------------------------------------- for the instance and devices (library.c) */

/* Reads the settings of the vendor's libraries: "libraries" is 0, 1 or auto, and each library has one by its name, which
 * is a path, or off. Opens them only with libraries = 1, which insists on all (HEDDLE_ENODEV with a message); else they
 * are opened when the first step is asked about. auto, with a driver of the user's own (setting "driver"), leaves out
 * those that have no path: they would not fit it. Does nothing where the vendor has none. */
heddle_status gpu_library_open(heddle_pinstance *self, heddle_error *err);

/* Which libraries there are, for a device's description: ", cuBLASLt, no cuDNN"; those that are switched off are left out.
 * What is missing is a warning in the log too. The same text for as long as the instance lives, unless a file that is there
 * turns out to be of no use. */
void gpu_library_words(const heddle_pinstance *self, char *buf, size_t bytes);
void gpu_library_close(heddle_pinstance *self);     /* libraries stay loaded: they leave threads behind */
void gpu_library_device_close(heddle_pdevice *dev); /* after the last step is freed; inside gpu_enter */

/* ---------------------------------------------------------------- for operators */

/* Scratch memory on the device that a library may want for a step: for heddle_poffer.workspace_bytes, of which an operator
 * needs the most that any of its steps wants, at a multiple of GPU_WORKSPACE_ALIGN. 0 where no library takes it. The same
 * answer each time. Any thread; the first call may load libraries. */
enum { GPU_WORKSPACE_ALIGN = 256 };
uint64_t gpu_library_workspace(heddle_pinstance *self, uint32_t index, const heddle_pregion *region,
                               const k_step *step);

/* Makes a step of a region's plan ready, or sets *out to NULL where the kernels do it. Chooses the algorithm, compiles what
 * goes with it, and says in the log who does the step. Not inside gpu_enter. Any thread. */
heddle_status gpu_library_prepare(heddle_pdevice *dev, const heddle_pregion *region, const k_step *step,
                                  gpu_library_step **out, heddle_error *err);
void gpu_library_free(gpu_library_step *step); /* NULL too; not inside gpu_enter */

/* Puts it into a stream, operands in the order of the step's args; workspace: as many bytes as gpu_library_workspace said.
 * Takes no lock but a library's own, for as long as it takes to enqueue. Inside gpu_stream_enter; may be recorded by a
 * capture. HEDDLE_EFAILED with the library's words, or what gpu_check makes of a code of the driver's. */
heddle_status gpu_library_run(gpu_library_step *step, heddle_pstream *stream, const gpu_address *operands,
                              gpu_address workspace, heddle_error *err);

/* ---------------------------------------------------------------- what a library is */

/* A function of a library: its name, where its address goes, and whether it can do without. */
typedef struct gpu_symbol {
  const char *name;
  size_t at; /* of the member in the table of calls */
  bool may;
} gpu_symbol;

/* What is asked for. Of each argument that is an input, count: its elements; data: the host's bytes of a constant, else
 * NULL. */
typedef struct gpu_ask {
  const k_step *step;
  const float *data[K_ARGS];
  uint64_t count[K_ARGS];
  bool fast; /* the region allows reduced precision */
} gpu_ask;

/* Static and const. State is what a library has on a device: its handle. */
struct gpu_library {
  const char *name;         /* "cuBLASLt" */
  const char *what;         /* "matrix products" */
  const char *setting;      /* "cublaslt": a path, or off */
  const char *const *files; /* names to dlopen, best first; NULL ends. NULL: it needs none, and is always there */
  const gpu_symbol *symbols;
  uint32_t n_symbols;
  uint64_t calls_bytes; /* of its table of calls */
  void (*version)(const void *calls, char *buf, size_t bytes);
  int (*made_for)(const void *calls); /* the driver's major version that it needs, 0: not known; NULL: it needs none */

  /* Can it do such a step, before a device is open? Pure. workspace: at most so many bytes. */
  bool (*takes)(const gpu_info *info, const gpu_ask *ask, uint64_t *workspace);

  heddle_status (*device_open)(heddle_pdevice *dev, const void *calls, void **state, heddle_error *err);
  void (*device_close)(heddle_pdevice *dev, void *state);

  /* A step that it takes; *out NULL, with the reason as a message, where the library then refuses. The members of the
   * step's head are filled by the caller. Not inside gpu_enter; free is. */
  heddle_status (*prepare)(heddle_pdevice *dev, void *state, const gpu_ask *ask, gpu_library_step **out, char *why,
                           size_t bytes, heddle_error *err);
  void (*free)(gpu_library_step *step);

  /* The step goes on with the next best algorithm, after one that failed, and says again how in why; false: there is none.
   * NULL: there never is. Inside gpu_enter, before any run but those that failed. */
  bool (*next)(gpu_library_step *step, char *why, size_t bytes);
  heddle_status (*run)(gpu_library_step *step, heddle_pstream *stream, const gpu_address *operands,
                       gpu_address workspace, heddle_error *err);
};

#endif
