/* What the kernel and the C library keep for the process and for the calling thread, beside what process_state.c compares:
 * processors, priority, timers, names, groups, standard descriptors. */
#ifndef HEDDLE_CONFORMANCE_PROCESS_KERNEL_H
#define HEDDLE_CONFORMANCE_PROCESS_KERNEL_H

#include <stdbool.h>

typedef struct process_kernel process_kernel;

/* NULL where memory is out. free(). */
process_kernel *process_kernel_take(void);
/* What is another than in a, NULL: nothing. */
const char *process_kernel_differs(const process_kernel *a);

/* For elf_symbols, with a process_changer as sink: found where a file wants a function of libc's by which what is changed. */
typedef struct process_changer {
  const char *what; /* as process_kernel_differs gave it */
  bool found;
} process_changer;
bool process_kernel_changer(void *sink, const char *name, bool defined);

#endif
