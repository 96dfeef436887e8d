/* DLPack in and out, both forms; the library's own declarations against DLPack's header, where it is there. */
#include "cases.h"

#include "core/alloc.h"
#include "core/tensor.h"

#if HEDDLE_HAVE_DLPACK
#include <dlpack/dlpack.h>

static int deleted;

static void delete_legacy(DLManagedTensor *self) {
  deleted += *(int *)self->manager_ctx;
}

static void delete_versioned(DLManagedTensorVersioned *self) {
  deleted += *(int *)self->manager_ctx;
}

static int one = 1;
static float values[8] = {0, 1, 2, 3, 4, 5, 6, 7};
static int64_t shape[2] = {3, 2}, strides[2] = {1, 3};

static DLTensor plain(void) {
  return (DLTensor){.data = values, .device = {kDLCPU, 0}, .ndim = 2, .dtype = {kDLFloat, 32, 1}, .shape = shape};
}

static heddle_tensor *make(void) {
  heddle_tensor *t;
  heddle_error err;
  assert_int_equal(heddle_tensor_wrap(values, HEDDLE_FLOAT32, shape, 2, strides, NULL, NULL, &t, &err), HEDDLE_OK);
  return t;
}

static void gives_both_forms(void **state) {
  (void)state;
  heddle_error err;
  heddle_tensor *t = make();
  DLManagedTensor *legacy;
  DLManagedTensorVersioned *versioned;
  assert_int_equal(heddle_tensor_to_dlpack(t, &legacy, &err), HEDDLE_OK);
  assert_int_equal(heddle_tensor_to_dlpack_versioned(t, &versioned, &err), HEDDLE_OK);
  heddle_tensor_release(t); /* each holds what it needs */
  const DLTensor *both[2] = {&legacy->dl_tensor, &versioned->dl_tensor};
  for (int i = 0; i < 2; i++) {
    assert_ptr_equal(both[i]->data, values);
    assert_int_equal(both[i]->device.device_type, kDLCPU);
    assert_int_equal(both[i]->ndim, 2);
    assert_int_equal(both[i]->dtype.code, kDLFloat);
    assert_int_equal(both[i]->dtype.bits, 32);
    assert_memory_equal(both[i]->shape, shape, sizeof shape);
    assert_memory_equal(both[i]->strides, strides, sizeof strides);
    assert_int_equal(both[i]->byte_offset, 0);
  }
  assert_int_equal(versioned->version.major, 1);
  assert_int_equal(versioned->flags, 0);
  legacy->deleter(legacy);
  versioned->deleter(versioned);
  assert_int_equal(heddle__alloc_live(), 0);
}

static void says_what_is_read_only_or_padded(void **state) {
  (void)state;
  heddle_error err;
  heddle_tensor *t;
  DLManagedTensor *legacy;
  DLManagedTensorVersioned *versioned;
  assert_int_equal(heddle__tensor_wrap_const(values, HEDDLE_FLOAT32, shape, 2, NULL, NULL, NULL, &t, &err), HEDDLE_OK);
  assert_int_equal(heddle_tensor_to_dlpack(t, &legacy, &err), HEDDLE_EUNSUPPORTED);
  assert_int_equal(heddle_tensor_to_dlpack_versioned(t, &versioned, &err), HEDDLE_OK);
  assert_int_equal(versioned->flags, DLPACK_FLAG_BITMASK_READ_ONLY);
  heddle_tensor_release(t);
  assert_int_equal(heddle_tensor_from_dlpack_versioned(versioned, &t, &err), HEDDLE_OK);
  assert_true(t->read_only);
  heddle_tensor_release(t);
  assert_int_equal(heddle_tensor_create(NULL, (heddle_dtype){0, 4, 1}, shape, 2, &t, &err), HEDDLE_OK);
  assert_int_equal(heddle_tensor_to_dlpack(t, &legacy, &err), HEDDLE_EUNSUPPORTED);
  assert_int_equal(heddle_tensor_to_dlpack_versioned(t, &versioned, &err), HEDDLE_OK);
  assert_int_equal(versioned->flags, DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED);
  heddle_tensor_release(t);
  versioned->deleter(versioned);
  assert_int_equal(heddle__alloc_live(), 0);
}

static void takes_both_forms(void **state) {
  (void)state;
  heddle_error err;
  heddle_tensor *t;
  DLManagedTensor legacy = {plain(), &one, delete_legacy};
  legacy.dl_tensor.byte_offset = 8;
  assert_int_equal(heddle_tensor_from_dlpack(&legacy, &t, &err), HEDDLE_OK);
  assert_ptr_equal(heddle_tensor_data(t), values + 2);
  assert_int_equal(heddle_tensor_strides(t)[0], 2); /* NULL means row-major */
  heddle_tensor_release(heddle_tensor_retain(t));
  assert_int_equal(deleted, 0);
  heddle_tensor_release(t);
  assert_int_equal(deleted, 1);
  legacy.deleter = NULL;
  assert_int_equal(heddle_tensor_from_dlpack(&legacy, &t, &err), HEDDLE_OK);
  heddle_tensor_release(t);
  DLManagedTensorVersioned versioned = {
      .version = {1, 9}, .manager_ctx = &one, .deleter = delete_versioned, .dl_tensor = plain()};
  versioned.dl_tensor.strides = strides;
  versioned.dl_tensor.device.device_type = kDLCUDAHost;
  assert_int_equal(heddle_tensor_from_dlpack_versioned(&versioned, &t, &err), HEDDLE_OK);
  assert_false(heddle_tensor_is_contiguous(t));
  heddle_tensor_release(t);
  assert_int_equal(deleted, 2);
}

/* On failure the struct stays the caller's: its deleter is not called, but for another major. */
static void refuses_what_it_cannot_take(void **state) {
  (void)state;
  heddle_error err;
  heddle_tensor *t;
  int64_t wrong[2] = {-1, 2};
  for (int i = 0; i < 6; i++) {
    DLManagedTensor m = {plain(), &one, delete_legacy};
    static const char *const words[] = {"no device 3 of DLPack's type 2", "type 99",      "dimensions", "dimension 0",
                                        "several elements into a byte",   "without bytes"};
    if (i == 0) m.dl_tensor.device = (DLDevice){kDLCUDA, 3};
    if (i == 1) m.dl_tensor.device.device_type = (DLDeviceType)99;
    if (i == 2) m.dl_tensor.ndim = -1;
    if (i == 3) m.dl_tensor.shape = wrong;
    if (i == 4) m.dl_tensor.dtype = (DLDataType){kDLInt, 4, 1};
    if (i == 5) m.dl_tensor.dtype = (DLDataType){kDLInt, 0, 1};
    assert_int_not_equal(heddle_tensor_from_dlpack(&m, &t, &err), HEDDLE_OK);
    if (strstr(err.text, words[i]) == NULL) fail_msg("%d: %s", i, err.text);
    assert_null(t);
  }
  assert_int_equal(deleted, 0);
  DLManagedTensorVersioned other = {.version = {2, 0}, .manager_ctx = &one, .deleter = delete_versioned};
  assert_int_equal(heddle_tensor_from_dlpack_versioned(&other, &t, &err), HEDDLE_EABI);
  assert_int_equal(deleted, 1);
  assert_int_equal(heddle_tensor_from_dlpack(NULL, &t, &err), HEDDLE_EINVAL);
  assert_int_equal(heddle_tensor_from_dlpack_versioned(NULL, &t, &err), HEDDLE_EINVAL);
}

/* TVM up to v0.22 gives bool as (uint, 1), a byte each. */
static void takes_the_older_bool(void **state) {
  (void)state;
  heddle_error err;
  heddle_tensor *t;
  DLManagedTensor m = {plain(), &one, NULL};
  m.dl_tensor.dtype = (DLDataType){kDLUInt, 1, 1};
  assert_int_equal(heddle_tensor_from_dlpack(&m, &t, &err), HEDDLE_OK);
  assert_int_equal(heddle_tensor_dtype(t).code, HEDDLE_DTYPE_BOOL);
  assert_int_equal(heddle_tensor_dtype(t).bits, 8);
  assert_int_equal(heddle_tensor_bytes(t), 6);
  heddle_tensor_release(t);
  DLManagedTensorVersioned v = {.version = {1, 1}, .dl_tensor = m.dl_tensor};
  assert_int_equal(heddle_tensor_from_dlpack_versioned(&v, &t, &err), HEDDLE_EUNSUPPORTED);
  v.flags = DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
  assert_int_equal(heddle_tensor_from_dlpack_versioned(&v, &t, &err), HEDDLE_OK);
  heddle_tensor_release(t);
}

static void survives_failed_allocations(void **state) {
  (void)state;
  heddle_error err;
  heddle_tensor *t = make(), *got;
  DLManagedTensor *legacy;
  DLManagedTensorVersioned *versioned;
  DLManagedTensor given = {plain(), &one, delete_legacy};
  heddle__alloc_fail_at(1);
  assert_int_equal(heddle_tensor_to_dlpack(t, &legacy, &err), HEDDLE_ENOMEM);
  heddle__alloc_fail_at(1);
  assert_int_equal(heddle_tensor_to_dlpack_versioned(t, &versioned, &err), HEDDLE_ENOMEM);
  heddle__alloc_fail_at(1);
  assert_int_equal(heddle_tensor_from_dlpack(&given, &got, &err), HEDDLE_ENOMEM);
  assert_int_equal(deleted, 0);
  heddle_tensor_release(t);
  assert_int_equal(heddle__alloc_live(), 0);
}

CASES(CASE(gives_both_forms), CASE(says_what_is_read_only_or_padded), CASE(takes_both_forms),
      CASE(refuses_what_it_cannot_take), CASE(takes_the_older_bool), CASE(survives_failed_allocations))
#else
static void needs_the_header(void **state) {
  (void)state;
  SKIP("no dlpack.h of DLPack 1.x; scripts/setup installs it");
}

CASES(CASE(needs_the_header))
#endif
