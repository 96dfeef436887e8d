/* op.run leaves a signal of the calling thread blocked.
 * caught by: process/calls
 * says: op.run changed the mask of signals */
#include "base.h"

#include <signal.h>

static heddle_status run(heddle_plaunch *launch, heddle_error *err) {
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &one, NULL);
  return base_op_run(launch, err);
}

#define base_op_run run
#include "tables.h"
