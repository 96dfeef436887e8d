/* Ensembles of decision trees, of domain "heddle": operands X, roots, nodes, splits, targets, weights and members. A row of
 * nodes is: feature, rule, the node where it holds, the node where it does not, first, last. Of a leaf, [first, last) are
 * its targets and weights; of MEMBER the numbers that X may equal. Nothing of these operands is trusted: what is out of
 * range ends the walk through its tree, and no walk is longer than there are nodes. */
#include "more.h"

#include <math.h>

enum { X, ROOTS, NODES, SPLITS, TARGETS, WEIGHTS, MEMBERS };
enum { FEATURE, RULE, YES, NO, FIRST, LAST, COLUMNS };
enum { LEQ, LT, GTE, GT, EQ, NEQ, MEMBER, LEAF, MISSING = 256 /* NaN goes where the rule holds */ };
enum { AVERAGE, SUM, MIN, MAX };
enum { ROWS, FEATURES, TREES, COUNT, LEAVES, HOW, WIDE, N_MEMBERS, BLOCK };

/* What a part of the kernel reads. */
typedef struct forest {
  const more_op *m;
  const more_args *a;
  const int32_t *nodes;
  int64_t count, features;
} forest;

static bool is_member(const forest *f, const int32_t *node, double x) {
  const int64_t all = f->m->i[N_MEMBERS];
  for (int64_t k = node[FIRST] > 0 ? node[FIRST] : 0; k < node[LAST] && k < all; k++)
    if (more_get(&f->m->in[MEMBERS], f->a->in[MEMBERS], k) == x) return true;
  return false;
}

static bool holds(const forest *f, const int32_t *node, double x, double split) {
  switch (node[RULE] & 0xff) {
  case LEQ: return x <= split;
  case LT: return x < split;
  case GTE: return x >= split;
  case GT: return x > split;
  case EQ: return x == split;
  case NEQ: return x != split;
  default: return is_member(f, node, x);
  }
}

/* The leaf of a row in a tree; NULL: there is none. */
static const int32_t *leaf_of(const forest *f, int64_t row, int64_t at) {
  const more_value *x = &f->m->in[X], *s = &f->m->in[SPLITS];
  for (int64_t steps = 0; steps <= f->count; steps++) {
    if (at < 0 || at >= f->count) return NULL;
    const int32_t *node = f->nodes + at * COLUMNS;
    if ((node[RULE] & 0xff) == LEAF) return node;
    if (node[FEATURE] < 0 || node[FEATURE] >= f->features) return NULL;
    const double value = more_get(x, f->a->in[X], row * f->features + node[FEATURE]);
    const double split = more_get(s, f->a->in[SPLITS], at);
    const bool yes = holds(f, node, value, split) || ((node[RULE] & MISSING) != 0 && isnan(value));
    at = node[yes ? YES : NO];
  }
  return NULL;
}

/* The same of float32, where most time goes. */
static const int32_t *leaf_of_f32(const forest *f, int64_t row, int64_t at) {
  const float *x = (const float *)f->a->in[X] + row * f->features, *splits = f->a->in[SPLITS];
  for (int64_t steps = 0; steps <= f->count; steps++) {
    if (at < 0 || at >= f->count) return NULL;
    const int32_t *node = f->nodes + at * COLUMNS;
    const int32_t rule = node[RULE];
    if ((rule & 0xff) == LEAF) return node;
    if (node[FEATURE] < 0 || node[FEATURE] >= f->features) return NULL;
    const float value = x[node[FEATURE]], split = splits[at];
    bool yes = (rule & 0xff) == LEQ ? value <= split : holds(f, node, (double)value, (double)split);
    if ((rule & MISSING) != 0 && isnan(value)) yes = true;
    at = node[yes ? YES : NO];
  }
  return NULL;
}

static void add_leaf(const forest *f, const int32_t *leaf, void *out, int64_t at, uint8_t *has) {
  const more_op *m = f->m;
  const more_value *y = &m->out[0];
  for (int64_t k = leaf[FIRST] > 0 ? leaf[FIRST] : 0; k < leaf[LAST] && k < m->i[LEAVES]; k++) {
    const int64_t target = more_get_int(&m->in[TARGETS], f->a->in[TARGETS], k);
    if (target < 0 || target >= m->i[WIDE]) continue;
    const double w = more_get(&m->in[WEIGHTS], f->a->in[WEIGHTS], k), old = more_get(y, out, at + target);
    double sum = old + w;
    if (m->i[HOW] == MIN) sum = has[target] != 0 && old <= w ? old : w;
    if (m->i[HOW] == MAX) sum = has[target] != 0 && old >= w ? old : w;
    has[target] = 1;
    more_put(y, out, at + target, sum);
  }
}

/* The first of the greatest scores, of those targets that have one. */
static int64_t best_of(const more_value *y, const void *out, int64_t at, int64_t n, const uint8_t *has) {
  int64_t best = 0;
  bool found = false;
  for (int64_t k = 0; k < n; k++) {
    if (has[k] == 0 || (found && more_get(y, out, at + k) <= more_get(y, out, at + best))) continue;
    best = k;
    found = true;
  }
  return best;
}

/* Rows [row, end), tree by tree, so that the nodes of one stay near; each row's sums come in the order of the trees. */
static bool run_rows(const forest *f, int64_t row, int64_t end, int64_t *work) {
  const more_op *m = f->m;
  const more_value *y = &m->out[0];
  const int64_t wide = m->i[WIDE], trees = m->i[TREES];
  const bool is_fast = m->in[X].type == REF_TYPE_F32;
  uint8_t *has = f->a->scratch;
  void *out = f->a->out[0];
  memset(has, 0, (size_t)((end - row) * wide));
  for (int64_t k = row * wide; k < end * wide; k++) more_put(y, out, k, 0);
  for (int64_t t = 0; t < trees; t++) {
    const int64_t root = more_get_int(&m->in[ROOTS], f->a->in[ROOTS], t);
    for (int64_t r = row; r < end; r++) {
      const int32_t *leaf = is_fast ? leaf_of_f32(f, r, root) : leaf_of(f, r, root);
      if (leaf != NULL) add_leaf(f, leaf, out, r * wide, has + (r - row) * wide);
    }
    if (more_tick(m, work, 64 * (end - row))) return false;
  }
  for (int64_t k = row * wide; m->i[HOW] == AVERAGE && k < end * wide; k++)
    more_put(y, out, k, more_get(y, out, k) / (double)trees);
  for (int64_t r = row; f->a->out[1] != NULL && r < end; r++)
    ((int64_t *)f->a->out[1])[r] = best_of(y, out, r * wide, wide, has + (r - row) * wide);
  return true;
}

static void run_trees(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const forest f = {m, a, a->in[NODES], m->i[COUNT], m->i[FEATURES]};
  int64_t work = 0;
  for (int64_t row = first; row < last; row += m->i[BLOCK])
    if (!run_rows(&f, row, row + m->i[BLOCK] < last ? row + m->i[BLOCK] : last, &work)) return;
}

static void list_of(more_plan *p, uint32_t k, int64_t *count) {
  more_rank(p, k, 1, 1);
  if (more_ok(p)) *count = p->m->in[k].count;
}

/* What would end a walk, where the nodes are known now. */
static void check_nodes(more_plan *p) {
  const int32_t *nodes = p->data[NODES];
  const more_op *m = p->m;
  for (int64_t i = 0; nodes != NULL && more_ok(p) && i < m->i[COUNT]; i++, nodes += COLUMNS) {
    if ((nodes[RULE] & 0xff) == LEAF) continue;
    if (nodes[FEATURE] < 0 || nodes[FEATURE] >= m->i[FEATURES])
      more_refuse(p, "node %lld of its trees tests feature %d, and X has %lld", (long long)i, nodes[FEATURE],
                  (long long)m->i[FEATURES]);
    else if (nodes[YES] < 0 || nodes[YES] >= m->i[COUNT] || nodes[NO] < 0 || nodes[NO] >= m->i[COUNT])
      more_refuse(p, "node %lld of its trees leads to a node that is not there", (long long)i);
  }
}

void more_setup_tree_ensemble(more_plan *p) {
  more_op *m = p->m;
  const more_value *x = &m->in[X], *nodes = &m->in[NODES];
  int64_t leaves = 0;
  more_real(p, X);
  more_rank(p, X, 1, 2);
  list_of(p, ROOTS, &m->i[TREES]);
  list_of(p, SPLITS, &m->i[COUNT]);
  list_of(p, TARGETS, &m->i[LEAVES]);
  list_of(p, WEIGHTS, &leaves);
  if (more_operand(p, MEMBERS)) list_of(p, MEMBERS, &m->i[N_MEMBERS]);
  more_index_type(p, ROOTS);
  more_index_type(p, TARGETS);
  more_same_type(p, X, SPLITS);
  more_same_type(p, X, WEIGHTS);
  more_same_type(p, X, MEMBERS);
  if (nodes->type != REF_TYPE_I32) more_refuse(p, "operand %d must be int32", NODES);
  if (nodes->ndim != 2 || nodes->shape[0] != m->i[COUNT] || nodes->shape[1] != COLUMNS)
    more_refuse(p, "its nodes must be %lld rows of %d numbers", (long long)m->i[COUNT], COLUMNS);
  if (leaves != m->i[LEAVES])
    more_refuse(p, "it has %lld targets and %lld weights", (long long)m->i[LEAVES], (long long)leaves);
  m->i[HOW] = more_choice(p, "aggregate", "SUM", "AVERAGE SUM MIN MAX");
  m->i[WIDE] = more_int(p, "n_targets", 1);
  if (m->i[WIDE] < 1 || m->i[WIDE] > 1 << 24) more_refuse(p, "n_targets is %lld", (long long)m->i[WIDE]);
  if (!more_ok(p)) return;
  m->i[ROWS] = x->ndim == 2 ? x->shape[0] : 1;
  m->i[FEATURES] = x->ndim == 2 ? x->shape[1] : x->count;
  check_nodes(p);
  const int64_t shape[] = {m->i[ROWS], m->i[WIDE]};
  more_result(p, 0, x->type, 2, shape);
  if (m->n_out > 1) more_result(p, 1, REF_TYPE_I64, 1, shape);
  m->i[BLOCK] = m->i[WIDE] <= 4096 ? 64 : 1;
  m->part_scratch = (uint64_t)(m->i[WIDE] * m->i[BLOCK]);
  if (more_ok(p)) more_loop(p, run_trees, m->i[ROWS], (double)m->i[ROWS] * (double)(m->i[TREES] + 1) * 100);
}
