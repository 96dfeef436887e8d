/* The calling thread gets a stack for signals.
 * caught by: process/state
 * and by: process/%
 * says: sigaltstack */
#define _GNU_SOURCE
#include "base.h"

#include <signal.h>

static heddle_status mine_device_open(heddle_pinstance *self, uint32_t index, const heddle_pdevice_options *options,
                                      heddle_pdevice **out, heddle_error *err) {
  static char stack[65536];
  stack_t mine = {.ss_sp = stack, .ss_size = sizeof stack};
  sigaltstack(&mine, NULL);
  return base_device_open(self, index, options, out, err);
}

#define base_device_open mine_device_open
#include "tables.h"
