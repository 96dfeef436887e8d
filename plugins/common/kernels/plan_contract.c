/* MatMul, Gemm, Conv, ConvTranspose and MaxPool. Their geometry is that of the reference kernels' plans,
 * which check the node; here it is brought into the form of the kernels. */
#include "plan_op.h"

enum {
  SIDE = 8,     /* as in contract.cl: items along each side of a tile */
  COLUMNS = 16, /* as there: results of an item of the kernels thin and direct on host cores */
  FEW_ROWS = 8, /* fewer channels in a group than this: no tiles */
  LONG_SUM = 64 /* of one row, from which a group works on a result together */
};

/* How a product of m x n results is cut into tiles, and the flags for it. */
typedef struct cut {
  int64_t tiles_m, tiles_n;
  uint32_t flags;
} cut;

static int64_t pieces(int64_t n, int64_t size) {
  return n / size + (n % size != 0);
}

static bool is_contract(const k_step *step) {
  const uint32_t kernel = step->code.kernel;
  return kernel == KERNEL_contract || kernel == KERNEL_thin || kernel == KERNEL_thin_down || kernel == KERNEL_direct;
}

/* The flags of a kernel that has no tiles: one program for both of their sizes. */
static uint32_t untiled(const k_plan *plan) {
  return (plan->features & K_HOST_CORES) != 0 ? K_RUNS : 0;
}

/* Large tiles where they are filled, and there are enough of them to keep a device busy. */
static cut cut_tiles(const k_plan *plan, const k_step *like, int64_t m, int64_t n, double batches) {
  const bool on_host = (plan->features & K_HOST_CORES) != 0;
  int64_t each = 8;
  if (m <= 4 * SIDE || n <= 4 * SIDE ||
      (double)pieces(m, 8 * SIDE) * (double)pieces(n, 8 * SIDE) * batches < (on_host ? 8 : 64))
    each = 4;
  if (like != NULL && is_contract(like)) each = (like->code.flags & K_EACH_8) != 0 ? 8 : 4;
  return (cut){pieces(m, each * SIDE), pieces(n, each * SIDE), untiled(plan) | (each == 8 ? K_EACH_8 : 0)};
}

/* ---------------------------------------------------------------- matrix products */

/* A product of the operands in args: A, B and, where there are three, C. */
typedef struct product {
  ref_matmul m;
  uint32_t args[3], n_args;
} product;

static void set_matmul(k_matmul *p, const ref_matmul *m) {
  *p = (k_matmul){.m = m->m,
                  .n = m->n,
                  .k = m->k,
                  .a_row = m->a_row,
                  .a_col = m->a_col,
                  .b_row = m->b_row,
                  .b_col = m->b_col,
                  .c_row = m->c_row,
                  .c_col = m->c_col,
                  .alpha = m->alpha,
                  .beta = m->beta};
  p->batch_dims = m->batch_dims;
  for (int32_t d = 0; d < m->batch_dims; d++) {
    p->batch_dim[d] = m->batch_dim[d];
    p->batch_a[d] = m->batch_a[d];
    p->batch_b[d] = m->batch_b[d];
  }
}

/* A result of one column is that of one row, with A and B in each other's place. */
static void lay_down(product *p) {
  const ref_matmul m = p->m;
  const uint32_t a = p->args[0];
  if (m.n != 1 || m.m == 1) return;
  p->m.m = 1;
  p->m.n = m.m;
  p->m.a_row = m.b_col;
  p->m.a_col = m.b_row;
  p->m.b_row = m.a_col;
  p->m.b_col = m.a_row;
  p->m.c_row = m.c_col;
  p->m.c_col = m.c_row;
  memcpy(p->m.batch_a, m.batch_b, sizeof m.batch_b);
  memcpy(p->m.batch_b, m.batch_a, sizeof m.batch_a);
  p->args[0] = p->args[1];
  p->args[1] = a;
}

static heddle_status add_product(k_node *n, product *p, heddle_error *err) {
  uint64_t results = 0;
  k_step *step = NULL;
  region_value_count(n->ref.out, &results);
  if (results == 0) return HEDDLE_OK;
  const k_step *like = k_like(n);
  const bool is_tiled = like != NULL && like->code.kernel == KERNEL_contract; /* which serves any shape */
  if (!is_tiled) lay_down(p);
  const ref_matmul *m = &p->m;
  if (m->batch_dims > K_DIMS) return ref_refuse(&n->ref, err, "more than %d batch dimensions", K_DIMS);
  const uint64_t batches = results / (uint64_t)m->m / (uint64_t)m->n;
  const bool b_down = m->b_col != 1 && m->b_row == 1, thin_down = b_down && m->k >= LONG_SUM;
  const uint8_t kernel = is_tiled || m->m != 1 || (b_down && !thin_down) ? KERNEL_contract
                         : thin_down                                     ? KERNEL_thin_down
                                                                         : KERNEL_thin;
  cut c = cut_tiles(n->plan, like, m->m, m->n, (double)batches);
  uint64_t groups = (uint64_t)(c.tiles_m * c.tiles_n) * batches;
  if (kernel == KERNEL_thin) {
    c.tiles_n = pieces(m->n, K_GROUP * ((n->plan->features & K_HOST_CORES) != 0 ? COLUMNS : 1));
    groups = (uint64_t)c.tiles_n * batches;
  } else if (kernel == KERNEL_thin_down) {
    groups = results;
  }
  if (kernel != KERNEL_contract) c.flags = untiled(n->plan);
  /* The last tile reaches past the end of its operands. */
  const uint64_t limit = k_limit(n) + (uint64_t)(m->m + m->n + m->k + K_GROUP) * 8 * SIDE;
  heddle_status s = k_kernel_add(n->plan, kernel, groups, limit, &step, err);
  if (s != HEDDLE_OK) return s;
  step->code.flags = c.flags | (p->n_args == 3 ? K_HAS_C : 0) | (m->a_col != 1 && m->a_row == 1 ? K_A_DOWN : 0) |
                     (b_down ? K_B_DOWN : 0);
  set_matmul(&step->params.matmul, m);
  step->params.matmul.tiles_m = c.tiles_m;
  step->params.matmul.tiles_n = c.tiles_n;
  step->params.matmul.count = (int64_t)results;
  step->is_product = true;
  step->params_bytes = sizeof step->params.matmul;
  for (uint32_t k = 0; k < p->n_args; k++) step->args[step->n_args++] = p->args[k];
  step->args[step->n_args++] = k_output(n, 0);
  n->plan->work += (double)results * (double)m->k;
  return HEDDLE_OK;
}

static heddle_status plan_matmul(k_node *n, heddle_error *err) {
  if (!k_is_float32(n)) return k_plan_general(n, err);
  ref_op op = {0};
  heddle_status s = ref_plan_matmul(&n->ref, &op, err);
  if (s != HEDDLE_OK) return s;
  product p = {op.u.matmul, {k_input(n, 0), k_input(n, 1)}, 2};
  return add_product(n, &p, err);
}

static heddle_status plan_gemm(k_node *n, heddle_error *err) {
  if (!k_is_float32(n)) return k_plan_general(n, err);
  ref_op op = {0};
  heddle_status s = ref_plan_gemm(&n->ref, &op, err);
  if (s != HEDDLE_OK) return s;
  product p = {op.u.matmul, {k_input(n, 0), k_input(n, 1)}, 2};
  if (n->ref.in[2] != NULL && p.m.beta != 0.0f) p.args[p.n_args++] = k_input(n, 2);
  return add_product(n, &p, err);
}

/* ---------------------------------------------------------------- windows */

/* The largest place along a line that a window comes to, and the pads before it. */
static uint64_t reach_of(const ref_window *w) {
  uint64_t most = 0;
  for (int d = 0; d < REF_SPATIAL; d++) {
    const uint64_t positions = (uint64_t)(w->out[d] > w->in[d] ? w->out[d] : w->in[d]) + 8 * SIDE;
    const uint64_t here =
        positions * (uint64_t)w->stride[d] + (uint64_t)w->kernel[d] * (uint64_t)w->dilation[d] + (uint64_t)w->pad[d];
    if (here > most) most = here;
  }
  return most;
}

static void set_conv(k_conv *p, const ref_conv *c, bool transposed) {
  const ref_window *w = &c->window;
  *p = (k_conv){.m = c->out_channels, .groups = c->groups, .in_channels = c->in_channels};
  p->taps = w->kernel[0] * w->kernel[1] * w->kernel[2];
  p->k = p->taps * p->in_channels;
  p->n = 1;
  for (int d = 0; d < K_SPATIAL; d++) { /* a ConvTranspose has the window of the Conv that leads back */
    p->in[d] = transposed ? w->out[d] : w->in[d];
    p->out[d] = transposed ? w->in[d] : w->out[d];
    p->window[d] = w->kernel[d];
    p->stride[d] = w->stride[d];
    p->dilation[d] = w->dilation[d];
    p->pad[d] = w->pad[d];
    p->n *= p->out[d];
  }
}

static heddle_status add_conv(k_node *n, const ref_conv *c, bool transposed, heddle_error *err) {
  const bool bias = n->ref.in[2] != NULL;
  const double batches = (double)c->images * (double)c->groups;
  uint64_t results = 0;
  k_step *step = NULL;
  k_conv p;
  region_value_count(n->ref.out, &results);
  if (results == 0) return HEDDLE_OK;
  set_conv(&p, c, transposed);
  cut cut = cut_tiles(n->plan, k_like(n), p.m, p.n, batches);
  p.tiles_m = cut.tiles_m;
  p.tiles_n = cut.tiles_n;
  const bool direct = k_prefers(n, KERNEL_direct, p.m < FEW_ROWS);
  uint64_t groups = (uint64_t)(p.tiles_m * p.tiles_n) * (uint64_t)(c->images * c->groups);
  if (direct) {
    p.tiles_n = pieces(p.out[2], (n->plan->features & K_HOST_CORES) != 0 ? COLUMNS : 1);
    p.count = (int64_t)results / p.out[2] * p.tiles_n;
    groups = k_groups((uint64_t)p.count);
    cut.flags = untiled(n->plan);
  }
  uint64_t limit = k_limit(n) + (uint64_t)(p.m + p.n + p.k + K_GROUP) * 8 * SIDE;
  if (reach_of(&c->window) > limit) limit = reach_of(&c->window);
  heddle_status s = k_kernel_add(n->plan, direct ? KERNEL_direct : KERNEL_contract, groups, limit, &step, err);
  if (s != HEDDLE_OK) return s;
  step->code.flags = K_CONV | cut.flags | (transposed ? K_TRANSPOSED : 0) | (bias ? K_HAS_C : 0);
  step->params.conv = p;
  step->params_bytes = sizeof p;
  step->is_conv = !transposed;
  step->images = c->images;
  step->args[step->n_args++] = k_input(n, 1); /* A: the weights */
  step->args[step->n_args++] = k_input(n, 0);
  if (bias) step->args[step->n_args++] = k_input(n, 2);
  step->args[step->n_args++] = k_output(n, 0);
  n->plan->work += (double)results * (double)p.k;
  return HEDDLE_OK;
}

/* A window of one element in place is a matrix product; its bias goes with rows. */
static bool is_product(const ref_conv *c, bool bias) {
  const ref_window *w = &c->window;
  bool is = c->out_channels >= FEW_ROWS && (c->groups == 1 || !bias);
  for (int d = 0; d < REF_SPATIAL; d++)
    is = is && w->kernel[d] == 1 && w->stride[d] == 1 && w->pad[d] == 0 && w->out[d] == w->in[d];
  return is;
}

static heddle_status plan_conv(k_node *n, heddle_error *err) {
  if (!k_is_float32(n)) return k_plan_general(n, err);
  ref_op op = {0};
  const bool bias = n->ref.in[2] != NULL;
  heddle_status s = ref_plan_conv(&n->ref, &op, err);
  if (s != HEDDLE_OK) return s;
  const ref_conv *c = &op.u.conv;
  if (!is_product(c, bias)) return add_conv(n, c, false, err);
  const ref_window *w = &c->window;
  product p = {.args = {k_input(n, 1), k_input(n, 0)}, .n_args = 2};
  p.m.m = c->out_channels;
  p.m.n = w->out[0] * w->out[1] * w->out[2];
  p.m.k = c->in_channels;
  p.m.a_row = p.m.k;
  p.m.a_col = p.m.b_col = p.m.c_row = 1;
  p.m.b_row = p.m.n;
  p.m.alpha = p.m.beta = 1;
  p.m.batch_dims = 2;
  p.m.batch_dim[0] = c->images;
  p.m.batch_dim[1] = c->groups;
  p.m.batch_a[1] = p.m.m * p.m.k;
  p.m.batch_b[1] = p.m.k * p.m.n;
  p.m.batch_b[0] = c->groups * p.m.batch_b[1];
  if (bias) p.args[p.n_args++] = k_input(n, 2);
  return add_product(n, &p, err);
}

static heddle_status plan_conv_transpose(k_node *n, heddle_error *err) {
  ref_op op = {0};
  heddle_status s = ref_plan_conv_transpose(&n->ref, &op, err);
  return s == HEDDLE_OK ? add_conv(n, &op.u.conv, true, err) : s;
}

const k_entry k_contract_table[] = {
    {"Conv", 0, plan_conv},
    {"ConvTranspose", K_WIDENS, plan_conv_transpose},
    {"Gemm", 0, plan_gemm},
    {"MatMul", 0, plan_matmul},
    {0},
};
