/* The modules inside of compiled libraries: the two worked examples of the formats, byte by byte, and every cut of them.
 * What is damaged in other ways is in tests/python/test_tvm_legacy.py and in the fuzz target's seeds. */
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "modules/tvm/blob.h"

typedef struct bytes {
  unsigned char data[512];
  size_t n;
} bytes;

static void put(bytes *b, uint64_t value, int width) {
  for (int i = 0; i < width; i++) b->data[b->n++] = (unsigned char)(value >> (8 * i));
}

static void put_text(bytes *b, const char *text) {
  put(b, strlen(text), 8);
  memcpy(b->data + b->n, text, strlen(text));
  b->n += strlen(text);
}

/* "_lib" importing a cuda module with a kernel of (handle, handle, int32), tags blockIdx.x and threadIdx.x. 243 bytes. */
static bytes packed_example(void) {
  bytes b = {{0}, 0};
  put(&b, 235, 8);
  put(&b, 3, 8);
  put_text(&b, "_lib");
  put_text(&b, "cuda");
  put_text(&b, "ptx");
  put(&b, 1, 8);
  put_text(&b, "add_kernel0");
  put_text(&b, "add_kernel0");
  put(&b, 3, 8);
  put(&b, 0x00014003, 4);
  put(&b, 0x00014003, 4);
  put(&b, 0x00012000, 4);
  put(&b, 2, 8);
  put_text(&b, "blockIdx.x");
  put_text(&b, "threadIdx.x");
  put_text(&b, "//ptx");
  put_text(&b, "_import_tree");
  put(&b, 3, 8);
  put(&b, 0, 8);
  put(&b, 1, 8);
  put(&b, 1, 8);
  put(&b, 1, 8);
  put(&b, 1, 8);
  return b;
}

/* The same with a kernel of one handle, as v0.22 and later write it. 184 bytes. */
static bytes ffi_example(void) {
  bytes b = {{0}, 0};
  put(&b, 176, 8);
  put(&b, 3, 8);
  put(&b, 0, 8);
  put(&b, 1, 8);
  put(&b, 1, 8);
  put(&b, 1, 8);
  put(&b, 1, 8);
  put_text(&b, "_lib");
  put_text(&b, "cuda");
  put(&b, 96, 8);
  put_text(&b, "ptx");
  put(&b, 1, 8);
  put_text(&b, "k");
  put_text(&b, "k");
  put(&b, 1, 8);
  put(&b, 0x00014003, 4);
  put(&b, 1, 8);
  put_text(&b, "blockIdx.x");
  put(&b, 0, 8);
  put_text(&b, "//ptx");
  return b;
}

static void check_cuda(const heddle__blob *b, const char *kernel, uint32_t n_args, uint32_t n_tags) {
  assert_int_equal(b->n_modules, 2);
  assert_int_equal(b->host, 0);
  assert_int_equal(b->modules[0].n_children, 1);
  assert_int_equal(b->children[b->modules[0].first_child], 1);
  const heddle__submodule *m = &b->modules[1];
  assert_string_equal(m->kind, "cuda");
  assert_string_equal(m->format, "ptx");
  assert_int_equal(m->n_kernels, 1);
  assert_string_equal(m->kernels[0].name, kernel);
  assert_int_equal(m->kernels[0].n_args, n_args);
  assert_int_equal(m->kernels[0].n_tags, n_tags);
  assert_int_equal(m->code.bytes, 5);
  assert_memory_equal(m->code.data, "//ptx", 5);
}

static void reads_both_examples(void **state) {
  (void)state;
  heddle__blob blob;
  heddle_error err = {0};
  bytes b = packed_example();
  assert_int_equal(b.n, 243);
  assert_int_equal(heddle__blob_read(b.data, b.n, HEDDLE__BLOB_PACKED, NULL, &blob, &err), HEDDLE_OK);
  check_cuda(&blob, "add_kernel0", 3, 2);
  heddle__blob_finish(&blob);
  b = ffi_example();
  assert_int_equal(b.n, 184);
  assert_int_equal(heddle__blob_read(b.data, b.n, HEDDLE__BLOB_FFI, NULL, &blob, &err), HEDDLE_OK);
  check_cuda(&blob, "k", 1, 1);
  heddle__blob_finish(&blob);
}

/* In memory of its own, so that a sanitizer sees a read behind the end. */
static void refuse_cut(const bytes *b, size_t n, heddle__blob_layout layout) {
  unsigned char *cut = malloc(n > 0 ? n : 1);
  heddle__blob blob;
  heddle_error err = {0};
  assert_non_null(cut);
  memcpy(cut, b->data, n);
  assert_int_equal(heddle__blob_read(cut, n, layout, NULL, &blob, &err), HEDDLE_EFORMAT);
  heddle__blob_finish(&blob);
  if (n >= 8) { /* the same, but with a length that fits */
    for (int i = 0; i < 8; i++) cut[i] = (unsigned char)((n - 8) >> (8 * i));
    heddle_status s = heddle__blob_read(cut, n, layout, NULL, &blob, &err);
    assert_true(s == HEDDLE_EFORMAT || s == HEDDLE_EUNSUPPORTED);
    heddle__blob_finish(&blob);
  }
  free(cut);
}

static void refuses_every_cut(void **state) {
  (void)state;
  bytes packed = packed_example(), ffi = ffi_example();
  for (size_t n = 0; n < packed.n; n++) refuse_cut(&packed, n, HEDDLE__BLOB_PACKED);
  for (size_t n = 0; n < ffi.n; n++) refuse_cut(&ffi, n, HEDDLE__BLOB_FFI);
}

static void every_byte_may_be_wrong(void **state) {
  (void)state;
  for (int layout = HEDDLE__BLOB_PACKED; layout <= HEDDLE__BLOB_FFI; layout++) {
    const bytes whole = layout == HEDDLE__BLOB_FFI ? ffi_example() : packed_example();
    for (size_t i = 0; i < whole.n; i++)
      for (int bit = 0; bit < 8; bit++) {
        bytes b = whole;
        heddle__blob blob;
        heddle_error err = {0};
        b.data[i] ^= (unsigned char)(1 << bit);
        heddle_status s = heddle__blob_read(b.data, b.n, (heddle__blob_layout)layout, NULL, &blob, &err);
        assert_true(s == HEDDLE_OK || s == HEDDLE_EFORMAT || s == HEDDLE_EUNSUPPORTED);
        assert_true(s == HEDDLE_OK || err.text[0] != '\0');
        heddle__blob_finish(&blob);
      }
  }
}

CASES(CASE(reads_both_examples), CASE(refuses_every_cut), CASE(every_byte_may_be_wrong))
