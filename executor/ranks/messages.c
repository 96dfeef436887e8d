/* executor/ranks/messages.c: the acts of all ranks for a model that is cut into stages, proved; and a last comparison: all ranks
 * have made the same ones. */
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/failure.h"
#include "core/sheet.h"
#include "executor/control/stages.h"
#include "executor/ranks/own.h"
#include "plugins/common/fnv.h"

static heddle_status take_stages(heddle_model *m, const heddle__stages *all, const uint32_t *rank_of_stage,
                                 heddle_error *err) {
  heddle__spread *s = m->spread;
  s->stages = heddle__alloc(all->n_list, sizeof *s->stages);
  if (s->stages == NULL) return heddle__no_memory(err, "the stages of ranks");
  for (uint32_t k = 0; k < all->n_list; k++) {
    const ctl_stage *stage = &all->list[k];
    s->stages[k] =
        (heddle__script_stage){rank_of_stage[k], stage->inputs, stage->outputs, stage->n_inputs, stage->n_outputs};
  }
  s->script = (heddle__script){.stages = s->stages,
                               .results = all->results,
                               .n_ranks = s->ranks->comm.size,
                               .n_stages = all->n_list,
                               .n_values = all->n_slots,
                               .n_given = m->graph->n_args,
                               .n_results = all->n_results};
  return HEDDLE_OK;
}

static uint64_t hash_word(uint64_t hash, uint64_t word) {
  for (int i = 0; i < 64; i += 8) {
    const uint8_t byte = (uint8_t)(word >> i);
    hash = fnv1a(hash, &byte, 1);
  }
  return hash;
}

/* All that a run of the model does between ranks. */
static uint64_t hash_of(const heddle__spread *s) {
  uint64_t hash = FNV1A_START;
  const heddle__script *t = &s->script;
  for (uint32_t r = 0; r < t->n_ranks; r++)
    for (uint32_t i = 0; i < t->ranks[r].n; i++) {
      const heddle__act *a = &t->ranks[r].list[i];
      const uint64_t words[] = {r, (uint64_t)a->kind, a->stage, a->peer, a->tag, a->value, a->bytes};
      for (size_t k = 0; k < sizeof words / sizeof words[0]; k++) hash = hash_word(hash, words[k]);
    }
  for (uint32_t i = 0; i < s->n_devices; i++) {
    hash = hash_word(hash, s->devices[i].rank);
    hash = fnv1a(hash, s->devices[i].name, strlen(s->devices[i].name) + 1);
  }
  return hash;
}

static heddle_status compare(heddle__spread *s, heddle_error *err) {
  char *own = heddle__format("%016llx", (unsigned long long)hash_of(s)), **texts = NULL;
  if (own == NULL) return heddle__no_memory(err, "a plan's hash");
  heddle_status status = heddle__ranks_agree(s->ranks, "the plan of a model", own, &texts, err);
  for (uint32_t i = 1; i < s->ranks->comm.size && status == HEDDLE_OK; i++)
    if (strcmp(texts[i], texts[0]) != 0)
      status = heddle__at_rank(heddle__fail(err, HEDDLE_EINVAL,
                                            "rank %u differs from rank 0 in its plan: hash %.40s is not %.40s",
                                            (unsigned)i, texts[i], texts[0]),
                               err, i);
  heddle__free(texts);
  heddle__free(own);
  return status;
}

heddle_status heddle__spread_script(heddle_model *m, const heddle__stages *all, const uint32_t *rank_of_stage,
                                    heddle_error *err) {
  heddle__spread *s = m->spread;
  uint64_t *bytes = heddle__alloc(all->n_slots, sizeof *bytes);
  s->entry_of = heddle__alloc(all->n_slots, sizeof *s->entry_of);
  s->names = heddle__alloc(all->n_slots, sizeof *s->names);
  const bool room = bytes != NULL && s->entry_of != NULL && s->names != NULL;
  heddle_status status = room ? take_stages(m, all, rank_of_stage, err) : heddle__no_memory(err, "messages");
  const heddle_graph *g = m->graph;
  for (uint32_t i = 0; i < g->n_nodes && status == HEDDLE_OK; i++)
    for (uint32_t k = 0; k < g->nodes[i].n_outputs; k++) {
      const uint32_t entry = g->nodes[i].first_entry + k, value = all->slot_of[entry];
      if (value == HEDDLE__NONE) continue;
      bytes[value] = s->types[entry].bytes;
      s->entry_of[value] = entry;
      s->names[value] = g->nodes[i].name;
    }
  if (status == HEDDLE_OK) status = heddle__script_make(&s->script, bytes, err);
  if (status == HEDDLE_OK) status = heddle__script_prove(&s->script, m->in_flight, err);
  if (status == HEDDLE_OK) status = compare(s, err);
  heddle__free(bytes);
  return status;
}
