/* Which nodes the device wants together, unless the setting fuse is 0: what oneDNN does in one call, and elementwise
 * chains of the rest. */
#include "cpu.h"
#include "onednn_join.h"
#include "wide.h"

#include "plugins/common/chain.h"

static heddle_status propose_all(heddle_pinstance *self, const heddle_pregion *region, unsigned char *taken,
                                 heddle_propose_fn propose, void *sink, heddle_error *err) {
  heddle_status s = onednn_join_propose(self->onednn, region, taken, propose, sink, err);
  if (s == HEDDLE_OK) s = onednn_propose(self->onednn, region, taken, propose, sink, err);
  return s == HEDDLE_OK ? heddle_chain_propose(self->host, region, taken, propose, sink, err) : s;
}

/* Nodes that round halves, and are left alone. */
static bool rounds(const heddle_pregion *region, const heddle_pnode *node) {
  heddle_pregion one = *region;
  bool any = false;
  for (uint32_t k = 0; k < node->n_inputs + node->n_outputs && wide_keeps(node); k++) {
    const int32_t at = k < node->n_inputs ? node->inputs[k] : node->outputs[k - node->n_inputs];
    const heddle_pvalue *value = region_value(region, at);
    if (value == NULL) continue;
    one.values = (heddle_parray){value, 1, sizeof *value};
    any = any || wide_has_halves(&one);
  }
  return any;
}

heddle_status cpu_partition(heddle_pinstance *self, uint32_t index, const heddle_pregion *region,
                            heddle_propose_fn propose, void *sink, heddle_error *err) {
  const heddle_host *host = self->host;
  void *memory = NULL; /* a byte a node: those that were proposed */
  wide_region wide;
  if (index != 0) return p_fail(err, HEDDLE_ENODEV, 0, "cpu:%u: there is one cpu device, cpu:0", index);
  if (!self->fuse) return HEDDLE_OK;
  heddle_status s = cpu_new(host, region->nodes.count + 1, "a partition", &memory, err);
  if (s != HEDDLE_OK) return s;
  unsigned char *taken = memory;
  if (self->onednn == NULL || !wide_has_halves(region)) {
    s = propose_all(self, region, taken, propose, sink, err);
  } else {
    for (uint64_t i = 0; i < region->nodes.count; i++) taken[i] = rounds(region, region_node(region, i));
    s = wide_make(host, region, &wide, err);
    if (s == HEDDLE_OK) {
      s = propose_all(self, &wide.region, taken, propose, sink, err);
      wide_free(&wide);
    }
  }
  host->free(host->ctx, memory);
  return s;
}
