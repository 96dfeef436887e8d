/* Tensors of the host: made, wrapped, copied with any strides, in and out of .npy files. */
#include "cases.h"

#include <unistd.h>

#include "core/alloc.h"
#include "core/tensor.h"

static const heddle_dtype INT32 = {HEDDLE_DTYPE_INT, 32, 1};
static int released;

static void count_release(void *user) {
  released += *(int *)user;
}

static heddle_tensor *create(heddle_dtype dtype, const int64_t *shape, uint32_t ndim) {
  heddle_tensor *t;
  heddle_error err;
  if (heddle_tensor_create(NULL, dtype, shape, ndim, &t, &err) != HEDDLE_OK) fail_msg("%s", err.text);
  return t;
}

static heddle_tensor *wrap(void *data, const int64_t *shape, uint32_t ndim, const int64_t *strides) {
  heddle_tensor *t;
  heddle_error err;
  if (heddle_tensor_wrap(data, INT32, shape, ndim, strides, NULL, NULL, &t, &err) != HEDDLE_OK)
    fail_msg("%s", err.text);
  return t;
}

static void creates_zeroed_aligned_memory(void **state) {
  (void)state;
  const int64_t shape[3] = {2, 3, 4};
  heddle_tensor *t = create(HEDDLE_FLOAT32, shape, 3);
  assert_int_equal((uintptr_t)heddle_tensor_data(t) % 256, 0);
  assert_int_equal(heddle_tensor_bytes(t), 96);
  assert_int_equal(heddle_tensor_ndim(t), 3);
  assert_int_equal(heddle_tensor_strides(t)[0], 12);
  assert_int_equal(heddle_tensor_strides(t)[2], 1);
  assert_true(heddle_tensor_is_contiguous(t));
  assert_null(heddle_tensor_device(t));
  for (int i = 0; i < 24; i++) assert_true(((float *)heddle_tensor_data(t))[i] == 0.0F);
  heddle_tensor_release(heddle_tensor_retain(t));
  heddle_tensor_release(t);
  heddle_tensor_release(NULL);
  t = create(HEDDLE_FLOAT32, NULL, 0);
  assert_int_equal(heddle_tensor_bytes(t), 4);
  heddle_tensor_release(t);
  const int64_t none[2] = {1000, 0};
  t = create(HEDDLE_FLOAT32, none, 2);
  assert_int_equal(heddle_tensor_bytes(t), 0);
  heddle_tensor_release(t);
  assert_int_equal(heddle__alloc_live(), 0);
}

static void refuses_wrong_shapes(void **state) {
  (void)state;
  heddle_tensor *t;
  heddle_error err;
  int64_t shape[33] = {-1};
  const int64_t huge[3] = {INT64_C(1) << 31, INT64_C(1) << 30, 4}, hidden[3] = {INT64_MAX, 0, INT64_MAX};
  assert_int_equal(heddle_tensor_create(NULL, INT32, shape, 1, &t, &err), HEDDLE_EINVAL);
  assert_non_null(strstr(err.text, "dimension 0 is -1"));
  shape[0] = 1;
  assert_int_equal(heddle_tensor_create(NULL, INT32, shape, 33, &t, &err), HEDDLE_EINVAL);
  assert_int_equal(heddle_tensor_create(NULL, INT32, NULL, 1, &t, &err), HEDDLE_EINVAL);
  assert_int_equal(heddle_tensor_create(NULL, INT32, huge, 3, &t, &err), HEDDLE_ELIMIT);
  assert_non_null(strstr(err.text, "[2147483648, 1073741824, 4]"));
  assert_int_equal(heddle_tensor_create(NULL, INT32, hidden, 3, &t, &err), HEDDLE_ELIMIT);
  assert_int_equal(heddle_tensor_create(NULL, (heddle_dtype){2, 32, 0}, shape, 1, &t, &err), HEDDLE_EINVAL);
  assert_int_equal(heddle_tensor_create(NULL, INT32, shape, 1, &t, NULL), HEDDLE_OK);
  heddle_tensor_release(t);
  int one = 1;
  const int64_t far[1] = {INT64_MAX}, two[1] = {2};
  assert_int_equal(heddle_tensor_wrap(&one, INT32, two, 1, far, count_release, &one, &t, &err), HEDDLE_ELIMIT);
  assert_int_equal(heddle_tensor_wrap(NULL, INT32, two, 1, NULL, count_release, &one, &t, &err), HEDDLE_EINVAL);
  assert_int_equal(released, 0);
  assert_int_equal(heddle__alloc_live(), 0);
}

static void gives_wrapped_memory_back_once(void **state) {
  (void)state;
  int one = 1;
  int32_t data[4] = {1, 2, 3, 4};
  const int64_t shape[1] = {4};
  heddle_tensor *t;
  heddle_error err;
  assert_int_equal(heddle_tensor_wrap(data, INT32, shape, 1, NULL, count_release, &one, &t, &err), HEDDLE_OK);
  assert_ptr_equal(heddle_tensor_data(t), data);
  heddle_tensor_release(heddle_tensor_retain(t));
  assert_int_equal(released, 0);
  heddle_tensor_release(t);
  assert_int_equal(released, 1);
}

static void copies_with_any_strides(void **state) {
  (void)state;
  heddle_error err;
  int32_t from[24], to[64];
  for (int i = 0; i < 24; i++) from[i] = i;
  const int64_t shape[3] = {2, 3, 4};
  static const int64_t strides[][3] = {{12, 4, 1},   {1, 2, 6},  {12, 1, 3}, {-12, 4, 1},
                                       {12, -4, -1}, {16, 5, 1}, {32, 8, 2}};
  heddle_tensor *src = wrap(from, shape, 3, NULL);
  for (size_t a = 0; a < sizeof strides / sizeof strides[0]; a++) {
    const int64_t *s = strides[a];
    int64_t base = (s[0] < 0 ? -s[0] : 0) + (s[1] < 0 ? -2 * s[1] : 0) + (s[2] < 0 ? -3 * s[2] : 0);
    memset(to, 0xFF, sizeof to);
    heddle_tensor *dst = wrap(to + base, shape, 3, s), *back = create(INT32, shape, 3);
    assert_int_equal(heddle_tensor_is_contiguous(dst), a == 0);
    assert_int_equal(heddle_tensor_copy(dst, src, &err), HEDDLE_OK);
    for (int64_t i = 0; i < 24; i++) assert_int_equal(to[base + i / 12 * s[0] + i / 4 % 3 * s[1] + i % 4 * s[2]], i);
    int untouched = 0;
    for (int i = 0; i < 64; i++) untouched += to[i] == -1;
    assert_int_equal(untouched, 40);
    assert_int_equal(heddle_tensor_copy(back, dst, &err), HEDDLE_OK);
    assert_memory_equal(heddle_tensor_data(back), from, sizeof from);
    heddle_tensor_release(dst);
    heddle_tensor_release(back);
  }
  const int64_t still[3] = {0, 0, 1};
  heddle_tensor *repeated = wrap(from, shape, 3, still), *out = create(INT32, shape, 3);
  assert_int_equal(heddle_tensor_copy(out, repeated, &err), HEDDLE_OK);
  assert_int_equal(((int32_t *)heddle_tensor_data(out))[23], 3);
  assert_int_equal(heddle_tensor_copy(repeated, out, &err), HEDDLE_EINVAL);
  assert_non_null(strstr(err.text, "stride 0"));
  heddle_tensor_release(repeated);
  heddle_tensor_release(out);
  heddle_tensor_release(src);
}

/* A transpose onto itself goes through memory of its own. */
static void copies_what_overlaps(void **state) {
  (void)state;
  heddle_error err;
  int32_t data[9] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
  const int32_t turned[9] = {0, 3, 6, 1, 4, 7, 2, 5, 8};
  const int64_t shape[2] = {3, 3}, strides[2] = {1, 3};
  heddle_tensor *dst = wrap(data, shape, 2, NULL), *src = wrap(data, shape, 2, strides);
  assert_int_equal(heddle_tensor_copy(dst, src, &err), HEDDLE_OK);
  assert_memory_equal(data, turned, sizeof data);
  assert_int_equal(heddle_tensor_copy(dst, dst, &err), HEDDLE_OK);
  assert_memory_equal(data, turned, sizeof data);
  heddle__alloc_fail_at(1);
  assert_int_equal(heddle_tensor_copy(dst, src, &err), HEDDLE_ENOMEM);
  heddle_tensor_release(dst);
  heddle_tensor_release(src);
}

static void refuses_copies_of_unlike_tensors(void **state) {
  (void)state;
  heddle_error err;
  const int64_t a[2] = {2, 3}, b[2] = {3, 2};
  heddle_tensor *x = create(INT32, a, 2), *y = create(INT32, b, 2), *z = create(HEDDLE_FLOAT32, a, 2), *r;
  assert_int_equal(heddle_tensor_copy(x, y, &err), HEDDLE_EINVAL);
  assert_non_null(strstr(err.text, "[3, 2] into shape [2, 3]"));
  assert_int_equal(heddle_tensor_copy(x, z, &err), HEDDLE_EINVAL);
  assert_non_null(strstr(err.text, "float32 into a tensor of int32"));
  assert_int_equal(heddle__tensor_wrap_const(heddle_tensor_data(x), INT32, a, 2, NULL, NULL, NULL, &r, &err),
                   HEDDLE_OK);
  assert_int_equal(heddle_tensor_copy(r, x, &err), HEDDLE_EINVAL);
  assert_non_null(strstr(err.text, "read-only"));
  heddle_tensor_release(r);
  heddle_tensor_release(x);
  heddle_tensor_release(y);
  heddle_tensor_release(z);
}

static void names_dtypes_and_shapes(void **state) {
  (void)state;
  static const struct {
    heddle_dtype dtype;
    uint32_t bytes;
    const char *name;
  } all[] = {{{2, 32, 1}, 4, "float32"},
             {{6, 8, 1}, 1, "bool"},
             {{4, 16, 1}, 2, "bfloat16"},
             {{0, 8, 4}, 4, "int8x4"},
             {{1, 1, 1}, 1, "uint1"},
             {{0, 4, 1}, 1, "int4"},
             {{5, 64, 1}, 8, "complex64"},
             {{9, 8, 1}, 1, "dtype(9,8,1)"},
             {{10, 8, 1}, 1, "e4m3_float8"},
             {{3, 0, 0}, 0, "unknown"},
             {{255, 255, 65535}, 2088929, "dtype(255,255,65535)"}};
  char text[32];
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    heddle__dtype_name(all[i].dtype, text);
    assert_string_equal(text, all[i].name);
    assert_int_equal(heddle__dtype_bytes(all[i].dtype), all[i].bytes);
  }
  const int64_t shape[4] = {1, INT64_MAX, -1, 4};
  heddle__shape_name(shape, 0, text, 16);
  assert_string_equal(text, "[]");
  heddle__shape_name(shape, 4, text, 16);
  assert_string_equal(text, "[1...]");
  heddle__shape_name(shape, 1, text, 16);
  assert_string_equal(text, "[1]");
}

/* ---------------------------------------------------------------- .npy */

static heddle_status read_bytes(const void *bytes, size_t n, heddle_tensor **out, heddle_error *err) {
  char *copy = malloc(n + 1);
  memcpy(copy, bytes, n);
  FILE *file = fmemopen(copy, n > 0 ? n : 1, "rb");
  assert_non_null(file);
  heddle_status s = heddle__npy_read(file, "x.npy", out, err);
  fclose(file);
  free(copy);
  return s;
}

/* A version 1 file with this header and these bytes of data; its length. */
static size_t make_npy(char *out, const char *header, const char *data, size_t bytes) {
  size_t n = strlen(header);
  memcpy(out, "\x93NUMPY\1\0", 8);
  out[8] = (char)(n & 255);
  out[9] = (char)(n >> 8);
  memcpy(out + 10, header, n);
  if (bytes > 0) memcpy(out + 10 + n, data, bytes);
  return 10 + n + bytes;
}

static void reads_npy_headers(void **state) {
  (void)state;
  static const struct {
    const char *header;
    size_t bytes;
    heddle_status status;
    const char *words; /* or the dtype */
  } all[] = {
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }\n", 4, HEDDLE_OK, "float32"},
      {"{'shape': (), 'fortran_order': True, 'descr': '|b1'}", 1, HEDDLE_OK, "bool"},
      {"{\"descr\": \"<c16\", 'fortran_order': False, 'shape': (2L, 1L)}  \n", 32, HEDDLE_OK, "complex128"},
      {"{'descr': '>i1', 'fortran_order': False, 'shape': (0, 7)}", 0, HEDDLE_OK, "int8"},
      {"{'descr': '<u8', 'fortran_order': False, 'shape': (1)}", 8, HEDDLE_OK, "uint64"},
      {"{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}", 4, HEDDLE_EFORMAT, "little-endian"},
      {"{'descr': '=f4', 'fortran_order': False, 'shape': (1,)}", 4, HEDDLE_EFORMAT, "little-endian"},
      {"{'descr': '<f3', 'fortran_order': False, 'shape': (1,)}", 4, HEDDLE_EFORMAT, "'<f3' is not read"},
      {"{'descr': '<f', 'fortran_order': False, 'shape': (1,)}", 4, HEDDLE_EFORMAT, "'<f' is not read"},
      {"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", 8, HEDDLE_EFORMAT, "'|O' is not read"},
      {"{'descr': '<U4', 'fortran_order': False, 'shape': (1,)}", 16, HEDDLE_EFORMAT, "'<U4' is not read"},
      {"{'descr': '', 'fortran_order': False, 'shape': (1,)}", 16, HEDDLE_EFORMAT, "'' is not read"},
      {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", 4, HEDDLE_EFORMAT, "records are not read"},
      {"{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}", 4, HEDDLE_EFORMAT, "True or False"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", 4, HEDDLE_EFORMAT, "a dimension"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,}", 4, HEDDLE_EFORMAT, "a dimension"},
      {"{'descr': '<f4', 'fortran_order': False}", 4, HEDDLE_EFORMAT, "the keys"},
      {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': ()}", 4, HEDDLE_EFORMAT, "once"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': ()} x", 4, HEDDLE_EFORMAT, "the header's end"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (), 'more': 1}", 4, HEDDLE_EFORMAT, "once"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,)}", 4, HEDDLE_EFORMAT, "below 2^63"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904,)}", 4, HEDDLE_ELIMIT, "2^63 bytes"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1152921504606846976,)}", 4, HEDDLE_EFORMAT, "and it has 4"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", 4, HEDDLE_EFORMAT, "8 bytes of data, and it has 4"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", 9, HEDDLE_EFORMAT, "8 bytes of data, and it has 9"},
      {"", 0, HEDDLE_EFORMAT, "'{'"},
  };
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    char file[300];
    static const char data[64];
    heddle_tensor *t = NULL;
    heddle_error err = {0};
    char name[32];
    heddle_status s = read_bytes(file, make_npy(file, all[i].header, data, all[i].bytes), &t, &err);
    if (s == HEDDLE_OK) heddle__dtype_name(heddle_tensor_dtype(t), name);
    const char *said = s == HEDDLE_OK ? name : err.text;
    if (s != all[i].status || strstr(said, all[i].words) == NULL) fail_msg("%s: '%s'", all[i].header, said);
    if (s != HEDDLE_OK && strncmp(err.text, "x.npy: ", 7) != 0) fail_msg("%s", err.text);
    heddle_tensor_release(t);
  }
  assert_int_equal(heddle__alloc_live(), 0);
}

static void refuses_cut_npy_files(void **state) {
  (void)state;
  char file[300];
  size_t n = make_npy(file, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", "12345678", 8);
  for (size_t i = 0; i < n; i++) {
    heddle_tensor *t;
    heddle_error err;
    assert_int_equal(read_bytes(file, i, &t, &err), HEDDLE_EFORMAT);
  }
  heddle_tensor *t;
  heddle_error err;
  file[6] = 4;
  assert_int_equal(read_bytes(file, n, &t, &err), HEDDLE_EFORMAT);
  assert_non_null(strstr(err.text, "format 4.0"));
  file[6] = 2;
  memcpy(file + 10, "\xff\xff", 2);
  assert_int_equal(read_bytes(file, n, &t, &err), HEDDLE_ELIMIT);
}

static void saves_and_loads_npy(void **state) {
  (void)state;
  heddle_error err;
  char path[] = "/tmp/heddle-npy-XXXXXX";
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  close(fd);
  int32_t data[6] = {1, 2, 3, 4, 5, 6};
  const int64_t shape[2] = {3, 2}, strides[2] = {1, 3};
  const int32_t sorted[6] = {1, 4, 2, 5, 3, 6};
  heddle_tensor *t = wrap(data, shape, 2, strides), *again;
  assert_int_equal(heddle_tensor_save_npy(t, path, &err), HEDDLE_OK);
  if (heddle_tensor_load_npy(path, &again, &err) != HEDDLE_OK) fail_msg("%s", err.text);
  assert_int_equal(heddle_tensor_ndim(again), 2);
  assert_memory_equal(heddle_tensor_shape(again), shape, sizeof shape);
  assert_memory_equal(heddle_tensor_data(again), sorted, sizeof sorted);
  heddle_tensor_release(t);
  heddle_tensor_release(again);
  static const struct {
    heddle_dtype from, to;
  } kinds[] = {{{6, 8, 1}, {6, 8, 1}}, {{4, 16, 1}, {1, 16, 1}}, {{5, 128, 1}, {5, 128, 1}}, {{0, 64, 1}, {0, 64, 1}}};
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
    t = create(kinds[i].from, shape, (uint32_t)(i % 3));
    assert_int_equal(heddle_tensor_save_npy(t, path, &err), HEDDLE_OK);
    assert_int_equal(heddle_tensor_load_npy(path, &again, &err), HEDDLE_OK);
    assert_memory_equal(&again->dtype, &kinds[i].to, sizeof(heddle_dtype));
    assert_int_equal(again->bytes, t->bytes);
    heddle_tensor_release(t);
    heddle_tensor_release(again);
  }
  t = create((heddle_dtype){0, 8, 4}, shape, 1);
  assert_int_equal(heddle_tensor_save_npy(t, path, &err), HEDDLE_EUNSUPPORTED);
  assert_int_equal(heddle_tensor_save_npy(t, "/no/such/folder/x.npy", NULL), HEDDLE_EUNSUPPORTED);
  heddle_tensor_release(t);
  remove(path);
  assert_int_equal(heddle_tensor_load_npy(path, &again, &err), HEDDLE_EIO);
  assert_int_equal(heddle_tensor_load_npy("/dev/null", &again, &err), HEDDLE_EIO);
  assert_int_equal(heddle__alloc_live(), 0);
}

static void reads_fortran_order(void **state) {
  (void)state;
  char file[300], data[24];
  for (int i = 0; i < 24; i++) data[i] = (char)i;
  heddle_tensor *t;
  heddle_error err;
  size_t n = make_npy(file, "{'descr': '|i1', 'fortran_order': True, 'shape': (2, 3, 4)}", data, 24);
  assert_int_equal(read_bytes(file, n, &t, &err), HEDDLE_OK);
  const char *sorted = heddle_tensor_data(t);
  for (int i = 0; i < 24; i++) assert_int_equal(sorted[i], i / 12 + i / 4 % 3 * 2 + i % 4 * 6);
  heddle_tensor_release(t);
}

CASES(CASE(creates_zeroed_aligned_memory), CASE(refuses_wrong_shapes), CASE(gives_wrapped_memory_back_once),
      CASE(copies_with_any_strides), CASE(copies_what_overlaps), CASE(refuses_copies_of_unlike_tensors),
      CASE(names_dtypes_and_shapes), CASE(reads_npy_headers), CASE(refuses_cut_npy_files), CASE(saves_and_loads_npy),
      CASE(reads_fortran_order))
