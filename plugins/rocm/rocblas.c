/* Matrix products by rocBLAS. Its matrices lie by columns, so ours are the transposed ones, and the product is
 * B' x A' = (A x B)'. A handle has stream and workspace as its state, so a device's is guarded while a call is enqueued. */
#include "rocblas_api.h"
#include "rocm.h"

#include "plugins/common/gpu/product.h"

/* Scratch memory, in place of what the handle would allocate in a run. */
#define WORKSPACE UINT64_C(0x2000000)

typedef struct roc_state {
  const rocblas_calls *calls;
  void *handle;
  pthread_mutex_t lock; /* guards the handle's stream and workspace */
} roc_state;

static void version(const void *calls, char *buf, size_t bytes) {
  const rocblas_calls *roc = calls;
  buf[0] = '\0';
  if (roc->version == NULL || roc->version(buf, bytes) != 0) buf[0] = '\0';
  buf[bytes - 1] = '\0';
}

/* Architectures whose matrix instructions take bfloat16. */
static bool has_bfloat(const gpu_info *info) {
  static const char *const arches[] = {"gfx908", "gfx90a", "gfx94", "gfx95", "gfx11", "gfx12"};
  for (size_t i = 0; i < sizeof arches / sizeof arches[0]; i++) {
    if (strncmp(info->arch, arches[i], strlen(arches[i])) == 0) return true;
  }
  return false;
}

/* It rounds nothing by itself. */
static bool product_of(const gpu_info *info, const gpu_ask *ask, gpu_product *out) {
  if (!gpu_product_of(ask, has_bfloat(info) ? GPU_BFLOAT16 : GPU_EXACT, out)) return false;
  if (out->rounding == GPU_LIBRARY_ROUNDS) out->rounding = GPU_EXACT;
  return true;
}

static bool takes(const gpu_info *info, const gpu_ask *ask, uint64_t *workspace) {
  gpu_product p;
  if (!product_of(info, ask, &p)) return false;
  *workspace = gpu_product_workspace(ask, &p, gpu_product_scratch(&p, WORKSPACE));
  return true;
}

/* ---------------------------------------------------------------- devices */

static heddle_status device_open(heddle_pdevice *dev, const void *calls, void **out, heddle_error *err) {
  const rocblas_calls *roc = calls;
  void *memory = NULL, *create = NULL;
  char why[256];
  memcpy(&create, &roc->create, sizeof create);
  if (!rocm_tensile_has(dev->host, create, dev->info->arch, why, sizeof why))
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "%s", why);
  heddle_status s = gpu_new(dev->host, sizeof(roc_state), "rocBLAS", &memory, err);
  if (s != HEDDLE_OK) return s;
  roc_state *state = memory;
  state->calls = roc;
  int status = roc->create(&state->handle);
  if (status == 0 && roc->set_atomics != NULL && (status = roc->set_atomics(state->handle, ROCBLAS_NO_ATOMICS)) != 0)
    roc->destroy(state->handle);
  if (status != 0) {
    dev->host->free(dev->host->ctx, state);
    return p_fail(err, HEDDLE_EFAILED, status, "rocblas_create_handle: %s (%d)", roc->words(status), status);
  }
  pthread_mutex_init(&state->lock, NULL);
  *out = state;
  return HEDDLE_OK;
}

static void device_close(heddle_pdevice *dev, void *memory) {
  roc_state *state = memory;
  state->calls->destroy(state->handle);
  pthread_mutex_destroy(&state->lock);
  dev->host->free(dev->host->ctx, state);
}

/* ---------------------------------------------------------------- steps */

static void step_free(gpu_library_step *head) {
  gpu_product_step *step = (gpu_product_step *)head;
  gpu_product_end(step);
  head->dev->host->free(head->dev->host->ctx, step);
}

static heddle_status prepare(heddle_pdevice *dev, void *memory, const gpu_ask *ask, gpu_library_step **out, char *why,
                             size_t bytes, heddle_error *err) {
  void *block = NULL;
  gpu_product p;
  product_of(dev->info, ask, &p);
  heddle_status s = gpu_new(dev->host, sizeof(gpu_product_step), "a product", &block, err);
  if (s != HEDDLE_OK) return s;
  gpu_product_step *step = block;
  step->head.dev = dev;
  step->head.state = memory;
  s = gpu_product_begin(dev, ask, &p, gpu_product_scratch(&p, WORKSPACE), step, err);
  if (s != HEDDLE_OK) {
    step_free(&step->head);
    return s;
  }
  snprintf(why, bytes, "%s", p.rounding == GPU_BFLOAT16 ? "in bfloat16" : "");
  *out = &step->head;
  return HEDDLE_OK;
}

static int enqueue(const gpu_product_step *step, roc_state *state, const gpu_product_operands *o) {
  const gpu_product *p = &step->p;
  const int type = p->rounding == GPU_BFLOAT16 ? ROCBLAS_BF16 : ROCBLAS_F32, ld = (int)p->n;
  const int64_t stride = p->m * p->n;
  return state->calls->gemm(state->handle, p->b.across ? ROCBLAS_TRANSPOSE : ROCBLAS_NONE,
                            p->a.across ? ROCBLAS_TRANSPOSE : ROCBLAS_NONE, (int)p->n, (int)p->m, (int)p->k, &p->alpha,
                            gpu_pointer(o->b), type, (int)p->b.ld, p->b.stride, gpu_pointer(o->a), type, (int)p->a.ld,
                            p->a.stride, &p->beta, gpu_pointer(o->c != 0 ? o->c : o->out), ROCBLAS_F32, ld,
                            p->third == GPU_THIRD_WHOLE ? 0 : stride, gpu_pointer(o->out), ROCBLAS_F32, ld, stride,
                            (int)p->count, ROCBLAS_F32, ROCBLAS_STANDARD, 0, 0);
}

static heddle_status run_rocblas(gpu_library_step *head, heddle_pstream *stream, const gpu_address *operands,
                                 gpu_address workspace, heddle_error *err) {
  const gpu_product_step *step = (const gpu_product_step *)head;
  roc_state *state = head->state;
  const rocblas_calls *roc = state->calls;
  const char *what = "rocblas_set_stream";
  gpu_product_operands o;
  heddle_status s = gpu_product_run(step, stream, operands, workspace, &o, err);
  if (s != HEDDLE_OK) return s;
  pthread_mutex_lock(&state->lock);
  int status = roc->set_stream(state->handle, stream->handle);
  if (status == 0 && roc->set_workspace != NULL) {
    what = "rocblas_set_workspace";
    status = roc->set_workspace(state->handle, gpu_pointer(workspace), (size_t)step->library_bytes);
  }
  if (status == 0) {
    what = "rocblas_gemm_strided_batched_ex";
    status = enqueue(step, state, &o);
  }
  pthread_mutex_unlock(&state->lock);
  if (status == 0) return HEDDLE_OK;
  return p_fail(err, HEDDLE_EFAILED, status, "%s:%u: %s: %s (%d)", head->dev->vendor->name, head->dev->index, what,
                roc->words(status), status);
}

/* ---------------------------------------------------------------- the library */

/* In the order of HIP's (plugin.c), so that of two installations side by side both are of the same. */
static const char *const files[] = {"librocblas.so.4", "librocblas.so.3", "librocblas.so.0",
                                    "librocblas.so.5", "librocblas.so",   NULL};

static const gpu_symbol symbols[] = {
#define ROCBLAS_SYMBOL(member, symbol, may, result, args) {symbol, offsetof(rocblas_calls, member), may},
    ROCBLAS_CALLS(ROCBLAS_SYMBOL)
#undef ROCBLAS_SYMBOL
};

static const gpu_library rocblas = {
    .name = "rocBLAS",
    .what = "matrix products",
    .setting = "rocblas",
    .files = files,
    .symbols = symbols,
    .n_symbols = sizeof symbols / sizeof symbols[0],
    .calls_bytes = sizeof(rocblas_calls),
    .version = version,
    .takes = takes,
    .device_open = device_open,
    .device_close = device_close,
    .prepare = prepare,
    .free = step_free,
    .run = run_rocblas,
};

const gpu_library_vendor rocm_libraries = {{&rocblas}};
