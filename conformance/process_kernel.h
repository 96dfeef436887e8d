/* What the kernel and the C library keep for the process and for the calling thread, beside what process_state.c compares:
 * processors, priority, timers, names, groups, standard descriptors. */
#ifndef HEDDLE_CONFORMANCE_PROCESS_KERNEL_H
#define HEDDLE_CONFORMANCE_PROCESS_KERNEL_H

typedef struct process_kernel process_kernel;

/* NULL where memory is out. free(). */
process_kernel *process_kernel_take(void);
/* What is another than in a, NULL: nothing. */
const char *process_kernel_differs(const process_kernel *a);

#endif
