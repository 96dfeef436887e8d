/* Closing an instance collects every child process that has ended.
 * caught by: process/child-kept
 * and by: process/functions, process/children
 * says: waited for */
#define _GNU_SOURCE
#include "base.h"

#include <sys/wait.h>

static void mine_close_instance(heddle_pinstance *self) {
  while (waitpid(-1, NULL, WNOHANG) > 0) continue;
  base_close_instance(self);
}

#define base_close_instance mine_close_instance
#include "tables.h"
