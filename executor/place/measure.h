/* executor/place/measure.h: how long a region takes on a device, by running it there. */
#ifndef HEDDLE_EXECUTOR_PLACE_MEASURE_H
#define HEDDLE_EXECUTOR_PLACE_MEASURE_H

#include "executor/place/costs.h"

/* Prepares the region as the device's first offer has it, binds it to memory of its own, filled with plausible values, and
 * runs it in batches: by the device's clock where it has one, else by the host's, less what an empty wait takes. The time is
 * a median, its margin half of the interval in which the median lies with some 95 %. dev is open. most_ns: it should take no
 * longer than about that. HEDDLE_EDEVICE: the device is lost, and knows it. Other failures concern the region. Blocks. */
heddle_status heddle__measure(heddle_device *dev, const heddle__answer *answer, uint64_t most_ns, heddle__time *out,
                              heddle_error *err);

#endif
