/* Launches that are resized (op.h): the region is planned again in the launch's own memory, and compared with the op's
 * plan. What was compiled for the bound serves where codes and operands are the same. */
#include <stddef.h>
#include <string.h>

#include "plugins/common/check/offer.h"
#include "plugins/common/kernels/op.h"
#include "plugins/common/perror.h"
#include "plugins/common/region.h"

enum { RESIZED_TABLE = 65536 /* bytes; longer ones take long to make, which a resize must not */ };

bool k_may_resize(const heddle_pregion *region, const k_plan *plan) {
  return (region->flags & HEDDLE_REGION_OPEN) != 0 && !plan->is_fixed && plan->table_bytes <= RESIZED_TABLE;
}

/* ---- memory that is there already */

typedef struct room {
  char *at;
  uint64_t left;
} room;

static void *take(void *ctx, uint64_t bytes, uint64_t align) {
  room *r = ctx;
  const uint64_t whole = (bytes + K_ROOM_ALIGN - 1) / K_ROOM_ALIGN * K_ROOM_ALIGN;
  if (whole < bytes || whole > r->left || align > K_ROOM_ALIGN) return NULL;
  void *memory = r->at;
  r->at += whole;
  r->left -= whole;
  return memory;
}

static void leave(void *ctx, void *memory) {
  (void)ctx, (void)memory;
}

heddle_status k_sized_make(const k_site *site, const k_op *op, k_sized *out, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  for (uint32_t i = 0; i < 2 && s == HEDDLE_OK && op->open; i++)
    s = k_op_memory(site, 1, op->room, &out->rooms[i], err);
  return s;
}

void k_sized_finish(const k_site *site, k_sized *sized) {
  for (uint32_t i = 0; i < 2; i++) site->host->free(site->host->ctx, sized->rooms[i]);
  memset(sized, 0, sizeof *sized);
}

/* ---- the same plan but for sizes */

static bool same_step(const k_step *was, const k_step *is) {
  k_code code = is->code;
  if (was->code.wide) code.wide = 1; /* wide indices serve where narrow ones would do */
  return was->kind == is->kind && was->n_args == is->n_args &&
         memcmp(was->args, is->args, was->n_args * sizeof *was->args) == 0 &&
         k_code_same(&was->code, was->chain, &code, is->chain) && was->params_bytes == is->params_bytes &&
         was->is_product == is->is_product && was->is_conv == is->is_conv && was->param_ints == is->param_ints;
}

static bool same_plan(const k_op *op, const k_op *next) {
  const k_plan *was = &op->plan, *is = &next->plan;
  bool same = was->n_steps == is->n_steps && was->table_bytes == is->table_bytes && !is->is_fixed;
  if (same && was->table != NULL) same = memcmp(was->table, is->table, (size_t)was->table_bytes) == 0;
  for (uint32_t i = 0; i < was->n_steps && same; i++) same = same_step(&was->steps[i], &is->steps[i]);
  same = same && offer_has_all(is->pairs, is->n_pairs, was->pairs, was->n_pairs, OFFER_IN_PLACE) &&
         offer_has_all(is->extends, is->n_extends, was->extends, was->n_extends, OFFER_EXTENDS);
  for (uint32_t i = 0; i < op->n_inputs && same; i++) same = was->input_flags[i] == is->input_flags[i];
  for (uint32_t i = 0; i < K_WORKSPACES && same; i++) same = is->part_bytes[i] <= was->part_bytes[i];
  for (uint32_t i = 0; i < k_op_table(op) && same; i++) same = next->bytes[i] <= op->bytes[i];
  return same;
}

heddle_status k_sized_plan(const k_site *site, const k_op *op, const heddle_pregion *region, k_sized *sized,
                           const k_op **next, heddle_error *err) {
  const uint32_t at = sized->now ^ 1;
  k_op *out = &sized->plans[at];
  if (!op->open || op->plan.is_fixed || region->n_inputs != op->n_inputs || region->n_outputs != op->n_outputs)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "%s:%u: this launch cannot be resized", site->name, site->index);
  room r = {sized->rooms[at], op->room};
  const heddle_host host = {.struct_size = sizeof host, .ctx = &r, .alloc = take, .free = leave};
  *out = (k_op){.n_inputs = op->n_inputs, .n_outputs = op->n_outputs};
  const heddle_status s = k_op_fill(site, &host, region, &op->plan, out, err);
  out->plan.host = NULL; /* nothing of it is freed */
  if (s != HEDDLE_OK || !same_plan(op, out))
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "%s:%u: these shapes are computed in another way than their bound",
                  site->name, site->index);
  memcpy(out->plan.part_bytes, op->plan.part_bytes, sizeof op->plan.part_bytes);
  memcpy(out->bytes + k_op_table(op) + 1, op->bytes + k_op_table(op) + 1, K_WORKSPACES * sizeof *op->bytes);
  *next = out;
  return HEDDLE_OK;
}
