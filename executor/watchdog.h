/* executor/watchdog.h: limits the time that a device's work may take (setting watchdog_ms): a device whose work exceeds it
 * is lost, like one that its driver reports. */
#ifndef HEDDLE_EXECUTOR_WATCHDOG_H
#define HEDDLE_EXECUTOR_WATCHDOG_H

#include "executor/bind.h"

/* Looks at the work of a run, by its driver, before it sleeps until *until_ns, which is brought forward to when the next
 * limit ends. HEDDLE_EDEVICE: a limit is exceeded; its device has the fault now, b->culprit is it, and err names the node.
 * The time of work that waits for an event of other work does not count. */
heddle_status heddle__watchdog_look(heddle__bound *b, uint64_t now_ns, uint64_t *until_ns, heddle_error *err);

/* The operator on a line that runs, or is about to: the first one behind what has ended. HEDDLE__NONE: there is none. */
uint32_t heddle__watchdog_suspect(const heddle__bound *b, const heddle__line *l);

#endif
