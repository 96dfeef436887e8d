/* Which nodes a device wants together: elementwise chains, unless the setting fuse is 0. */
#include "gpu.h"

#include "plugins/common/chain.h"

heddle_status gpu_partition(heddle_pinstance *self, uint32_t index, const heddle_pregion *region,
                            heddle_propose_fn propose, void *sink, heddle_error *err) {
  const heddle_host *host = self->host;
  void *taken = NULL; /* a byte a node: those that were proposed */
  if (index >= self->n_devices)
    return p_fail(err, HEDDLE_ENODEV, 0, "%s:%u: there are %u devices", self->vendor->name, index, self->n_devices);
  if (!self->fuse) return HEDDLE_OK;
  heddle_status s = gpu_new(host, region->nodes.count + 1, "a partition", &taken, err);
  if (s == HEDDLE_OK) s = heddle_chain_propose(host, region, taken, propose, sink, err);
  host->free(host->ctx, taken);
  return s;
}
