/* Which nodes the device wants together, unless the setting fuse is 0: what oneDNN does in one call, and elementwise
 * chains of the rest. */
#include "cpu.h"
#include "onednn_join.h"

#include "plugins/common/chain.h"

heddle_status cpu_partition(heddle_pinstance *self, uint32_t index, const heddle_pregion *region,
                            heddle_propose_fn propose, void *sink, heddle_error *err) {
  const heddle_host *host = self->host;
  void *taken = NULL; /* a byte a node: those that were proposed */
  if (index != 0) return p_fail(err, HEDDLE_ENODEV, 0, "cpu:%u: there is one cpu device, cpu:0", index);
  if (!self->fuse) return HEDDLE_OK;
  heddle_status s = cpu_new(host, region->nodes.count + 1, "a partition", &taken, err);
  if (s == HEDDLE_OK) s = onednn_join_propose(self->onednn, region, taken, propose, sink, err);
  if (s == HEDDLE_OK) s = onednn_propose(self->onednn, region, taken, propose, sink, err);
  if (s == HEDDLE_OK) s = heddle_chain_propose(host, region, taken, propose, sink, err);
  host->free(host->ctx, taken);
  return s;
}
