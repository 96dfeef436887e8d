/* Changes the locale.
 * caught by: process/state
 * says: changed the locale */
#include "base.h"

#include <locale.h>

static heddle_status open_instance(const heddle_host *host, heddle_pinstance **out, heddle_error *err) {
  if (setlocale(LC_ALL, "C.UTF-8") == NULL) return p_fail(err, HEDDLE_EIO, 0, "no locale C.UTF-8");
  return base_open_instance(host, out, err);
}

#define base_open_instance open_instance
#include "tables.h"
