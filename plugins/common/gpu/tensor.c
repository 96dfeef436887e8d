/* Products in bfloat16 by a kernel of ours on tensor cores (kernels/tensor.cl), with precision fast where no library of the
 * vendor's does them. It stands in the list of libraries, after those, and needs no file. */
#include "plugins/common/gpu/product.h"

enum { TILE = 64, LEAST_MAJOR = 8 }; /* as in tensor.cl; compute capability that it is written for */

typedef struct tensor_step {
  gpu_product_step product;
  k_matmul params;
  uint64_t groups;
  void *kernel;
} tensor_step;

static void version(const void *calls, char *buf, size_t bytes) {
  (void)calls;
  snprintf(buf, bytes, "%s", "");
}

static bool product_of(const gpu_ask *ask, gpu_product *out) {
  if (!gpu_product_of(ask, GPU_BFLOAT16, out) || out->rounding != GPU_BFLOAT16) return false;
  out->third = GPU_THIRD_NONE; /* the kernel adds C, whatever it is */
  return true;
}

static int64_t tiles(int64_t n) {
  return n / TILE + (n % TILE != 0);
}

static bool takes(const gpu_info *info, const gpu_ask *ask, uint64_t *workspace) {
  gpu_product p;
  if (info->major < LEAST_MAJOR || !product_of(ask, &p)) return false;
  if ((double)tiles(p.m) * (double)tiles(p.n) * (double)p.count > INT32_MAX) return false;
  *workspace = gpu_product_workspace(ask, &p, 0);
  return true;
}

static heddle_status device_open(heddle_pdevice *dev, const void *calls, void **state, heddle_error *err) {
  (void)calls, (void)err;
  *state = dev;
  return HEDDLE_OK;
}

static void device_close(heddle_pdevice *dev, void *state) {
  (void)dev, (void)state;
}

static void step_free(gpu_library_step *head) {
  gpu_product_end((gpu_product_step *)head);
  head->dev->host->free(head->dev->host->ctx, head);
}

static heddle_status prepare(heddle_pdevice *dev, void *state, const gpu_ask *ask, gpu_library_step **out, char *why,
                             size_t bytes, heddle_error *err) {
  const k_step *plan = ask->step;
  void *block = NULL;
  gpu_product p;
  (void)state;
  product_of(ask, &p);
  heddle_status s = gpu_new(dev->host, sizeof(tensor_step), "a product", &block, err);
  if (s != HEDDLE_OK) return s;
  tensor_step *step = block;
  s = gpu_product_begin(dev, ask, &p, 0, &step->product, err);
  const k_code code = {.kernel = KERNEL_tensor, .wide = plan->code.wide, .flags = plan->n_args == 4 ? K_HAS_C : 0};
  if (s == HEDDLE_OK) s = gpu_product_kernel(dev, &code, &step->kernel, err);
  if (s != HEDDLE_OK) {
    step_free(&step->product.head);
    return s;
  }
  step->params = plan->params.matmul;
  step->params.tiles_m = tiles(p.m);
  step->params.tiles_n = tiles(p.n);
  step->groups = (uint64_t)(step->params.tiles_m * step->params.tiles_n * p.count);
  snprintf(why, bytes, "in bfloat16");
  *out = &step->product.head;
  return HEDDLE_OK;
}

static heddle_status run_tensor(gpu_library_step *head, heddle_pstream *stream, const gpu_address *operands,
                                gpu_address workspace, heddle_error *err) {
  const tensor_step *step = (const tensor_step *)head;
  k_matmul params = step->params;
  gpu_product_operands o;
  heddle_status s = gpu_product_run(&step->product, stream, operands, workspace, &o, err);
  if (s != HEDDLE_OK) return s;
  gpu_address c = operands[2];
  void *with_c[] = {&params, &o.a, &o.b, &c, &o.out}, *without[] = {&params, &o.a, &o.b, &o.out};
  return gpu_product_launch(stream, step->kernel, step->groups, step->product.n_args == 4 ? with_c : without,
                            "multiply on tensor cores", err);
}

const gpu_library gpu_tensor_cores = {
    .name = "a kernel on tensor cores",
    .what = "products in bfloat16",
    .setting = "tensor_cores",
    .version = version,
    .takes = takes,
    .device_open = device_open,
    .device_close = device_close,
    .prepare = prepare,
    .free = step_free,
    .run = run_tensor,
};
