/* Large matrix products by CLBlast, where it is installed: the library is opened at run time and never closed, since it
 * keeps objects of its own until the process ends. A product that it takes is a launch of its C API instead of one of
 * the kernels; which, is decided when an operator is prepared, and CLBlast's compiling is done there.
 *
 * The calls are those of CLBlast's clblast_c.h, versions 1.4 and later. */
#include "opencl.h"

#include "plugins/common/setting.h"

#include <dlfcn.h>

/* Products are handed over from this many multiplications, with sides that fill its tiles. Stated, not measured: on
 * smaller ones its many launches cost more than they bring. */
#define LEAST_WORK (256.0 * 256.0 * 256.0)
enum { LEAST_SIDE = 64, ROW_MAJOR = 101, AS_IT_IS = 111, TRANSPOSED = 112 };

typedef int (*sgemm_fn)(int layout, int trans_a, int trans_b, size_t m, size_t n, size_t k, float alpha, cl_mem a,
                        size_t a_at, size_t a_ld, cl_mem b, size_t b_at, size_t b_ld, float beta, cl_mem c, size_t c_at,
                        size_t c_ld, cl_command_queue *queue, cl_event *event);
typedef int (*sgemm_batched_fn)(int layout, int trans_a, int trans_b, size_t m, size_t n, size_t k, float alpha,
                                cl_mem a, size_t a_at, size_t a_ld, size_t a_stride, cl_mem b, size_t b_at, size_t b_ld,
                                size_t b_stride, float beta, cl_mem c, size_t c_at, size_t c_ld, size_t c_stride,
                                size_t count, cl_command_queue *queue, cl_event *event);
typedef int (*clear_fn)(void);

struct ocl_blas {
  bool always; /* on host cores too */
  sgemm_fn sgemm;
  sgemm_batched_fn sgemm_batched;
  clear_fn clear;
};

/* ---------------------------------------------------------------- the library */

static bool load(ocl_blas *blas, const char **why) {
  void *library = dlopen("libclblast.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    *why = dlerror();
    return false;
  }
  /* POSIX lets an address of dlsym be a function's. */
  *(void **)&blas->sgemm = dlsym(library, "CLBlastSgemm");
  *(void **)&blas->sgemm_batched = dlsym(library, "CLBlastSgemmStridedBatched");
  *(void **)&blas->clear = dlsym(library, "CLBlastClearCache");
  *why = "libclblast.so.1 lacks functions of version 1.4";
  return blas->sgemm != NULL && blas->sgemm_batched != NULL && blas->clear != NULL;
}

static bool has_accelerator(const heddle_pinstance *self) {
  bool has = false;
  for (uint32_t i = 0; i < self->n_devices; i++) has = has || (self->devices[i].type & CL_DEVICE_TYPE_CPU) == 0;
  return has;
}

heddle_status ocl_blas_open(heddle_pinstance *self, heddle_error *err) {
  const heddle_host *host = self->host;
  char text[16] = "auto";
  const char *why = NULL;
  void *memory = NULL;
  ocl_setting(host, "clblast", text, sizeof text);
  bool always = false;
  const bool automatic = strcmp(text, "auto") == 0;
  if (!automatic && !p_switch(text, &always))
    return p_fail(err, HEDDLE_EINVAL, 0, "opencl: setting clblast: '%s' is none of 0, 1 and auto", text);
  if (!always && (!automatic || !has_accelerator(self))) return HEDDLE_OK;
  heddle_status s = ocl_new(host, sizeof(ocl_blas), "CLBlast", &memory, err);
  if (s != HEDDLE_OK) return s;
  ocl_blas *blas = memory;
  if (load(blas, &why)) {
    blas->always = always;
    self->blas = blas;
    host->log(host->ctx, HEDDLE_LOG_INFO, "opencl", "CLBlast is there for large matrix products");
    return HEDDLE_OK;
  }
  host->free(host->ctx, blas);
  if (always) return p_fail(err, HEDDLE_EINVAL, 0, "opencl: setting clblast is 1, and it cannot be loaded: %s", why);
  host->log(host->ctx, HEDDLE_LOG_INFO, "opencl", "there is no CLBlast (libclblast.so.1); all products are by kernels");
  return HEDDLE_OK;
}

void ocl_blas_forget(heddle_pinstance *self) {
  if (self->blas != NULL) self->blas->clear();
}

/* ---------------------------------------------------------------- which products */

/* A matrix as CLBlast has it: rows side by side, or columns, ld apart. */
static bool set_matrix(int64_t row, int64_t col, int64_t rows, int64_t cols, int *trans, size_t *ld) {
  *trans = col == 1 ? AS_IT_IS : TRANSPOSED;
  *ld = (size_t)(col == 1 ? row : col);
  return col == 1 ? row >= cols : row == 1 && col >= rows;
}

/* Batches that lie at equal distances. */
static bool set_batches(const k_matmul *p, ocl_product *out) {
  out->count = 1;
  for (int64_t d = p->batch_dims - 1; d >= 0; d--) {
    if (p->batch_dim[d] == 1) continue;
    const size_t a = (size_t)p->batch_a[d], b = (size_t)p->batch_b[d];
    if (out->count == 1) out->a_stride = a, out->b_stride = b;
    else if (a != out->a_stride * out->count || b != out->b_stride * out->count) return false;
    out->count *= (size_t)p->batch_dim[d];
  }
  return true;
}

bool ocl_blas_takes(const heddle_pdevice *dev, const k_step *step, ocl_product *out) {
  const ocl_blas *blas = dev->self->blas;
  const k_matmul *p = &step->params.matmul;
  const bool on_host = (dev->info->type & CL_DEVICE_TYPE_CPU) != 0;
  if (blas == NULL || (on_host && !blas->always) || step->kind != K_STEP_KERNEL || !step->is_product) return false;
  if (p->m < LEAST_SIDE || p->n < LEAST_SIDE || p->k < LEAST_SIDE) return false;
  if ((double)p->m * (double)p->n * (double)p->k < LEAST_WORK) return false;
  *out = (ocl_product){.m = (size_t)p->m, .n = (size_t)p->n, .k = (size_t)p->k, .alpha = p->alpha};
  out->beta = step->n_args == 4 ? p->beta : 0.0f;
  return set_matrix(p->a_row, p->a_col, p->m, p->k, &out->trans_a, &out->a_ld) &&
         set_matrix(p->b_row, p->b_col, p->k, p->n, &out->trans_b, &out->b_ld) && set_batches(p, out);
}

/* ---------------------------------------------------------------- running */

cl_int ocl_blas_run(const ocl_blas *blas, const ocl_product *p, cl_command_queue queue) {
  if (p->count == 1) {
    return blas->sgemm(ROW_MAJOR, p->trans_a, p->trans_b, p->m, p->n, p->k, p->alpha, p->a, 0, p->a_ld, p->b, 0,
                       p->b_ld, p->beta, p->out, 0, p->n, &queue, NULL);
  }
  return blas->sgemm_batched(ROW_MAJOR, p->trans_a, p->trans_b, p->m, p->n, p->k, p->alpha, p->a, 0, p->a_ld,
                             p->a_stride, p->b, 0, p->b_ld, p->b_stride, p->beta, p->out, 0, p->n, p->m * p->n,
                             p->count, &queue, NULL);
}

static size_t reach(size_t lines, size_t ld, size_t line, size_t stride, size_t count) {
  return ((lines - 1) * ld + line + stride * (count - 1)) * sizeof(float);
}

/* Runs the product once on buffers of its own: its kernels are compiled by that. What a buffer holds does not matter. */
bool ocl_blas_warm(heddle_pdevice *dev, const ocl_product *product) {
  const heddle_host *host = dev->host;
  const bool plain_a = product->trans_a == AS_IT_IS, plain_b = product->trans_b == AS_IT_IS;
  const size_t bytes[3] = {
      reach(plain_a ? product->m : product->k, product->a_ld, plain_a ? product->k : product->m, product->a_stride,
            product->count),
      reach(plain_b ? product->k : product->n, product->b_ld, plain_b ? product->n : product->k, product->b_stride,
            product->count),
      product->m * product->n * product->count * sizeof(float),
  };
  ocl_product p = *product;
  cl_mem *const to[3] = {&p.a, &p.b, &p.out};
  char words[160];
  cl_int code = CL_SUCCESS;
  cl_command_queue queue = clCreateCommandQueue(dev->context, dev->info->id, 0, &code);
  if (code != CL_SUCCESS) queue = NULL;
  for (int i = 0; i < 3; i++) {
    *to[i] = code == CL_SUCCESS ? clCreateBuffer(dev->context, CL_MEM_READ_WRITE, bytes[i], NULL, &code) : NULL;
    if (code != CL_SUCCESS) *to[i] = NULL;
  }
  if (code == CL_SUCCESS) code = ocl_blas_run(dev->self->blas, &p, queue);
  if (code == CL_SUCCESS) code = clFinish(queue);
  for (int i = 0; i < 3; i++) {
    if (*to[i] != NULL) clReleaseMemObject(*to[i]);
  }
  if (queue != NULL) clReleaseCommandQueue(queue);
  if (code == CL_SUCCESS) {
    snprintf(words, sizeof words, "opencl:%u: %zu products of %zu x %zu x %zu are CLBlast's", dev->index, p.count, p.m,
             p.k, p.n);
  } else {
    snprintf(words, sizeof words, "opencl:%u: CLBlast fails with %d on a product of %zu x %zu x %zu; a kernel takes it",
             dev->index, code, p.m, p.k, p.n);
  }
  host->log(host->ctx, code == CL_SUCCESS ? HEDDLE_LOG_INFO : HEDDLE_LOG_WARN, "opencl", words);
  return code == CL_SUCCESS;
}
