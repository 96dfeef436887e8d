/* Losses: the kernels of losses.cl. The general reference kernels' setups check the nodes and leave their geometry in the op's
 * numbers; the names here are those of plugins/common/more/norm.c. */
#include "plan_portable.h"

/* ---------------------------------------------------------------- losses */

static heddle_status add_loss(k_node *n, uint8_t kernel, uint8_t type, const k_loss *p, uint64_t items, uint32_t n_args,
                              const uint32_t *args, heddle_error *err) {
  const double lines = (double)p->count / (double)items;
  const k_launch how = {.kernel = kernel,
                        .n_types = 1,
                        .types = {type},
                        .items = items,
                        .limit = 2 * (uint64_t)p->count, /* labels as words */
                        .turns = lines * (p->entropy != 0 ? (double)p->n + 1 : 1)};
  return k_launch_add(n, &how, p, sizeof *p, n_args, args, err);
}

static heddle_status plan_loss(k_node *n, heddle_error *err) {
  enum { CLASSES, INNER, REDUCTION, IGNORES, IGNORED, ENTROPY };
  enum { NONE, MEAN };
  more_op m;
  uint32_t weights = 0;
  uint8_t type = 0;
  heddle_status s = k_more_of(n, &m, err);
  if (s == HEDDLE_OK) s = k_element_of(n, m.in[0].type, &type, err);
  if (s != HEDDLE_OK) return s;
  const int64_t ignored = m.i[IGNORED];
  const k_loss p = {.count = m.in[1].count,
                    .n = m.i[CLASSES],
                    .inner = m.i[INNER],
                    .mode = m.i[REDUCTION] == MEAN,
                    .wide = m.in[1].type == REF_TYPE_I64,
                    .ignores = m.i[IGNORES] && ignored >= INT32_MIN && ignored <= INT32_MAX, /* others are no class */
                    .ignored = m.i[IGNORES] && ignored >= INT32_MIN && ignored <= INT32_MAX ? ignored : 0,
                    .entropy = m.i[ENTROPY]};
  s = k_or_table(n, 2, m.in[0].type, p.n > 0 ? p.n : 1, 1, &weights, err);
  if (s == HEDDLE_OK && m.out[1].here && p.count > 0)
    s = add_loss(n, KERNEL_log_probability, type, &p, (uint64_t)p.count, 2, (uint32_t[]){k_input(n, 0), k_output(n, 1)},
                 err);
  if (s != HEDDLE_OK || (m.i[REDUCTION] == NONE && p.count == 0)) return s;
  const uint32_t args[] = {k_input(n, 0), k_input(n, 1), weights, k_output(n, 0)};
  if (m.i[REDUCTION] == NONE) return add_loss(n, KERNEL_loss_each, type, &p, (uint64_t)p.count, 4, args, err);
  return add_loss(n, KERNEL_loss_all, type, &p, 1, 4, args, err);
}

const k_entry k_losses_table[] = {
    {"NegativeLogLikelihoodLoss", 0, plan_loss},
    {"SoftmaxCrossEntropyLoss", 0, plan_loss},
    {0},
};
