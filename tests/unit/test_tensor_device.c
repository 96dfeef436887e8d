/* labels: alone
 * Tensors on a device that is not inline (sim, PoCL): made zeroed, copied to and from the host and between devices, and
 * what a device's failure leaves behind. */
#include "unit/tensor_device.h"

#include <time.h>

#include "core/alloc.h"
#include "core/device.h"
#include "core/tensor.h"

static heddle_tensor *create(heddle_device *dev, const int64_t *shape, uint32_t ndim) {
  heddle_tensor *t;
  heddle_error err;
  if (heddle_tensor_create(dev, INT32, shape, ndim, &t, &err) != HEDDLE_OK) fail_msg("%s", err.text);
  return t;
}

static void copies_to_a_device_and_back(void **state) {
  (void)state;
  heddle_device *dev = find("sim:0");
  heddle_error err;
  const int64_t shape[2] = {5, 3}, strides[2] = {1, 5};
  int32_t data[15], turned[15];
  for (int i = 0; i < 15; i++) data[i] = i + 1;
  heddle_tensor *far = create(dev, shape, 2), *near = create(NULL, shape, 2), *t;
  assert_ptr_equal(heddle_tensor_device(far), dev);
  assert_null(heddle_tensor_data(far));
  assert_true(heddle_tensor_is_contiguous(far));
  memset(heddle_tensor_data(near), 0xFF, 60);
  assert_int_equal(heddle_tensor_copy(near, far, &err), HEDDLE_OK);
  for (int i = 0; i < 15; i++) assert_int_equal(((int32_t *)heddle_tensor_data(near))[i], 0); /* it came zeroed */
  assert_int_equal(heddle_tensor_wrap(data, INT32, shape, 2, strides, NULL, NULL, &t, &err), HEDDLE_OK);
  assert_int_equal(heddle_tensor_copy(far, t, &err), HEDDLE_OK); /* strided to far */
  assert_int_equal(heddle_tensor_copy(near, far, &err), HEDDLE_OK);
  for (int i = 0; i < 15; i++) assert_int_equal(((int32_t *)heddle_tensor_data(near))[i], data[i % 3 * 5 + i / 3]);
  heddle_tensor_release(t);
  assert_int_equal(heddle_tensor_wrap(turned, INT32, shape, 2, strides, NULL, NULL, &t, &err), HEDDLE_OK);
  assert_int_equal(heddle_tensor_copy(t, far, &err), HEDDLE_OK); /* far to strided */
  assert_memory_equal(turned, data, sizeof data);
  heddle_tensor_release(t);
  heddle_context_release(context); /* the tensor holds what it needs */
  assert_int_equal(heddle_tensor_copy(far, near, &err), HEDDLE_OK);
  heddle_tensor_release(near);
  heddle_tensor_release(far);
}

static void copies_between_devices(void **state) {
  (void)state;
  heddle_device *a = find("sim:0"), *b = find("sim:1");
  heddle_error err;
  const int64_t shape[1] = {1001};
  heddle_tensor *host = create(NULL, shape, 1), *one = create(a, shape, 1), *two = create(a, shape, 1),
                *three = create(b, shape, 1), *back = create(NULL, shape, 1);
  for (int i = 0; i < 1001; i++) ((int32_t *)heddle_tensor_data(host))[i] = i * i;
  assert_int_equal(heddle_tensor_copy(one, host, &err), HEDDLE_OK);
  assert_int_equal(heddle_tensor_copy(two, one, &err), HEDDLE_OK);   /* within a device */
  assert_int_equal(heddle_tensor_copy(three, two, &err), HEDDLE_OK); /* to another */
  assert_int_equal(heddle_tensor_copy(back, three, &err), HEDDLE_OK);
  assert_memory_equal(heddle_tensor_data(back), heddle_tensor_data(host), 4004);
  heddle_tensor *all[] = {host, one, two, three, back};
  for (int i = 0; i < 5; i++) heddle_tensor_release(all[i]);
  heddle_context_release(context);
}

static void takes_empty_and_single_elements(void **state) {
  (void)state;
  heddle_device *dev = find("sim:0");
  heddle_error err;
  const int64_t none[2] = {3, 0};
  heddle_tensor *empty = create(dev, none, 2), *near = create(NULL, none, 2), *scalar = create(dev, NULL, 0), *byte;
  assert_int_equal(heddle_tensor_copy(near, empty, &err), HEDDLE_OK);
  assert_int_equal(heddle_tensor_copy(empty, near, &err), HEDDLE_OK);
  assert_int_equal(heddle_tensor_bytes(scalar), 4);
  assert_int_equal(heddle_tensor_create(dev, (heddle_dtype){6, 8, 1}, NULL, 0, &byte, &err), HEDDLE_OK);
  heddle_tensor_release(byte);
  heddle_tensor_release(empty);
  heddle_tensor_release(near);
  heddle_tensor_release(scalar);
  heddle_context_release(context);
}

/* An inline device computes on host memory: its tensors are the host's. */
static void gives_host_memory_for_an_inline_device(void **state) {
  (void)state;
  heddle_device *dev = find("cpu");
  const int64_t shape[1] = {3};
  heddle_tensor *t = create(dev, shape, 1);
  assert_null(heddle_tensor_device(t));
  assert_non_null(heddle_tensor_data(t));
  heddle_tensor_release(t);
  heddle_context_release(context);
}

/* What is held once nothing was given back for 20 ms: before that, a device's own thread may hold a block more. */
static size_t at_rest(void) {
  size_t live = heddle__alloc_live();
  for (int quiet = 0, tries = 0; quiet < 20 && tries < 5000; quiet++, tries++) {
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    if (heddle__alloc_live() != live) quiet = 0;
    live = heddle__alloc_live();
  }
  return live;
}

/* A device's own thread may still hold a block for a moment. */
static bool settles(size_t live) {
  for (int i = 0; i < 2000 && heddle__alloc_live() != live; i++)
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  return heddle__alloc_live() == live;
}

static void survives_failed_allocations(void **state) {
  (void)state;
  heddle_device *dev = find("sim:0");
  const int64_t shape[1] = {100}, huge[1] = {INT64_C(1) << 60};
  heddle_tensor *t = create(dev, shape, 1); /* the device stays open, so that what it keeps is not counted */
  heddle_error err;
  size_t live = at_rest();
  heddle_status s = HEDDLE_ENOMEM;
  for (uint64_t n = 1; s != HEDDLE_OK; n++) {
    heddle_tensor *other = NULL;
    heddle__alloc_fail_at(n);
    s = heddle_tensor_create(dev, INT32, shape, 1, &other, &err);
    heddle__alloc_fail_at(0);
    assert_true((s == HEDDLE_OK) == (other != NULL));
    heddle_tensor_release(other);
    assert_true(settles(live));
  }
  heddle_tensor *big = NULL;
  s = heddle_tensor_create(dev, INT32, huge, 1, &big, &err);
  assert_true(s == HEDDLE_ENOMEM || s == HEDDLE_ELIMIT);
  assert_non_null(strstr(err.text, on("sim:0")));
  assert_null(big);
  assert_true(settles(live));
  heddle_tensor_release(t);
  heddle_context_release(context);
}

CASES(CASE_TWICE(copies_to_a_device_and_back), CASE_ALL(copies_between_devices),
      CASE_ALL(takes_empty_and_single_elements), CASE(gives_host_memory_for_an_inline_device),
      CASE_TWICE(survives_failed_allocations))
