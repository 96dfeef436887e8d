/* There is no fence.signal, on a device that is not inline.
 * caught by: ?
 * says: ? */
#include "base.h"

#define base_fence_signal NULL
#include "tables.h"
