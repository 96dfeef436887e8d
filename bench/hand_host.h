/* bench/hand_host.h: a host of a few lines for programs written by hand on a plugin's table, without libheddle. */
#ifndef BENCH_HAND_HOST_H
#define BENCH_HAND_HOST_H

#include "bench/bench.h"
#include "heddle/plugin.h"

/* A fence of the hand-written host: fence handle i is slot i. Waiting sleeps on one condition variable. */
typedef struct hand_plugin {
  const heddle_plugin *p;
  heddle_pinstance *self;
  heddle_pdevice *dev;
} hand_plugin;

/* Loads a plugin from a folder and opens its first device; ends the program with words when that fails. */
hand_plugin hand_open(const char *folder, const char *name);

/* Blocks until the fence has the value. */
void hand_wait(heddle_pfence fence, uint64_t value);
heddle_pfence hand_fence(void);

/* What a callback does: records the value and wakes. */
void hand_signal(heddle_pfence fence, uint64_t value);

/* An Add of two float tensors of n elements, bound to the slices. */
heddle_plaunch *hand_add(const hand_plugin *h, heddle_pstream *stream, int64_t n, heddle_pslice a, heddle_pslice b,
                         heddle_pslice out);
heddle_pbuffer *hand_alloc(const hand_plugin *h, uint32_t kind, uint64_t bytes);

#endif
