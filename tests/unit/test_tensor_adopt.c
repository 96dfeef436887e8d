/* labels: threads alone
 * timeout: 120
 * DLPack structs of a device's memory taken in: those of Heddle's own tensors and those of others, which stay their
 * owners' until the last reference is gone; and what is refused, which stays the caller's. The reference is what the
 * bytes were when the host wrote them. */
#include "cases.h"

#include <pthread.h>

#include "core/alloc.h"
#include "core/registry.h"
#include "core/tensor.h"

#if HEDDLE_HAVE_DLPACK
#include <dlpack/dlpack.h>

#include "unit/tensor_device.h"

enum { N = 1024 };

static void ok(heddle_status s, const heddle_error *err) {
  if (s != HEDDLE_OK) fail_msg("%s", err->text);
}

/* N numbers from `first` on a device. */
static heddle_tensor *numbers(heddle_device *dev, int32_t first) {
  heddle_error err;
  heddle_tensor *t, *host;
  const int64_t shape[1] = {N};
  int32_t values[N];
  for (int i = 0; i < N; i++) values[i] = first + i;
  ok(heddle_tensor_create(dev, INT32, shape, 1, &t, &err), &err);
  ok(heddle_tensor_wrap(values, INT32, shape, 1, NULL, NULL, NULL, &host, &err), &err);
  ok(heddle_tensor_copy(t, host, &err), &err);
  heddle_tensor_release(host);
  return t;
}

/* Does a tensor of any shape hold the numbers from `first`? */
static void holds(const heddle_tensor *t, int32_t first) {
  heddle_error err;
  heddle_tensor *host;
  ok(heddle_tensor_create(NULL, t->dtype, t->shape, t->ndim, &host, &err), &err);
  ok(heddle_tensor_copy(host, t, &err), &err);
  const int32_t *got = heddle_tensor_data(host);
  for (uint64_t i = 0; i < t->count; i++) assert_int_equal(got[i], first + (int32_t)i);
  heddle_tensor_release(host);
}

static DLManagedTensor *export(heddle_tensor *t) {
  heddle_error err;
  DLManagedTensor *m = NULL;
  heddle_status s = heddle_tensor_to_dlpack(t, &m, &err);
  if (s == HEDDLE_EUNSUPPORTED) {
    heddle_tensor_release(t);
    heddle_context_release(context);
    SKIP(err.text);
  }
  ok(s, &err);
  assert_int_equal(m->dl_tensor.device.device_type, t->dev->desc.type);
  assert_int_equal(m->dl_tensor.device.device_id, t->dev->index);
  return m;
}

static void nothing_is_left(void) {
  heddle_context_release(context);
  context = NULL;
}

/* An address does not show where its memory ends. */
static bool unbounded(const heddle_device *dev) {
  return strcmp(dev->plugin->name, "cuda") == 0 || strcmp(dev->plugin->name, "rocm") == 0;
}

/* ---- of Heddle's own making */

static void shares_what_it_gave(void **state) {
  (void)state;
  heddle_error err;
  heddle_device *dev = find("sim:0");
  heddle_tensor *t = numbers(dev, 5), *again, *third;
  DLManagedTensorVersioned *versioned;
  ok(heddle_tensor_from_dlpack(export(t), &again, &err), &err); /* found by itself, not in the process's context */
  assert_ptr_equal(heddle_tensor_device(again), dev);
  assert_true(heddle_tensor_is_contiguous(again));
  heddle_tensor *other = numbers(dev, 900);
  ok(heddle_tensor_copy(again, other, &err), &err);
  holds(t, 900); /* one memory */
  ok(heddle_tensor_copy(again, t, &err), &err);
  holds(t, 900);
  ok(heddle_tensor_to_dlpack_versioned(again, &versioned, &err), &err);
  heddle_tensor_release(t);
  heddle_tensor_release(again);
  ok(heddle_tensor_from_dlpack_versioned_on(dev, versioned, &third, &err), &err);
  heddle_tensor_release(other);
  holds(third, 900);
  heddle_tensor_release(third);
  nothing_is_left();
}

/* The consumer changed the struct: another shape, or a part. */
static void shares_a_part_of_what_it_gave(void **state) {
  (void)state;
  heddle_error err;
  heddle_device *dev = find("sim:0");
  heddle_tensor *t = numbers(dev, 5), *part;
  int64_t shape[2] = {2, 100}, strides[2] = {100, 1}, wrong[2] = {1, 2};
  DLManagedTensor *m = export(t);
  m->dl_tensor.ndim = 2;
  m->dl_tensor.shape = shape;
  m->dl_tensor.strides = wrong;
  assert_int_equal(heddle_tensor_from_dlpack(m, &part, &err), HEDDLE_EUNSUPPORTED);
  assert_non_null(strstr(err.text, "contiguous"));
  m->dl_tensor.strides = strides;
  ok(heddle_tensor_from_dlpack(m, &part, &err), &err);
  holds(part, 5);
  heddle_tensor_release(part);
  m = export(t);
  m->dl_tensor.ndim = 2;
  m->dl_tensor.shape = shape;
  m->dl_tensor.strides = NULL;
  m->dl_tensor.byte_offset = 1024;
  ok(heddle_tensor_from_dlpack(m, &part, &err), &err);
  heddle_tensor_release(t);
  holds(part, 5 + 256);
  heddle_tensor_release(part);
  nothing_is_left();
}

static void takes_no_elements(void **state) {
  (void)state;
  heddle_error err;
  heddle_device *dev = find("sim:0");
  const int64_t shape[2] = {0, 3};
  heddle_tensor *t, *again;
  ok(heddle_tensor_create(dev, INT32, shape, 2, &t, &err), &err);
  DLManagedTensor *m = export(t), foreign = {0};
  foreign.dl_tensor = m->dl_tensor;
  foreign.dl_tensor.data = NULL;
  assert_null(m->dl_tensor.data);
  ok(heddle_tensor_from_dlpack(m, &again, &err), &err);
  assert_int_equal(heddle_tensor_bytes(again), 0);
  heddle_tensor_release(again);
  heddle_status s = heddle_tensor_from_dlpack_on(dev, &foreign, &again, &err);
  if (strcmp(dev->plugin->name, "vulkan") == 0) { /* which has no names for its memory */
    assert_int_equal(s, HEDDLE_EUNSUPPORTED);
  } else {
    ok(s, &err);
    assert_int_equal(heddle_tensor_shape(again)[1], 3);
    heddle_tensor_release(again);
  }
  heddle_tensor_release(t);
  nothing_is_left();
}

/* ---- of others: a struct whose deleter is not ours, over memory whose owner is another tensor */

typedef struct foreign {
  DLManagedTensor m;
  DLManagedTensor *of;
  int64_t shape[1];
  int deleted;
} foreign;

static void delete_foreign(DLManagedTensor *self) {
  foreign *f = self->manager_ctx;
  f->deleted++;
  if (f->of != NULL) f->of->deleter(f->of);
  f->of = NULL;
}

static void make_foreign(foreign *f, heddle_tensor *t) {
  memset(f, 0, sizeof *f);
  f->of = export(t);
  f->m.dl_tensor = f->of->dl_tensor;
  f->shape[0] = N;
  f->m.dl_tensor.shape = f->shape;
  f->m.dl_tensor.strides = NULL;
  f->m.manager_ctx = f;
  f->m.deleter = delete_foreign;
}

static void takes_memory_of_others(void **state) {
  (void)state;
  heddle_error err;
  heddle_device *dev = find("sim:0");
  heddle_tensor *t = numbers(dev, 7), *taken;
  foreign f;
  make_foreign(&f, t);
  ok(heddle_tensor_from_dlpack_on(dev, &f.m, &taken, &err), &err);
  heddle_tensor_release(t); /* the struct holds the memory */
  holds(taken, 7);
  DLManagedTensor *m = export(taken);
  if (strcmp(dev->plugin->name, "sim") != 0) /* a buffer of sim's has a handle of its own */
    assert_ptr_equal(m->dl_tensor.data, f.m.dl_tensor.data);
  heddle_tensor_release(taken);
  assert_int_equal(f.deleted, 0);
  heddle_tensor *next;
  ok(heddle_tensor_from_dlpack(m, &next, &err), &err);
  heddle_tensor *more = numbers(dev, 70);
  ok(heddle_tensor_copy(next, more, &err), &err);
  holds(next, 70);
  heddle_tensor_release(more);
  heddle_tensor_release(next);
  assert_int_equal(f.deleted, 1);
  nothing_is_left();
}

static void takes_a_part_of_memory_of_others(void **state) {
  (void)state;
  heddle_error err;
  heddle_device *dev = find("sim:0");
  heddle_tensor *t = numbers(dev, 7), *taken;
  foreign f;
  make_foreign(&f, t);
  f.m.dl_tensor.byte_offset = 2048;
  f.shape[0] = N;
  if (!unbounded(dev)) {
    assert_int_equal(heddle_tensor_from_dlpack_on(dev, &f.m, &taken, &err), HEDDLE_EINVAL);
    assert_non_null(strstr(err.text, "do not lie in"));
  }
  f.shape[0] = 300;
  f.m.dl_tensor.byte_offset = 4;
  assert_int_equal(heddle_tensor_from_dlpack_on(dev, &f.m, &taken, &err), HEDDLE_EUNSUPPORTED);
  assert_non_null(strstr(err.text, "multiple of"));
  f.m.dl_tensor.byte_offset = 2048;
  ok(heddle_tensor_from_dlpack_on(dev, &f.m, &taken, &err), &err);
  holds(taken, 7 + 512);
  heddle_tensor_release(taken);
  assert_int_equal(f.deleted, 1);
  heddle_tensor_release(t);
  nothing_is_left();
}

/* What is refused stays the caller's. */
static void refuses_what_it_cannot_take(void **state) {
  (void)state;
  heddle_error err;
  heddle_device *dev = find("sim:0"), *cpu, *other;
  heddle_tensor *t = numbers(dev, 7), *taken;
  foreign f;
  make_foreign(&f, t);
  const DLTensor good = f.m.dl_tensor;
  ok(heddle_context_find_device(context, "cpu", &cpu, &err), &err);
  ok(heddle_context_find_device(context, on("sim:1"), &other, &err), &err);
  int64_t turned[1] = {2}, huge[1] = {INT64_C(1) << 40};
  float host[4] = {0};
  static const char *const words[] = {"not on",           "name its own", "contiguous",
                                      "dimensions",       "several",      "2^63",
                                      "DLPack's type 99", "no device 77", "on device 0 of DLPack's type 1"};
  for (int i = 0; i < 9; i++) {
    heddle_device *at = dev;
    DLTensor *d = &f.m.dl_tensor;
    int64_t many[4] = {INT64_C(1) << 31, INT64_C(1) << 31, 4, 4};
    *d = good;
    f.shape[0] = N;
    if (i == 0) at = other;
    if (i == 1) at = cpu;
    if (i == 2) d->strides = turned;
    if (i == 3) d->ndim = 33;
    if (i == 4) d->dtype = (DLDataType){kDLInt, 4, 1};
    if (i == 5) d->shape = many, d->ndim = 4;
    if (i == 6) d->device.device_type = (DLDeviceType)99, at = NULL;
    if (i == 7) d->device.device_id = 77, at = NULL;
    if (i == 8) d->device = (DLDevice){kDLCPU, 0}, d->data = host;
    taken = t;
    assert_int_not_equal(heddle_tensor_from_dlpack_on(at, &f.m, &taken, &err), HEDDLE_OK);
    if (strstr(err.text, words[i]) == NULL) fail_msg("%d: %s", i, err.text);
    assert_null(taken);
  }
  f.m.dl_tensor = good;
  f.m.dl_tensor.shape = huge;
  if (!unbounded(dev)) assert_int_equal(heddle_tensor_from_dlpack_on(dev, &f.m, &taken, &err), HEDDLE_EINVAL);
  assert_int_equal(f.deleted, 0);
  f.m.deleter(&f.m);
  heddle_tensor_release(t);
  nothing_is_left();
}

/* Handles of sim's buffers are never reused, so that one of memory that is gone is detected. */
static void refuses_memory_that_is_gone(void **state) {
  (void)state;
  heddle_error err;
  heddle_device *dev = find("sim:0");
  heddle_tensor *t = numbers(dev, 7), *taken;
  foreign f;
  make_foreign(&f, t);
  heddle_tensor_release(t);
  delete_foreign(&f.m);
  assert_int_equal(heddle_tensor_from_dlpack_on(dev, &f.m, &taken, &err), HEDDLE_EINVAL);
  assert_non_null(strstr(err.text, "sim:0: adopt: the handle is no live buffer"));
  f.m.dl_tensor.data = NULL;
  assert_int_equal(heddle_tensor_from_dlpack_on(dev, &f.m, &taken, &err), HEDDLE_EINVAL);
  nothing_is_left();
}

static void refuses_memory_of_a_lost_device(void **state) {
  (void)state;
  heddle_error err;
  heddle_device *dev = find("sim:0");
  heddle_tensor *t = numbers(dev, 7), *taken;
  foreign f;
  make_foreign(&f, t);
  heddle__device_fault(dev, 7, "it fell off the bus");
  assert_int_equal(heddle_tensor_from_dlpack_on(dev, &f.m, &taken, &err), HEDDLE_EDEVICE);
  assert_non_null(strstr(err.text, "it fell off the bus"));
  assert_null(taken);
  assert_int_equal(f.deleted, 0);
  delete_foreign(&f.m);
  heddle_tensor_release(t);
  nothing_is_left();
}

/* Without a device's name the process's context is asked. */
static void finds_the_device_in_the_process(void **state) {
  (void)state;
  heddle_error err;
  heddle_context *ctx;
  heddle_device *dev, *found;
  ok(heddle_context_process(&ctx, &err), &err);
  if (heddle_context_find_device(ctx, on("sim:1"), &dev, &err) != HEDDLE_OK) {
    heddle_context_release(ctx);
    SKIP(err.text);
  }
  heddle_device_info info = {.struct_size = sizeof info};
  ok(heddle_device_get_info(dev, &info, &err), &err);
  ok(heddle_context_dlpack_device(ctx, info.type, (int32_t)info.index, &found, &err), &err);
  assert_ptr_equal(found, dev);
  ok(heddle_context_dlpack_device(ctx, kDLCPU, 0, &found, &err), &err);
  assert_string_equal(heddle_device_name(found), "cpu:0");
  assert_int_equal(heddle_context_dlpack_device(ctx, info.type, -1, &found, &err), HEDDLE_ENODEV);
  assert_non_null(strstr(err.text, "cpu:0"));
  assert_null(found);
  assert_int_equal(heddle_context_dlpack_device(NULL, 1, 0, &found, &err), HEDDLE_EINVAL);
  heddle_tensor *t = numbers(dev, 3), *taken;
  foreign f;
  make_foreign(&f, t);
  ok(heddle_tensor_from_dlpack(&f.m, &taken, &err), &err);
  assert_ptr_equal(heddle_tensor_device(taken), dev);
  holds(taken, 3);
  heddle_tensor_release(taken);
  assert_int_equal(f.deleted, 1);
  heddle_tensor_release(t);
  heddle_context_release(ctx);
}

static void keeps_what_is_read_only(void **state) {
  (void)state;
  heddle_error err;
  heddle_device *dev = find("sim:0");
  heddle_tensor *t = numbers(dev, 7), *more = numbers(dev, 8), *taken;
  DLManagedTensorVersioned *m;
  ok(heddle_tensor_to_dlpack_versioned(t, &m, &err), &err);
  assert_int_equal(m->flags, 0);
  m->flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  ok(heddle_tensor_from_dlpack_versioned(m, &taken, &err), &err);
  assert_int_equal(heddle_tensor_copy(taken, more, &err), HEDDLE_EINVAL);
  assert_non_null(strstr(err.text, "read-only"));
  holds(taken, 7);
  DLManagedTensor *legacy;
  assert_int_equal(heddle_tensor_to_dlpack(taken, &legacy, &err), HEDDLE_EUNSUPPORTED);
  ok(heddle_tensor_to_dlpack_versioned(taken, &m, &err), &err);
  assert_int_equal(m->flags, DLPACK_FLAG_BITMASK_READ_ONLY);
  m->deleter(m);
  heddle_tensor_release(taken);
  heddle_tensor_release(more);
  heddle_tensor_release(t);
  nothing_is_left();
}

/* The check layer has handles of its own for what comes from adopt, and sees every call on them. */
static void passes_through_the_layers(void **state) {
  (void)state;
  heddle_error err;
  const heddle_setting layers[] = {{"layers", "check"}};
  ok(heddle_context_create(layers, 1, NULL, NULL, &context, &err), &err);
  heddle_device *dev = find("sim:0");
  heddle_tensor *t = numbers(dev, 7), *more = numbers(dev, 80), *taken, *again;
  foreign f;
  make_foreign(&f, t);
  ok(heddle_tensor_from_dlpack_on(dev, &f.m, &taken, &err), &err);
  ok(heddle_tensor_from_dlpack(export(taken), &again, &err), &err);
  ok(heddle_tensor_copy(again, more, &err), &err);
  holds(t, 80);
  heddle_tensor_release(taken);
  heddle_tensor_release(again);
  assert_int_equal(f.deleted, 1);
  heddle_tensor_release(more);
  heddle_tensor_release(t);
  ok(heddle_device_health(dev, &err), &err);
  nothing_is_left();
}

/* ---- threads */

static void *drop(void *t) {
  heddle_tensor_release(t);
  return NULL;
}

static void is_given_back_by_any_thread(void **state) {
  (void)state;
  heddle_error err;
  heddle_device *dev = find("sim:0");
  heddle_tensor *t = numbers(dev, 7);
  enum { THREADS = 4, ROUNDS = 25 };
  for (int round = 0; round < ROUNDS; round++) {
    foreign f[2];
    pthread_t threads[THREADS];
    heddle_tensor *taken[2];
    for (int i = 0; i < 2; i++) {
      make_foreign(&f[i], t);
      ok(heddle_tensor_from_dlpack_on(dev, &f[i].m, &taken[i], &err), &err);
      heddle_tensor_retain(taken[i]);
    }
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, drop, taken[i % 2]), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    assert_int_equal(f[0].deleted, 1);
    assert_int_equal(f[1].deleted, 1);
  }
  holds(t, 7);
  heddle_tensor_release(t);
  nothing_is_left();
}

static void survives_failed_allocations(void **state) {
  (void)state;
  heddle_error err;
  heddle_device *dev = find("sim:0");
  heddle_tensor *t = numbers(dev, 7), *taken;
  foreign f;
  make_foreign(&f, t);
  heddle_status s = HEDDLE_ENOMEM;
  int failed = 0;
  for (uint64_t n = 1; s != HEDDLE_OK; n++, failed++) {
    heddle__alloc_fail_at(n);
    s = heddle_tensor_from_dlpack_on(dev, &f.m, &taken, &err);
    heddle__alloc_fail_at(0);
    assert_true((s == HEDDLE_OK) == (taken != NULL));
    assert_int_equal(f.deleted, 0);
  }
  assert_in_range(failed, 2, 20);
  holds(taken, 7);
  heddle_tensor_release(taken);
  assert_int_equal(f.deleted, 1);
  heddle_tensor_release(t);
  nothing_is_left();
}

CASES(CASE_ALL(shares_what_it_gave), CASE_ALL(shares_a_part_of_what_it_gave), CASE_TWICE(takes_no_elements),
      CASE_ALL(takes_memory_of_others), CASE_ALL(takes_a_part_of_memory_of_others),
      CASE_TWICE(refuses_what_it_cannot_take), CASE(refuses_memory_that_is_gone),
      CASE_TWICE(refuses_memory_of_a_lost_device), CASE_TWICE(finds_the_device_in_the_process),
      CASE(keeps_what_is_read_only), CASE_ALL(passes_through_the_layers), CASE_ALL(is_given_back_by_any_thread),
      CASE(survives_failed_allocations))
#else
static void needs_the_header(void **state) {
  (void)state;
  SKIP("no dlpack.h of DLPack 1.x; scripts/setup installs it");
}

CASES(CASE(needs_the_header))
#endif
