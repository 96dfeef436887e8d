/* conformance/proc_self.h: what this process has open and running, by /proc/self. */
#ifndef HEDDLE_CONFORMANCE_PROC_SELF_H
#define HEDDLE_CONFORMANCE_PROC_SELF_H

#include <stdint.h>

/* Open descriptors, without the one that the count itself needs; running threads. */
uint32_t proc_descriptors(void);
uint32_t proc_threads(void);

#endif
