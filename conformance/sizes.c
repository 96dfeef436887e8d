/* The case numerics/sizes: operators over every size up to some vectors and over the neighbours of powers of two, since
 * kernels go wrong where a vector, a block or a tile has a rest. */
#include "op_each.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL = 131 };

/* Lines as in op_case.h; @ is the size. */
typedef struct size_line {
  const char *op, *types, *text;
  uint32_t opset, most; /* the largest size */
} size_line;

static const uint32_t beyond[] = {160,  191,  192,  193,  255,  256,  257,  300,  383,  385,  511,   512,   513,
                                  1000, 1023, 1024, 1025, 1537, 2047, 2048, 2049, 4095, 4097, 16385, 65535, 65537};

/* clang-format off */
static const size_line lines[] = {
  {"Relu", "fhA", "T[@] > T[@]", 14, 65537},
  {"Sigmoid", "f", "T[@] > T[@]", 13, 4097},
  {"Add", "fhlA", "T[@] T[@] > T[@]", 14, 65537},
  {"Add", "f", "T[3,@] T[@] > T[3,@]", 14, 4097},
  {"Add", "f", "T[@,3] T[@,1] > T[@,3]", 14, 4097},
  {"Add", "f", "T[@] T[] > T[@]", 14, 4097},
  {"Mul", "f", "T[1,@] T[3,1] > T[3,@]", 14, 4097},
  {"Where", "f", "B[@] T[@] T[@] > T[@]", 16, 4097},
  {"Cast", "f", "T[@] > i[@] ; to=6", 13, 65537},
  {"Cast", "f", "T[@] > h[@] ; to=10", 13, 4097},
  {"MatMul", "fh", "T[3,@] T[@,5] > T[3,5]", 13, 4097},
  {"MatMul", "f", "T[@,7] T[7,5] > T[@,5]", 13, 4097},
  {"MatMul", "f", "T[3,7] T[7,@] > T[3,@]", 13, 4097},
  {"Gemm", "f", "T[2,@] T[3,@] T[3] > T[2,3] ; transB=1", 13, 4097},
  {"Gemm", "f", "T[@,2] T[3,2] T[3] > T[@,3] ; transB=1", 13, 4097},
  {"Softmax", "f", "T[3,@] > T[3,@]", 13, 4097},
  {"ReduceSum", "f", "T[3,@] l=1 > T[3,1]", 13, 4097},
  {"ReduceSum", "f", "T[@,3] l=0 > T[1,3]", 13, 4097},
  {"ReduceMax", "f", "T[3,@] l=1 > T[3,1]", 18, 4097},
  {"ArgMax", "f", "T[3,@] > l[3,1] ; axis=1", 13, 4097},
  {"LayerNormalization", "f", "T[3,@] T[@] T[@] > T[3,@]", 17, 4097},
  {"Transpose", "fA", "T[3,@] > T[@,3] ; perm:1,0", 13, 4097},
  {"Concat", "f", "T[@,2] T[@,3] > T[@,5] ; axis=1", 13, 4097},
  {"Slice", "f", "T[3,@] l=1 l=3 l=0 > T[2,@]", 13, 4097},
  {"Gather", "f", "T[5,@] l[3]{0,4} > T[3,@]", 13, 4097},
  {"Gather", "f", "T[5,3] l[@]{-5,4} > T[@,3]", 13, 4097},
  {"Expand", "f", "T[1,@] l=3,1 > T[3,@]", 13, 4097},
  {"Reshape", "fA", "T[1,@] l=-1 > T[@]", 13, 4097},
  {"Conv", "f", "T[1,1,2,@] T[2,1,1,1] > T[1,2,2,@]", 13, 1025},
  {"Conv", "f", "T[1,@,3,3] T[2,@,2,2] > T[1,2,2,2]", 13, 1025},
  {"Conv", "f", "T[1,2,3,3] T[@,2,2,2] > T[1,@,2,2]", 13, 1025},
  {"Conv", "f", "T[1,@,3,3] T[@,1,2,2] > T[1,@,2,2] ; group=@", 13, 1025},
  {"MaxPool", "f", "T[1,@,3,3] > T[1,@,2,2] ; kernel_shape:2,2", 13, 1025},
  {"BatchNormalization", "f", "T[1,@,3] T[@] T[@] T[@]{-0.5,0.5} T[@]{0.3,2} > T[1,@,3]", 15, 1025},
};
/* clang-format on */

typedef struct work {
  kit *k;
  heddle_pstream *stream;
  op_case c;
  op_region r;
  op_offers offers;
  op_want want[OP_OUT];
  uint32_t ran, refused;
} work;

static void put_size(const char *text, uint32_t size, char out[256]) {
  size_t n = 0;
  for (; *text != '\0' && n + 16 < 256; text++)
    if (*text != '@') out[n++] = *text;
    else n += (size_t)snprintf(out + n, 256 - n, "%u", (unsigned)size);
  out[n] = '\0';
}

static bool asked(kit *k, work *w, const size_line *from, char type, uint32_t size, op_line *line, char text[256]) {
  put_size(from->text, size, text);
  *line = (op_line){from->op, from->types, text, from->opset};
  if (op_ask(k, line, type, &w->c, &w->r, &w->offers, OP_RUN) == HEDDLE_OK) return true;
  w->refused++;
  op_free(&w->c);
  return false;
}

static void run_size(work *w, const size_line *from, char type, uint32_t size) {
  kit *k = w->k;
  char text[256];
  op_line line;
  op_ready ready;
  if (size > from->most || !asked(k, w, from, type, size, &line, text)) return;
  if (op_reference(k, &w->c, w->want)) {
    op_prepare(k, &w->c, &w->offers, 0, &ready);
    op_launch(k, k->dev, w->stream, &ready, w->want, 0, -1);
    op_ready_free(k, &ready);
    w->ran++;
  }
  op_want_free(w->want);
  op_free(&w->c);
}

void op_sizes(kit *k) {
  work *w = calloc(1, sizeof *w);
  if (w == NULL) kit_fail(k, "the kit has no memory");
  w->k = k;
  w->stream = kit_stream(k, k->dev);
  for (uint32_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
    if (strcmp(lines[i].op, k->param) != 0) continue;
    for (const char *t = lines[i].types; *t != '\0'; t++) {
      for (uint32_t size = 1; size <= SMALL; size++) run_size(w, &lines[i], *t, size);
      for (uint32_t j = 0; j < sizeof beyond / sizeof beyond[0]; j++) run_size(w, &lines[i], *t, beyond[j]);
    }
  }
  k->t.stream.close(w->stream);
  const uint32_t ran = w->ran, refused = w->refused;
  free(w);
  if (ran == 0) kit_skip(k, "of %u sizes query takes none", (unsigned)refused);
  kit_note(k, "%u sizes ran, %u were refused", (unsigned)ran, (unsigned)refused);
}

/* The operators of which some line is taken in the size that its first shape is for. */
void op_sizes_words(kit *k, void (*each)(void *sink, const char *word), void *sink) {
  const char *last = "";
  if (!k->t.has_op || k->t.op.query == NULL) return;
  work *w = calloc(1, sizeof *w);
  for (uint32_t i = 0; w != NULL && i < sizeof lines / sizeof lines[0]; i++) {
    char text[256];
    op_line line;
    if (strcmp(lines[i].op, last) == 0) continue;
    put_size(lines[i].text, 8, text);
    line = (op_line){lines[i].op, lines[i].types, text, lines[i].opset};
    const heddle_status s = op_ask(k, &line, lines[i].types[0], &w->c, &w->r, &w->offers, OP_RUN);
    if (s == HEDDLE_OK || s == HEDDLE_ENEEDSOPEN) each(sink, last = lines[i].op);
    op_free(&w->c);
  }
  free(w);
}
