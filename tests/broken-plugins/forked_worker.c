/* A device has a worker that is a forked copy of the host.
 * caught by: process/forked
 * and by: process/%, leaks/%
 * says: forked copy */
#define _GNU_SOURCE
#include "base.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t worker;

static heddle_status mine_device_open(heddle_pinstance *self, uint32_t index, const heddle_pdevice_options *options,
                                      heddle_pdevice **out, heddle_error *err) {
  const heddle_status status = base_device_open(self, index, options, out, err);
  if (status != HEDDLE_OK || worker > 0) return status;
  worker = fork();
  if (worker == 0)
    for (;;) pause();
  return status;
}

static void mine_close_instance(heddle_pinstance *self) {
  if (worker > 0) {
    kill(worker, SIGKILL);
    waitpid(worker, NULL, 0);
    worker = 0;
  }
  base_close_instance(self);
}

#define base_device_open mine_device_open
#define base_close_instance mine_close_instance
#include "tables.h"
