/* Opening an instance starts the alarm of the process.
 * caught by: process/state
 * and by: process/%
 * says: alarm */
#define _GNU_SOURCE
#include "base.h"

#include <sys/time.h>

static heddle_status mine_open_instance(const heddle_host *host, heddle_pinstance **out, heddle_error *err) {
  struct itimerval far = {.it_value = {100000, 0}};
  setitimer(ITIMER_REAL, &far, NULL);
  return base_open_instance(host, out, err);
}

#define base_open_instance mine_open_instance
#include "tables.h"
