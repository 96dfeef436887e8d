/* The programs of an accelerator's device: what each is built of, and the list of those that are built, which is the same for
 * all whose compilers read text. A driver adds how one is built and released. */
#ifndef HEDDLE_PLUGINS_COMMON_KERNELS_PROGRAM_H
#define HEDDLE_PLUGINS_COMMON_KERNELS_PROGRAM_H

#include <pthread.h>

#include "plugins/common/kernels/op.h"

/* A program that is built; the driver's struct begins with it. */
typedef struct k_program {
  struct k_program *next;
  k_code code;
  const struct heddle_chain *chain; /* its own; NULL: none */
} k_program;

/* What a program is built of, in this order: prelude, params, the kernel's text, and what belongs to its chain. The macros
 * (k_code_text) are the driver's to set. what: for messages. */
enum { K_PARTS = 4 };
typedef struct k_source {
  const k_code *code;
  const char *parts[K_PARTS];
  size_t lengths[K_PARTS];
  char what[K_CODE_TEXT + 128];
} k_source;

/* Builds a program into out, of the driver's own size and zeroed but for code and chain. Called with the lock held. */
typedef heddle_status (*k_build)(void *dev, const k_source *source, k_program *out, heddle_error *err);

/* Of a device. bytes: of the driver's struct. list: what was built, guarded by the lock. */
typedef struct k_programs {
  k_site site; /* host, name and index */
  pthread_mutex_t *lock;
  k_program **list;
  size_t bytes;
  k_build build;
  void *dev;
} k_programs;

/* The program of a code with its chain (NULL: none), built at its first use. It stays in the list, from which the driver takes
 * it when the device is closed, and frees it with host->free. Any thread. */
heddle_status k_program_get(const k_programs *of, const k_code *code, const struct heddle_chain *chain, k_program **out,
                            heddle_error *err);

#endif
