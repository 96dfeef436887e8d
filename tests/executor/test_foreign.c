/* labels: alone
 * timeout: 120
 * Memory that another program part made with the vendor's own calls (OpenCL, CUDA, HIP), handed over as DLPack: models run
 * on it, compiled code sees it, and it stays its owner's. What is expected is computed by hand, and read and written with
 * the vendor's calls.
 */
#include "executor/vendor_memory.h"

#include <time.h>

#if HEDDLE_HAVE_DLPACK
#include <dlpack/dlpack.h>

#define MAYBE_UNUSED __attribute__((unused)) /* where the plugins of these vendors are not built */

enum { COUNT = 256, BYTES = COUNT * 4 };

/* A DLPack struct over the vendor's memory. */
typedef struct lent {
  DLManagedTensor m;
  int64_t shape[1];
  int deleted;
} lent;

static void taken_back(DLManagedTensor *self) {
  lent *l = self->manager_ctx;
  l->deleted++;
}

static void lend(lent *l, heddle_device *dev, uint64_t handle, uint64_t offset, int64_t count) {
  heddle_device_info info = {.struct_size = sizeof info};
  OK(heddle_device_get_info(dev, &info, &err));
  memset(l, 0, sizeof *l);
  l->shape[0] = count;
  l->m = (DLManagedTensor){.manager_ctx = l, .deleter = taken_back};
  l->m.dl_tensor = (DLTensor){.data = (void *)(uintptr_t)handle,
                              .device = {(DLDeviceType)info.type, (int32_t)info.index},
                              .ndim = 1,
                              .dtype = {kDLFloat, 32, 1},
                              .shape = l->shape,
                              .byte_offset = offset};
}

static heddle_tensor *take(lent *l, heddle_device *dev) {
  heddle_tensor *t = NULL;
  OK(heddle_tensor_from_dlpack_on(dev, &l->m, &t, &err));
  assert_int_equal(l->deleted, 0);
  assert_ptr_equal(heddle_tensor_device(t), dev);
  return t;
}

/* A handle of Heddle's on the device, with the tensor that keeps it. */
static uint64_t own_handle(heddle_device *dev, heddle_tensor **keep) {
  const int64_t shape[] = {COUNT};
  DLManagedTensor *m = NULL;
  OK(heddle_tensor_create(dev, HEDDLE_FLOAT32, shape, 1, keep, &err));
  OK(heddle_tensor_to_dlpack(*keep, &m, &err));
  const uint64_t handle = (uint64_t)(uintptr_t)m->dl_tensor.data;
  m->deleter(m);
  return handle;
}

static void ramp(float *out, float first, float step) {
  for (int i = 0; i < COUNT; i++) out[i] = first + step * (float)i;
}

static void is_doubled(const float *y, float first, float step) {
  for (int i = 0; i < COUNT; i++) assert_true(y[i] == 2 * (first + step * (float)i));
}

/* y = x + x */
static void rig_of_a_sum(rig *t) {
  static sketch s;
  memset(&s, 0, sizeof s);
  int x = put_input(&s, "x", "[256]", "\"float32\"");
  put_head(&s, NODE(&s, "Add", "y", "sim:0", x, x));
  rig_make(t, "threads=1", &s,
           &(heddle_model_options){.struct_size = sizeof(heddle_model_options), .devices = "sim:0"});
}

static heddle_device *device_of(const rig *t, const char *name) {
  heddle_device *dev = NULL;
  OK(heddle_context_find_device(t->ctx, on(name), &dev, &err));
  return dev;
}

MAYBE_UNUSED static void models_run_on_it(void **state) {
  (void)state;
  rig t;
  rig_of_a_sum(&t);
  heddle_device *dev = device_of(&t, "sim:0");
  heddle_tensor *keep = NULL, *y = NULL;
  const int64_t shape[] = {COUNT};
  float values[COUNT];
  vendor_hold(0, true);
  const uint64_t like = own_handle(dev, &keep), in = vendor_make(like, BYTES), out = vendor_make(like, 2 * BYTES);
  lent lent_in, lent_out;
  lend(&lent_in, dev, in, 0, COUNT);
  lend(&lent_out, dev, out, BYTES, COUNT); /* the second half */
  heddle_tensor *x = take(&lent_in, dev), *z = take(&lent_out, dev);
  OK(heddle_tensor_create(NULL, HEDDLE_FLOAT32, shape, 1, &y, &err));

  ramp(values, -3, 1);
  vendor_write(in, values, BYTES);
  OK(heddle_executor_set_input(t.ex, 0, x, &err));
  OK(heddle_executor_run(t.ex, HEDDLE_FOREVER, &err));
  OK(heddle_executor_get_output(t.ex, 0, y, &err));
  is_doubled(data_of(y), -3, 1);

  OK(heddle_executor_bind_input(t.ex, 0, x, &err)); /* each run reads what is there then */
  OK(heddle_executor_bind_output(t.ex, 0, z, &err));
  for (int round = 0; round < 3; round++) {
    ramp(values, (float)round, 2);
    vendor_write(in, values, BYTES);
    OK(heddle_executor_run(t.ex, HEDDLE_FOREVER, &err));
    float both[2 * COUNT];
    vendor_read(out, both, sizeof both);
    is_doubled(both + COUNT, (float)round, 2);
  }
  OK(heddle_tensor_copy(x, z, &err)); /* within the device, from one to the other */
  vendor_read(in, values, BYTES);
  is_doubled(values, 2, 2);

  heddle_tensor_release(x); /* the executor has it still */
  heddle_tensor_release(z);
  heddle_tensor_release(y);
  heddle_tensor_release(keep);
  assert_int_equal(lent_in.deleted + lent_out.deleted, 0);
  rig_end(&t);
  assert_int_equal(lent_in.deleted, 1);
  assert_int_equal(lent_out.deleted, 1);
  vendor_read(in, values, BYTES); /* and it is the owner's as it was */
  is_doubled(values, 2, 2);
  vendor_free(in);
  vendor_free(out);
  vendor_hold(0, false);
}

/* OpenCL counts who holds an object: the tensor does, and its last reference lets go. */
MAYBE_UNUSED static void objects_are_held_and_let_go(void **state) {
  (void)state;
  rig t;
  rig_of_a_sum(&t);
  heddle_device *dev = device_of(&t, "sim:0");
  heddle_tensor *keep = NULL;
  const uint64_t like = own_handle(dev, &keep), whole = vendor_make(like, 8 * BYTES);
  const uint64_t part = cl_part(whole, 2 * BYTES, 4 * BYTES);
  const uint32_t whole_count = cl_count(whole), part_count = cl_count(part);
  float values[2 * COUNT], got[COUNT];
  lent a, b, c;
  lend(&a, dev, whole, 0, COUNT);
  lend(&b, dev, part, 0, COUNT);
  lend(&c, dev, part, BYTES, COUNT); /* a part of a part */
  heddle_tensor *x = take(&a, dev), *y = take(&b, dev), *z = take(&c, dev);
  assert_true(cl_count(whole) > whole_count && cl_count(part) > part_count);
  ramp(values, 1, 1);
  ramp(values + COUNT, 500, 1);
  vendor_write(part, values, sizeof values);
  OK(heddle_tensor_copy(x, z, &err));
  vendor_read(whole, got, BYTES);
  assert_memory_equal(got, values + COUNT, BYTES);
  OK(heddle_tensor_copy(x, y, &err));
  vendor_read(whole, got, BYTES);
  assert_memory_equal(got, values, BYTES);
  heddle_tensor_release(y);
  heddle_tensor_release(x);
  heddle_tensor_release(z);
  /* The driver may hold the objects of a finished command for a moment longer. */
  for (int i = 0; i < 2000 && (cl_count(whole) != whole_count || cl_count(part) != part_count); i++)
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  assert_int_equal(cl_count(whole), whole_count);
  assert_int_equal(cl_count(part), part_count);
  lend(&a, dev, part, 3 * BYTES, 2 * COUNT); /* past its end, though not of the whole */
  FAILS(heddle_tensor_from_dlpack_on(dev, &a.m, &x, &err), HEDDLE_EINVAL);
  SAYS("do not lie in a memory object of 4096");
  cl_free(part);
  cl_free(whole);
  heddle_tensor_release(keep);
  rig_end(&t);
}

MAYBE_UNUSED static void another_opencl_context_is_refused(void **state) {
  (void)state;
  rig t;
  rig_of_a_sum(&t);
  heddle_device *dev = device_of(&t, "sim:0");
  heddle_tensor *keep = NULL, *x = NULL;
  VENDOR(cl_library(), clCreateContext, void *, (const void *, uint32_t, void **, void *, void *, int32_t *));
  VENDOR(cl_library(), clReleaseContext, int32_t, (void *));
  const uint64_t like = own_handle(dev, &keep);
  void *device = cl_first_device(cl_about(like, CL_CONTEXT_OF));
  int32_t code = 0;
  void *other = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
  DONE(code);
  const uint64_t mem = cl_make(other, BYTES);
  lent l;
  lend(&l, dev, mem, 0, COUNT);
  FAILS(heddle_tensor_from_dlpack_on(dev, &l.m, &x, &err), HEDDLE_EINVAL);
  SAYS("another OpenCL context");
  assert_int_equal(l.deleted, 0);
  assert_int_equal(cl_count(mem), 1);
  cl_free(mem);
  DONE(clReleaseContext(other));
  heddle_tensor_release(keep);
  rig_end(&t);
}

MAYBE_UNUSED static void addresses_of_elsewhere_are_refused(void **state) {
  (void)state;
  rig t;
  rig_of_a_sum(&t);
  heddle_device *dev = device_of(&t, "sim:0");
  heddle_tensor *x = NULL;
  static _Alignas(4096) float host[COUNT];
  uint64_t far = 0, near = vendor_make(0, 2 * BYTES);
  lent l;
  lend(&l, dev, (uint64_t)(uintptr_t)host, 0, COUNT);
  FAILS(heddle_tensor_from_dlpack_on(dev, &l.m, &x, &err), HEDDLE_EINVAL);
  SAYS("is no memory of the driver's");
  vendor_hold(1, true); /* another program part's work, in whose midst this is */
  vendor_call(1, &far, NULL, NULL, BYTES);
  lend(&l, dev, far, 0, COUNT);
  FAILS(heddle_tensor_from_dlpack_on(dev, &l.m, &x, &err), HEDDLE_EINVAL);
  SAYS("memory of the driver's device 1");
  lend(&l, dev, near, 4, COUNT);
  FAILS(heddle_tensor_from_dlpack_on(dev, &l.m, &x, &err), HEDDLE_EUNSUPPORTED);
  SAYS("multiple of 256");
  lend(&l, dev, 0, 0, COUNT);
  FAILS(heddle_tensor_from_dlpack_on(dev, &l.m, &x, &err), HEDDLE_EINVAL);
  lend(&l, dev, near, UINT64_MAX - 255, COUNT);
  FAILS(heddle_tensor_from_dlpack_on(dev, &l.m, &x, &err), HEDDLE_EINVAL);
  assert_int_equal(l.deleted, 0);
  vendor_call(1, &far, NULL, NULL, 0);
  vendor_hold(1, false);
  vendor_free(near);
  rig_end(&t);
}

#ifdef HEDDLE_TEST_OPENCL
#define OPENCL_CASES \
  CASE_OPENCL(models_run_on_it), CASE_OPENCL(objects_are_held_and_let_go), \
      CASE_OPENCL(another_opencl_context_is_refused),
#else
#define OPENCL_CASES
#endif
#ifdef HEDDLE_TEST_CUDA
#define CUDA_CASES CASE_CUDA(models_run_on_it), CASE_CUDA(addresses_of_elsewhere_are_refused),
#else
#define CUDA_CASES
#endif
#ifdef HEDDLE_TEST_ROCM
#define ROCM_CASES CASE_ROCM(models_run_on_it), CASE_ROCM(addresses_of_elsewhere_are_refused),
#else
#define ROCM_CASES
#endif

static void some_vendor_is_here(void **state) {
  (void)state;
  static const test_case all[] = {OPENCL_CASES CUDA_CASES ROCM_CASES{NULL, NULL, NULL, NULL}};
  if (all[0].run == NULL) SKIP("no plugin of a vendor's API is part of this build");
}

CASES(OPENCL_CASES CUDA_CASES ROCM_CASES CASE(some_vendor_is_here))
#else
static void needs_the_header(void **state) {
  (void)state;
  SKIP("no dlpack.h of DLPack 1.x; scripts/setup installs it");
}

CASES(CASE(needs_the_header))
#endif
