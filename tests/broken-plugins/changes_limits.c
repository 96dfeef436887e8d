/* Opening an instance lowers the number of files that the process may open.
 * caught by: process/state
 * and by: process/%
 * says: setrlimit */
#include "base.h"

#include <sys/resource.h>

static heddle_status mine_open_instance(const heddle_host *host, heddle_pinstance **out, heddle_error *err) {
  struct rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = 200;
  setrlimit(RLIMIT_NOFILE, &limit);
  return base_open_instance(host, out, err);
}

#define base_open_instance mine_open_instance
#include "tables.h"
