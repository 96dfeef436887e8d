/* Params blobs: TVM's bytes in and out, and what malformed or hostile ones get. */
#include "cases.h"

#include "core/alloc.h"
#include "graph/graph.h"

/* The worked example of the format: float32[2] "w" = {1, -2.5}. */
static const unsigned char example[97] = "\xb7\x9c\x04\x05\x4f\x8d\xe5\xf7\0\0\0\0\0\0\0\0"
                                         "\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0w\1\0\0\0\0\0\0\0"
                                         "\x3f\xa1\xb4\x96\xf0\x40\x5e\xdd\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0"
                                         "\1\0\0\0\2\x20\1\0\2\0\0\0\0\0\0\0\10\0\0\0\0\0\0\0\0\0\x80\x3f\0\0\x20";

static void complete(unsigned char *blob) {
  memcpy(blob, example, sizeof example);
  blob[96] = 0xc0; /* the string's terminator stands in its place */
}

static heddle_status parse(const void *data, size_t bytes, heddle_params **out, heddle_error *err) {
  return heddle_params_parse(data, bytes, "p.params", NULL, out, err);
}

static void reads_the_example(void **state) {
  (void)state;
  unsigned char blob[97];
  heddle_params *p;
  heddle_tensor *t;
  heddle_error err;
  complete(blob);
  if (parse(blob, sizeof blob, &p, &err) != HEDDLE_OK) fail_msg("%s", err.text);
  assert_int_equal(heddle_params_count(p), 1);
  assert_string_equal(heddle_params_name(p, 0), "w");
  assert_null(heddle_params_name(p, 1));
  assert_int_equal(heddle_params_tensor(p, 1, &t, &err), HEDDLE_ENOTFOUND);
  assert_int_equal(heddle_params_tensor(p, 0, &t, &err), HEDDLE_OK);
  void *out;
  size_t bytes;
  assert_int_equal(heddle_params_bytes(p, &out, &bytes, &err), HEDDLE_OK);
  assert_int_equal(bytes, sizeof blob);
  assert_memory_equal(out, blob, sizeof blob);
  heddle_free(out);
  heddle_params_release(p); /* the tensor holds what it needs */
  const float *w = heddle_tensor_data(t);
  assert_true(w[0] == 1.0F && w[1] == -2.5F);
  assert_int_equal((uintptr_t)w % 64, 0);
  heddle_tensor_release(t);
  assert_int_equal(heddle__alloc_live(), 0);
}

/* The byte at an offset changed to another value. */
static void refuses_malformed_blobs(void **state) {
  (void)state;
  static const struct {
    size_t at;
    unsigned char to;
    heddle_status status;
    const char *words;
  } all[] = {
      {0, 0, HEDDLE_EFORMAT, "byte 0 of 97: expected a params blob"},
      {16, 2, HEDDLE_EFORMAT, "byte 42 of 97: expected as many arrays as names"},
      {22, 0x10, HEDDLE_EFORMAT, "byte 16 of 97: expected no more names"},
      {24, 200, HEDDLE_EFORMAT, "byte 24 of 97: expected a name"},
      {31, 0x80, HEDDLE_EFORMAT, "byte 24 of 97"},
      {32, 0, HEDDLE_EFORMAT, "a name without a zero byte"},
      {33, 2, HEDDLE_EFORMAT, "as many arrays as names"},
      {41, 0, HEDDLE_EFORMAT, "byte 41 of 97: expected an array's first bytes"},
      {57, 2, HEDDLE_EFORMAT, "device type 1"},
      {65, 33, HEDDLE_EFORMAT, "0 to 32 dimensions"},
      {68, 0xff, HEDDLE_EFORMAT, "0 to 32 dimensions"},
      {65, 30, HEDDLE_EFORMAT, "the shape"},
      {70, 0, HEDDLE_EFORMAT, "a dtype"},
      {69, 3, HEDDLE_EFORMAT, "a dtype"},
      {71, 2, HEDDLE_EFORMAT, "one lane"},
      {73, 3, HEDDLE_EFORMAT, "expected 12 bytes of data"},
      {80, 0x80, HEDDLE_EFORMAT, "dimension 0 is -"},
      {80, 0x7f, HEDDLE_ELIMIT, "more than 2^63 bytes"},
      {81, 9, HEDDLE_EFORMAT, "expected 8 bytes of data"},
  };
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    unsigned char blob[97];
    heddle_params *p = NULL;
    heddle_error err = {0};
    complete(blob);
    blob[all[i].at] = all[i].to;
    heddle_status s = parse(blob, sizeof blob, &p, &err);
    if (s != all[i].status || strstr(err.text, all[i].words) == NULL || strncmp(err.text, "p.params: ", 10) != 0)
      fail_msg("byte %zu: %s '%s', expected '%s'", all[i].at, heddle_status_name(s), err.text, all[i].words);
    assert_null(p);
  }
  assert_int_equal(heddle__alloc_live(), 0);
}

static void refuses_every_cut(void **state) {
  (void)state;
  unsigned char blob[97];
  complete(blob);
  for (size_t n = 0; n < sizeof blob; n++) {
    heddle_params *p = NULL;
    heddle_error err;
    unsigned char *part = malloc(n > 0 ? n : 1);
    memcpy(part, blob, n);
    assert_int_equal(parse(part, n, &p, &err), HEDDLE_EFORMAT);
    free(part);
  }
  assert_int_equal(heddle__alloc_live(), 0);
}

static void survives_any_failed_allocation(void **state) {
  (void)state;
  unsigned char blob[97];
  heddle_status s = HEDDLE_ENOMEM;
  complete(blob);
  for (uint64_t n = 1; s != HEDDLE_OK; n++) {
    heddle_params *p = NULL;
    heddle_error err;
    heddle__alloc_fail_at(n);
    s = parse(blob, sizeof blob, &p, &err);
    heddle__alloc_fail_at(0);
    assert_int_equal(s, p != NULL ? HEDDLE_OK : HEDDLE_ENOMEM);
    heddle_params_release(p);
    assert_int_equal(heddle__alloc_live(), 0);
  }
}

static void keeps_its_limit(void **state) {
  (void)state;
  unsigned char blob[97];
  heddle_params *p;
  heddle_error err;
  heddle_read_limits limits = {.struct_size = sizeof limits, .max_bytes = 96};
  complete(blob);
  assert_int_equal(heddle_params_parse(blob, sizeof blob, "p", &limits, &p, &err), HEDDLE_ELIMIT);
  assert_non_null(strstr(err.text, "97 bytes, and the limit is 96"));
}

static void makes_params_of_tensors(void **state) {
  (void)state;
  heddle_error err;
  heddle_tensor *tensors[2];
  int32_t values[6] = {1, 2, 3, 4, 5, 6};
  const int64_t shape[2] = {3, 2}, strides[2] = {1, 3}, none[1] = {0};
  assert_int_equal(
      heddle_tensor_wrap(values, (heddle_dtype){0, 32, 1}, shape, 2, strides, NULL, NULL, &tensors[0], &err),
      HEDDLE_OK);
  assert_int_equal(heddle_tensor_create(NULL, (heddle_dtype){6, 8, 1}, none, 1, &tensors[1], &err), HEDDLE_OK);
  const char *names[2] = {"b", "a"};
  heddle_params *p, *again;
  void *blob;
  size_t bytes;
  assert_int_equal(heddle_params_create(names, tensors, 2, &p, &err), HEDDLE_OK);
  assert_int_equal(heddle_params_bytes(p, &blob, &bytes, &err), HEDDLE_OK);
  assert_int_equal(parse(blob, bytes, &again, &err), HEDDLE_OK);
  assert_string_equal(heddle_params_name(again, 0), "b"); /* the order is kept */
  assert_int_equal(again->items[1].value.dtype.code, HEDDLE_DTYPE_BOOL);
  assert_int_equal(again->items[1].file_dtype.code, HEDDLE_DTYPE_UINT); /* as TVM of the era of these files has it */
  const int32_t sorted[6] = {1, 4, 2, 5, 3, 6};
  assert_memory_equal(again->items[0].value.data, sorted, sizeof sorted);
  heddle_params_release(p);
  names[1] = "b";
  assert_int_equal(heddle_params_create(names, tensors, 2, &p, &err), HEDDLE_EFORMAT);
  assert_non_null(strstr(err.text, "'b'"));
  heddle_params_release(again);
  heddle_tensor_release(tensors[0]);
  heddle_tensor_release(tensors[1]);
  heddle_free(blob);
  assert_int_equal(heddle__alloc_live(), 0);
}

static void saves_and_loads_a_file(void **state) {
  (void)state;
  heddle_params *p, *again, *gone;
  heddle_error err;
  void *a, *b;
  size_t a_bytes, b_bytes;
  char path[] = "/tmp/heddle-params-XXXXXX";
  assert_true(mkstemp(path) >= 0);
  if (heddle_params_load(HEDDLE_TEST_SOURCE "/examples/digits/digits.params", NULL, &p, &err) != HEDDLE_OK)
    fail_msg("%s", err.text);
  assert_int_equal(heddle_params_save(p, path, &err), HEDDLE_OK);
  assert_int_equal(heddle_params_load(path, NULL, &again, &err), HEDDLE_OK);
  assert_int_equal(heddle_params_bytes(p, &a, &a_bytes, &err), HEDDLE_OK);
  assert_int_equal(heddle_params_bytes(again, &b, &b_bytes, &err), HEDDLE_OK);
  assert_int_equal(a_bytes, b_bytes);
  assert_memory_equal(a, b, a_bytes);
  remove(path);
  assert_int_equal(heddle_params_load(path, NULL, &gone, &err), HEDDLE_EIO);
  heddle_free(a);
  heddle_free(b);
  heddle_params_release(p);
  heddle_params_release(again);
}

CASES(CASE(reads_the_example), CASE(refuses_malformed_blobs), CASE(refuses_every_cut),
      CASE(survives_any_failed_allocation), CASE(keeps_its_limit), CASE(makes_params_of_tensors),
      CASE(saves_and_loads_a_file))
