/* Matrix products by cuBLASLt: descriptors and the algorithm are made once, in prepare; a run is one call. Its matrices lie
 * by columns, so ours are the transposed ones, and the product is B' x A' = (A x B)'. A handle has no state of a stream, and
 * serves all threads. */
#include "cublaslt_api.h"
#include "libraries.h"

#include "plugins/common/gpu/product.h"

/* Scratch memory that NVIDIA recommends: 32 MiB from Hopper on, 4 MiB before. */
#define WORKSPACE UINT64_C(0x400000)
#define WORKSPACE_HOPPER UINT64_C(0x2000000)
enum { HOPPER = 9, MOST_FOUND = 4 /* algorithms that are tried */ };

typedef struct lt_state {
  const lt_calls *calls;
  void *handle;
  pthread_mutex_t lock; /* guards the bias of descriptors until a call has read it */
} lt_state;

/* The names are cuBLASLt's: its A is our B. */
typedef struct lt_step {
  gpu_product_step product;
  void *desc, *a, *b, *c, *d;
  lt_result found[MOST_FOUND]; /* best first */
  int n_found, at;
} lt_step;

static void version(const void *calls, char *buf, size_t bytes) {
  const size_t number = ((const lt_calls *)calls)->version();
  /* 13.0.2 is 130002, 11.4.3 is 110403. */
  snprintf(buf, bytes, "%zu.%zu.%zu", number / 10000, number / 100 % 100, number % 100);
}

static uint64_t most_workspace(const gpu_info *info, const gpu_product *p) {
  return gpu_product_scratch(p, info->major >= HOPPER ? WORKSPACE_HOPPER : WORKSPACE);
}

static gpu_rounding can_round(const gpu_info *info) {
  return info->major >= CUDA_WIDE_TENSOR_CORES ? GPU_BFLOAT16 : GPU_EXACT;
}

static bool takes(const gpu_info *info, const gpu_ask *ask, uint64_t *workspace) {
  gpu_product p;
  if (!gpu_product_of(ask, can_round(info), &p)) return false;
  *workspace = gpu_product_workspace(ask, &p, most_workspace(info, &p));
  return true;
}

/* 13.0.2 is of CUDA 13. */
static int made_for(const void *calls) {
  return (int)(((const lt_calls *)calls)->version() / 10000);
}

/* ---------------------------------------------------------------- devices */

static heddle_status device_open(heddle_pdevice *dev, const void *calls, void **out, heddle_error *err) {
  const lt_calls *lt = calls;
  void *memory = NULL;
  heddle_status s = gpu_new(dev->host, sizeof(lt_state), "cuBLASLt", &memory, err);
  if (s != HEDDLE_OK) return s;
  lt_state *state = memory;
  state->calls = lt;
  const int status = lt->create(&state->handle);
  if (status == 0) {
    pthread_mutex_init(&state->lock, NULL);
    *out = state;
    return HEDDLE_OK;
  }
  dev->host->free(dev->host->ctx, state);
  return p_fail(err, HEDDLE_EFAILED, status, "cublasLtCreate: %s (%d)", lt->words(status), status);
}

static void device_close(heddle_pdevice *dev, void *memory) {
  lt_state *state = memory;
  state->calls->destroy(state->handle);
  pthread_mutex_destroy(&state->lock);
  dev->host->free(dev->host->ctx, state);
}

/* ---------------------------------------------------------------- prepare */

/* A matrix as it lies: lines of line elements. */
static int make_layout(const lt_calls *lt, void **out, int type, int64_t line, int64_t lines, int64_t ld, int64_t count,
                       int64_t stride) {
  const int32_t batches = (int32_t)count;
  int status = lt->layout_create(out, type, (uint64_t)line, (uint64_t)lines, ld);
  if (status != 0) *out = NULL;
  if (status == 0) status = lt->layout_set(*out, LT_LAYOUT_BATCH_COUNT, &batches, sizeof batches);
  if (status == 0) status = lt->layout_set(*out, LT_LAYOUT_BATCH_OFFSET, &stride, sizeof stride);
  return status;
}

static int make_side(const lt_calls *lt, void **out, int type, const gpu_matrix *m, int64_t rows, int64_t cols,
                     int64_t count) {
  return make_layout(lt, out, type, m->across ? rows : cols, m->across ? cols : rows, m->ld, count, m->stride);
}

static int make_all(const lt_calls *lt, lt_step *step) {
  const gpu_product *p = &step->product.p;
  const int type = p->rounding == GPU_BFLOAT16 ? LT_R_16BF : LT_R_32F;
  const int compute = p->rounding == GPU_LIBRARY_ROUNDS ? LT_COMPUTE_32F_FAST_TF32 : LT_COMPUTE_32F;
  const uint32_t epilogue = LT_EPILOGUE_BIAS;
  const void *const somewhere = gpu_pointer(256); /* the heuristics look at its alignment; a run sets the real one */
  const int32_t trans_a = p->b.across ? LT_OP_T : LT_OP_N, trans_b = p->a.across ? LT_OP_T : LT_OP_N;
  int status = lt->desc_create(&step->desc, compute, LT_R_32F);
  if (status != 0) step->desc = NULL;
  if (status == 0) status = lt->desc_set(step->desc, LT_DESC_TRANSA, &trans_a, sizeof trans_a);
  if (status == 0) status = lt->desc_set(step->desc, LT_DESC_TRANSB, &trans_b, sizeof trans_b);
  if (status == 0 && p->third == GPU_THIRD_BIAS)
    status = lt->desc_set(step->desc, LT_DESC_EPILOGUE, &epilogue, sizeof epilogue);
  if (status == 0 && p->third == GPU_THIRD_BIAS)
    status = lt->desc_set(step->desc, LT_DESC_BIAS_POINTER, &somewhere, sizeof somewhere);
  if (status == 0) status = make_side(lt, &step->a, type, &p->b, p->k, p->n, p->count);
  if (status == 0) status = make_side(lt, &step->b, type, &p->a, p->m, p->k, p->count);
  if (status == 0) status = make_layout(lt, &step->d, LT_R_32F, p->n, p->m, p->n, p->count, p->m * p->n);
  if (status == 0)
    status =
        make_layout(lt, &step->c, LT_R_32F, p->n, p->m, p->n, p->count, p->third == GPU_THIRD_WHOLE ? 0 : p->m * p->n);
  return status;
}

/* Moves on to the first algorithm from at on that is promised to work. */
static bool settle(lt_step *step) {
  while (step->at < step->n_found && step->found[step->at].state != 0) step->at++;
  return step->at < step->n_found;
}

static bool next(gpu_library_step *head, char *why, size_t bytes) {
  (void)why, (void)bytes; /* it has no names for them */
  lt_step *step = (lt_step *)head;
  step->at++;
  return settle(step);
}

static int choose(const heddle_pdevice *dev, const lt_state *state, lt_step *step, bool *found) {
  static const int sides[] = {LT_PREF_ALIGN_A, LT_PREF_ALIGN_B, LT_PREF_ALIGN_C, LT_PREF_ALIGN_D};
  const lt_calls *lt = state->calls;
  const uint32_t alignment = dev->info->alignment < 256 ? (uint32_t)dev->info->alignment : 256;
  const uint64_t most = step->product.library_bytes;
  void *pref = NULL;
  *found = false;
  int status = lt->pref_create(&pref);
  if (status != 0) return status;
  status = lt->pref_set(pref, LT_PREF_MAX_WORKSPACE, &most, sizeof most);
  for (int i = 0; i < 4 && status == 0; i++) status = lt->pref_set(pref, sides[i], &alignment, sizeof alignment);
  if (status == 0)
    status = lt->choose(state->handle, step->desc, step->a, step->b, step->c, step->d, pref, MOST_FOUND, step->found,
                        &step->n_found);
  if (status == 0) {
    *found = settle(step);
    if (!*found && step->n_found > 0) status = step->found[0].state;
  }
  lt->pref_destroy(pref);
  return status;
}

static void step_free(gpu_library_step *head) {
  lt_step *step = (lt_step *)head;
  const lt_state *state = head->state;
  const lt_calls *lt = state->calls;
  void *const layouts[] = {step->a, step->b, step->c, step->d};
  for (int i = 0; i < 4; i++) {
    if (layouts[i] != NULL) lt->layout_destroy(layouts[i]);
  }
  if (step->desc != NULL) lt->desc_destroy(step->desc);
  gpu_product_end(&step->product);
  head->dev->host->free(head->dev->host->ctx, step);
}

/* The step of a product; *out NULL, with why, where the library has no algorithm for it. */
static heddle_status prepare_one(heddle_pdevice *dev, void *memory, const gpu_ask *ask, gpu_product p,
                                 gpu_library_step **out, char *why, size_t bytes, heddle_error *err) {
  const lt_state *state = memory;
  void *block = NULL;
  gpu_scope scope;
  bool found = false;
  heddle_status s = gpu_new(dev->host, sizeof(lt_step), "a product", &block, err);
  if (s != HEDDLE_OK) return s;
  lt_step *step = block;
  step->product.head.dev = dev;
  step->product.head.state = memory;
  s = gpu_product_begin(dev, ask, &p, most_workspace(dev->info, &p), &step->product, err);
  heddle_error ignored;
  const bool inside = gpu_enter(dev, &scope, s == HEDDLE_OK ? err : &ignored) == HEDDLE_OK;
  if (s == HEDDLE_OK && !inside) s = HEDDLE_EDEVICE;
  int status = s == HEDDLE_OK ? make_all(state->calls, step) : 0;
  if (s == HEDDLE_OK && status == 0) status = choose(dev, state, step, &found);
  if (s == HEDDLE_OK && status == 0 && found) {
    snprintf(why, bytes, "%s%s%s",
             p.rounding == GPU_BFLOAT16 ? "in bfloat16"
             : p.rounding == GPU_EXACT  ? ""
                                        : "in TF32",
             p.rounding != GPU_EXACT && p.third == GPU_THIRD_BIAS ? ", " : "",
             p.third == GPU_THIRD_BIAS ? "with the bias" : "");
    *out = &step->product.head;
  } else {
    snprintf(why, bytes, "%s (%d)", status != 0 ? state->calls->words(status) : "it has no algorithm", status);
    step_free(&step->product.head);
  }
  if (inside) gpu_leave(dev, &scope);
  return s;
}

static heddle_status prepare(heddle_pdevice *dev, void *memory, const gpu_ask *ask, gpu_library_step **out, char *why,
                             size_t bytes, heddle_error *err) {
  gpu_product plain, with_bias;
  gpu_product_of(ask, can_round(dev->info), &plain);
  with_bias = plain;
  if (gpu_product_bias(ask, &with_bias)) {
    const heddle_status s = prepare_one(dev, memory, ask, with_bias, out, why, bytes, err);
    if (s != HEDDLE_OK || *out != NULL) return s;
  }
  return prepare_one(dev, memory, ask, plain, out, why, bytes, err);
}

/* ---------------------------------------------------------------- run */

static heddle_status run_cublaslt(gpu_library_step *head, heddle_pstream *stream, const gpu_address *operands,
                                  gpu_address workspace, heddle_error *err) {
  const lt_step *step = (const lt_step *)head;
  lt_state *state = head->state;
  const gpu_product *p = &step->product.p;
  const void *const bias = p->third == GPU_THIRD_BIAS ? gpu_pointer(operands[2]) : NULL;
  gpu_product_operands o;
  int status = 0;
  heddle_status s = gpu_product_run(&step->product, stream, operands, workspace, &o, err);
  if (s != HEDDLE_OK) return s;
  if (bias != NULL) {
    pthread_mutex_lock(&state->lock);
    status = state->calls->desc_set(step->desc, LT_DESC_BIAS_POINTER, &bias, sizeof bias);
  }
  if (status == 0)
    status = state->calls->matmul(state->handle, step->desc, &p->alpha, gpu_pointer(o.b), step->a, gpu_pointer(o.a),
                                  step->b, &p->beta, gpu_pointer(o.c != 0 ? o.c : o.out), step->c, gpu_pointer(o.out),
                                  step->d, &step->found[step->at].algo, gpu_pointer(workspace),
                                  (size_t)step->product.library_bytes, stream->handle);
  if (bias != NULL) pthread_mutex_unlock(&state->lock);
  if (status == 0) return HEDDLE_OK;
  return p_fail(err, HEDDLE_EFAILED, status, "%s:%u: cublasLtMatmul: %s (%d)", head->dev->vendor->name,
                head->dev->index, state->calls->words(status), status);
}

/* ---------------------------------------------------------------- the library */

static const char *const files[] = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11", "libcublasLt.so",
                                    NULL};

static const gpu_symbol symbols[] = {
#define LT_SYMBOL(member, symbol, result, args) {symbol, offsetof(lt_calls, member), false},
    LT_CALLS(LT_SYMBOL)
#undef LT_SYMBOL
};

const gpu_library cuda_cublaslt = {
    .name = "cuBLASLt",
    .what = "matrix products",
    .setting = "cublaslt",
    .files = files,
    .symbols = symbols,
    .n_symbols = sizeof symbols / sizeof symbols[0],
    .calls_bytes = sizeof(lt_calls),
    .version = version,
    .made_for = made_for,
    .takes = takes,
    .device_open = device_open,
    .device_close = device_close,
    .prepare = prepare,
    .free = step_free,
    .next = next,
    .run = run_cublaslt,
};
