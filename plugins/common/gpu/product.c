/* The calls of product.h. */
#include "plugins/common/gpu/product.h"

/* Fewer multiplications than this are left to the kernels: a library's call costs more than they take. Sides from which
 * rounding the operands first pays. Both are stated, not measured. */
#define LEAST_WORK (32.0 * 32.0 * 32.0)
enum { LEAST_SIDE = 64, PARTS = 16, LEAST_SCRATCH = 0x10000 };

/* ---------------------------------------------------------------- which products */

/* rows x cols elements, row and col apart. A line of one element has no step of its own. */
static bool set_matrix(int64_t row, int64_t col, int64_t rows, int64_t cols, gpu_matrix *out) {
  const bool side_by_side = col == 1 || (cols == 1 && row != 1);
  if (!side_by_side && row != 1 && rows != 1) return false;
  out->across = !side_by_side;
  out->ld = side_by_side ? row : col;
  const int64_t line = side_by_side ? cols : rows, lines = side_by_side ? rows : cols;
  if (lines == 1 && out->ld < line) out->ld = line;
  return out->ld >= line;
}

/* Batches that lie at equal distances. */
static bool set_batches(const k_matmul *p, gpu_product *out) {
  out->count = 1;
  for (int64_t d = p->batch_dims - 1; d >= 0; d--) {
    if (p->batch_dim[d] == 1) continue;
    if (out->count == 1) {
      out->a.stride = p->batch_a[d];
      out->b.stride = p->batch_b[d];
    } else if (p->batch_a[d] != out->a.stride * out->count || p->batch_b[d] != out->b.stride * out->count) {
      return false;
    }
    out->count *= p->batch_dim[d];
  }
  return true;
}

static gpu_third third_of(const k_step *step) {
  const k_matmul *p = &step->params.matmul;
  if (step->n_args != 4) return GPU_THIRD_NONE;
  const bool rows = p->m == 1 || p->c_row == p->n, columns = p->n == 1 || p->c_col == 1;
  return rows && columns ? GPU_THIRD_WHOLE : GPU_THIRD_SPREAD;
}

bool gpu_product_bias(const gpu_ask *ask, gpu_product *p) {
  const k_matmul *m = &ask->step->params.matmul;
  if (p->third != GPU_THIRD_SPREAD || p->count != 1 || m->c_row != 0 || m->c_col != 1 || p->beta != 1.0F) return false;
  p->third = GPU_THIRD_BIAS;
  p->beta = 0.0F;
  return true;
}

static gpu_rounding rounding_of(const gpu_ask *ask, gpu_rounding can) {
  const k_matmul *p = &ask->step->params.matmul;
  if (!ask->fast || can == GPU_EXACT) return GPU_EXACT;
  const bool large = p->m >= LEAST_SIDE && p->n >= LEAST_SIDE && p->k >= LEAST_SIDE;
  const bool constant = ask->data[0] != NULL || ask->data[1] != NULL;
  return can == GPU_BFLOAT16 && large && constant ? GPU_BFLOAT16 : GPU_LIBRARY_ROUNDS;
}

bool gpu_product_of(const gpu_ask *ask, gpu_rounding can, gpu_product *out) {
  const k_step *step = ask->step;
  const k_matmul *p = &step->params.matmul;
  if (!step->is_product || p->m < 1 || p->n < 1 || p->k < 1) return false;
  *out = (gpu_product){.m = p->m, .n = p->n, .k = p->k, .alpha = p->alpha};
  out->third = third_of(step);
  out->beta = out->third == GPU_THIRD_NONE ? 0.0F : p->beta;
  out->rounding = rounding_of(ask, can);
  return set_matrix(p->a_row, p->a_col, p->m, p->k, &out->a) && set_matrix(p->b_row, p->b_col, p->k, p->n, &out->b) &&
         set_batches(p, out) && (double)p->m * (double)p->n * (double)p->k * (double)out->count >= LEAST_WORK &&
         p->m <= INT32_MAX && p->n <= INT32_MAX && p->k <= INT32_MAX && out->count <= INT32_MAX &&
         out->a.ld <= INT32_MAX && out->b.ld <= INT32_MAX;
}

/* ---------------------------------------------------------------- workspace */

static uint64_t aligned(uint64_t bytes) {
  return (bytes + GPU_WORKSPACE_ALIGN - 1) / GPU_WORKSPACE_ALIGN * GPU_WORKSPACE_ALIGN;
}

/* Of elements in bfloat16, which are written in pairs. */
static uint64_t half_bytes(uint64_t elements) {
  return (elements + 1) / 2 * sizeof(uint32_t);
}

uint64_t gpu_product_scratch(const gpu_product *p, uint64_t most) {
  const double parts = (double)PARTS * (double)sizeof(float) * (double)p->m * (double)p->n * (double)p->count;
  if (parts >= (double)most) return most;
  return parts < (double)LEAST_SCRATCH ? LEAST_SCRATCH : (uint64_t)parts;
}

/* Where what is rounded in a run lies; the end of it all. */
static uint64_t lay_out(const gpu_ask *ask, const gpu_product *p, uint64_t library_bytes, gpu_product_step *step) {
  uint64_t end = aligned(library_bytes);
  for (int i = 0; i < 2; i++) {
    if (p->rounding != GPU_BFLOAT16 || ask->data[i] != NULL) continue;
    if (step != NULL) {
      step->elements[i] = ask->count[i];
      step->at[i] = end;
    }
    end += aligned(half_bytes(ask->count[i]));
  }
  return end;
}

uint64_t gpu_product_workspace(const gpu_ask *ask, const gpu_product *p, uint64_t library_bytes) {
  return lay_out(ask, p, library_bytes, NULL);
}

/* ---------------------------------------------------------------- a step */

heddle_status gpu_product_kernel(heddle_pdevice *dev, const k_code *code, void **out, heddle_error *err) {
  gpu_scope scope;
  void *module = NULL;
  heddle_status s = gpu_program_get(dev, code, NULL, &module, err);
  if (s == HEDDLE_OK) s = gpu_enter(dev, &scope, err);
  if (s != HEDDLE_OK) return s;
  s = gpu_check(dev, gpu_function_get(dev, module, k_kernels[code->kernel].name, out), "find a kernel", err);
  gpu_leave(dev, &scope);
  return s;
}

heddle_status gpu_product_begin(heddle_pdevice *dev, const gpu_ask *ask, const gpu_product *p, uint64_t library_bytes,
                                gpu_product_step *step, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  step->head.dev = dev;
  step->p = *p;
  step->params = ask->step->params.matmul;
  step->n_args = ask->step->n_args;
  step->library_bytes = library_bytes;
  lay_out(ask, p, library_bytes, step);
  const k_code round = {.kernel = KERNEL_round_bfloat, .wide = 1};
  k_code spread = ask->step->code;
  spread.kernel = KERNEL_spread;
  if (p->third == GPU_THIRD_SPREAD) s = gpu_product_kernel(dev, &spread, &step->spread, err);
  if (s == HEDDLE_OK && p->rounding == GPU_BFLOAT16) s = gpu_product_kernel(dev, &round, &step->round, err);
  for (int i = 0; i < 2 && s == HEDDLE_OK; i++) {
    if (p->rounding == GPU_BFLOAT16 && ask->data[i] != NULL)
      s = gpu_weight_get(dev, ask->data[i], ask->count[i], &step->constant[i], err);
  }
  return s;
}

void gpu_product_end(gpu_product_step *step) {
  for (int i = 0; i < 2; i++) {
    gpu_weight_put(step->head.dev, step->constant[i]);
  }
}

/* ---------------------------------------------------------------- running */

heddle_status gpu_product_launch(heddle_pstream *stream, void *kernel, uint64_t groups, void **args, const char *what,
                                 heddle_error *err) {
  heddle_pdevice *dev = stream->dev;
  if (groups > dev->vendor->launch_limit_x)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "%s:%u: %s: %llu work-groups are more than a launch has",
                  dev->vendor->name, dev->index, what, (unsigned long long)groups);
  return gpu_check(dev,
                   dev->driver->launch(kernel, (unsigned)groups, 1, 1, K_GROUP, 1, 1, 0, stream->handle, args, NULL),
                   what, err);
}

static uint64_t groups_of(uint64_t items) {
  return items / K_GROUP + (items % K_GROUP != 0);
}

static heddle_status round_operand(const gpu_product_step *step, heddle_pstream *stream, gpu_address from,
                                   gpu_address to, uint64_t elements, heddle_error *err) {
  k_flat params = {.count = (int64_t)elements};
  void *args[] = {&params, &from, &to};
  return gpu_product_launch(stream, step->round, groups_of((elements + 1) / 2), args, "round an operand to bfloat16",
                            err);
}

heddle_status gpu_product_run(const gpu_product_step *step, heddle_pstream *stream, const gpu_address *operands,
                              gpu_address workspace, gpu_product_operands *out, heddle_error *err) {
  gpu_address sides[2] = {operands[0], operands[1]};
  heddle_status s = HEDDLE_OK;
  out->out = operands[step->n_args - 1];
  out->c = step->p.third == GPU_THIRD_WHOLE ? operands[2] : step->spread != NULL ? out->out : 0;
  if (step->spread != NULL) {
    k_matmul params = step->params;
    gpu_address c = operands[2], to = out->out;
    void *args[] = {&params, &c, &to};
    s = gpu_product_launch(stream, step->spread, groups_of((uint64_t)step->params.count), args, "spread an operand",
                           err);
  }
  for (int i = 0; i < 2 && s == HEDDLE_OK; i++) {
    if (step->constant[i] != 0) {
      sides[i] = step->constant[i];
    } else if (step->elements[i] != 0) {
      sides[i] = workspace + step->at[i];
      s = round_operand(step, stream, operands[i], sides[i], step->elements[i], err);
    }
  }
  out->a = sides[0];
  out->b = sides[1];
  return s;
}
