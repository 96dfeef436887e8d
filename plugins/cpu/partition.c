/* Proposals: which nodes of a graph this plugin wants as one region. The setting cpu.fuse switches them off. */
#include "cpu.h"
#include "onednn.h"

heddle_status cpu_partition_open(heddle_pinstance *self, heddle_error *err) {
  char word[16] = "1";
  if (self->host->config(self->host->ctx, "fuse", word, sizeof word) < 0) word[0] = '1', word[1] = '\0';
  if (strcmp(word, "0") != 0 && strcmp(word, "1") != 0)
    return p_fail(err, HEDDLE_EINVAL, 0, "the setting cpu.fuse is 0 or 1, not '%s'", word);
  self->fuse = word[0] == '1';
  return HEDDLE_OK;
}

heddle_status cpu_partition(heddle_pinstance *self, uint32_t index, const heddle_pregion *region,
                            heddle_propose_fn propose, void *sink, heddle_error *err) {
  const heddle_host *host = self->host;
  void *taken = NULL;
  if (index != 0) return p_fail(err, HEDDLE_ENODEV, 0, "cpu:%u: there is one cpu device, cpu:0", index);
  if (!self->fuse || region->nodes.count == 0) return HEDDLE_OK;
  heddle_status s = cpu_new(host, region->nodes.count, "a partition", &taken, err);
  if (s == HEDDLE_OK) s = onednn_propose(self->onednn, region, taken, propose, sink, err);
  host->free(host->ctx, taken);
  return s;
}
