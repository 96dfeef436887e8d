/* The controls of vulkan_shim.c: a libvulkan that stands before the real one and lies where a test asks it to. */
#ifndef HEDDLE_TESTS_UNIT_VULKAN_SHIM_H
#define HEDDLE_TESTS_UNIT_VULKAN_SHIM_H

#include <stdint.h>

/* All 0: what the real one says. Set before the plugin is entered; lose and hang at any time when nothing is under way. */
typedef struct vulkan_shim {
  const char *loader; /* path of the real libvulkan */
  int32_t families;   /* a family with three queues that compute and one that only copies, all of them the real queue */
  int32_t discrete;   /* a GPU with memory of its own, whose mapped memory is not coherent */
  int32_t no_clock;   /* the device's clock cannot be read by a call */
  int32_t few_buffers; /* a shader has as many as Vulkan promises: 4 */
  int32_t other_type;  /* a first type of memory that looks like the real one, and that buffers may not lie in */
  int32_t old_loader;  /* one of Vulkan 1.1 */
  int32_t portable;    /* it shows drivers of layered implementations where it is asked to; counted: how often it was */
  int32_t asked_portable;
  int32_t late_waits;  /* a wait for semaphores returns so many milliseconds late */
  int32_t lose;        /* the next submission finds the device lost */
  int32_t hang;        /* submissions are taken and never done */
  int32_t submissions; /* counted here: that were handed over, */
  int32_t copy_pools;  /* command pools of the family that only copies, */
  int32_t flushes;     /* flushes and invalidates */
} vulkan_shim;

#endif
