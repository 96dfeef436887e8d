/* There is no fence.signal, on a device that is not inline.
 * caught by: root/caps
 * and by: load/functions fences threads/signals leaks, calls/signal-returns, health/lost%, process/thread_signals, health/close-quiet health/reset
 * says: fence.signal is missing */
#include "base.h"

#define base_fence_signal NULL
#include "tables.h"
