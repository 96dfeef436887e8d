/* control/host.c: the entry of libheddle_control.so, and the functions of libheddle behind one pointer. */
#include <string.h>

#include "control/stages.h"
#include "control/table.h"
#include "core/error.h"

_Atomic(const heddle__control_host *) ctl_host_table;

static const heddle__control_table table = {HEDDLE_VERSION, {ctl_reset, ctl_drive, ctl_drain},
                                            ctl_make,       ctl_free,
                                            ctl_explain,    ctl_start,
                                            ctl_end,        ctl_check,
                                            ctl_result,     ctl_value,
                                            ctl_stats};

__attribute__((visibility("default"))) const void *heddle_control_entry(const void *host);

const void *heddle_control_entry(const void *host) {
  const heddle__control_host *none = NULL;
  atomic_compare_exchange_strong(&ctl_host_table, &none, host);
  return host != NULL ? &table : NULL;
}
