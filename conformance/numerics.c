/* The group "numerics": what query accepted is prepared, bound and run, and its results, and every byte around them, are
 * what the reference says. */
#include "op_each.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct run {
  kit *k;
  heddle_pstream *stream;
  op_case c;
  op_region r;
  op_offers offers, others;
  op_want want[OP_OUT];
  uint32_t ran, refused, unknown;
  char why[sizeof((heddle_error *)NULL)->text];
} run;

static run *begin(kit *k) {
  if (!k->t.has_op) kit_skip(k, "the plugin has no operators");
  run *n = calloc(1, sizeof *n);
  if (n == NULL) kit_fail(k, "the kit has no memory");
  n->k = k;
  n->stream = kit_stream(k, k->dev);
  return n;
}

static void end(run *n) {
  kit *k = n->k;
  k->t.stream.close(n->stream);
  if (n->unknown > 0) kit_note(k, "%u regions that query takes have no reference and were not compared", n->unknown);
  if (n->ran == 0) kit_skip(k, "of %u regions query takes none; of the last it said: %.300s", n->refused, n->why);
  if (n->refused > 0) kit_note(k, "%u regions ran, %u were refused", n->ran, n->refused);
  free(n);
}

/* Asks about the line, and gets the reference where query takes it; false: not to be run. */
static bool taken(run *n, const op_line *line, char type, uint32_t known, uint32_t flags) {
  kit *k = n->k;
  char text[512];
  op_read(k, &n->c, line, type, known, 1);
  n->c.flags = flags;
  op_describe(&n->c, '\0', &n->r);
  op_text(&n->c, text, sizeof text);
  const heddle_status s = op_query(k, &n->r, &n->offers);
  if (n->offers.wrong[0] != '\0') kit_fail(k, "%s: %s", text, n->offers.wrong);
  if (s == HEDDLE_EUNSUPPORTED) {
    n->refused++;
    memcpy(n->why, k->err.text, sizeof n->why);
    n->why[sizeof n->why - 1] = '\0';
    op_free(&n->c);
    return false;
  }
  char what[600];
  snprintf(what, sizeof what, "op.query of %s", text);
  kit_ok(k, s, what);
  if (op_reference(k, &n->c, n->want)) return true;
  n->unknown++;
  op_want_free(n->want);
  op_free(&n->c);
  return false;
}

static void done(run *n) {
  op_want_free(n->want);
  op_free(&n->c);
  n->ran++;
}

static void other_values(run *n) {
  op_want_free(n->want);
  op_values(&n->c, 2);
  if (!op_reference(n->k, &n->c, n->want)) kit_fail(n->k, "the kit's reference did not take the same region twice");
}

/* One offer: one buffer and two runs with other values each; other buffers through a second launch; each pair in place. */
static void run_offer(run *n, uint32_t offer, bool all) {
  kit *k = n->k;
  op_ready ready;
  op_prepare(k, &n->c, &n->offers, offer, &ready);
  op_launched *l = op_launch_begin(k, k->dev, n->stream, &ready, OP_ARENA, -1);
  op_launch_run(l, n->want);
  other_values(n);
  op_launch_refill(l);
  op_launch_run(l, n->want);
  op_launch_end(l);
  if (all) {
    op_launch(k, k->dev, n->stream, &ready, n->want, OP_SHIFTED, -1);
    for (uint64_t p = 0; p < ready.offer->n_in_place; p++)
      op_launch(k, k->dev, n->stream, &ready, n->want, 0, (int32_t)p);
  }
  op_ready_free(k, &ready);
}

/* The same region with other constants at the same addresses: an op of its own, beside which the first is as it was. */
static void other_constants(run *n) {
  kit *k = n->k;
  op_ready first, second;
  op_want want[OP_OUT];
  op_prepare(k, &n->c, &n->offers, 0, &first);
  op_launched *l = op_launch_begin(k, k->dev, n->stream, &first, OP_ARENA, -1);
  op_launch_run(l, n->want);
  op_constants(&n->c, 3);
  op_describe(&n->c, '\0', &n->r);
  if (op_query(k, &n->r, &n->others) == HEDDLE_OK) { /* what the constants are may decide */
    if (!op_reference(k, &n->c, want)) kit_fail(k, "the kit's reference did not take the same region twice");
    op_prepare(k, &n->c, &n->others, 0, &second);
    op_launch(k, k->dev, n->stream, &second, want, OP_ARENA, -1);
    op_launch_run(l, n->want);
    op_ready_free(k, &second);
    op_want_free(want);
  }
  op_launch_end(l);
  op_ready_free(k, &first);
}

static void numbers(kit *k) {
  run *n = begin(k);
  const op_line *line;
  for (uint32_t i = 0; (line = op_line_of(k, i)) != NULL; i++) {
    for (const char *t = line->types; *t != '\0'; t++) {
      if (!taken(n, line, *t, OP_RUN, 0)) continue;
      run_offer(n, 0, t == line->types);
      done(n);
    }
  }
  end(n);
}

/* All operands but the first known before the run, as weights and parameters are, at aligned and at odd addresses. */
static void constants(kit *k) {
  run *n = begin(k);
  const op_line *line;
  for (uint32_t i = 0; (line = op_line_of(k, i)) != NULL; i++) {
    static const uint32_t how[] = {OP_KNOWN_EVEN, OP_KNOWN_ODD, OP_KNOWN_ODD};
    const size_t most = strlen(line->types) > 1 ? 3 : 2; /* the first type on both, the second at odd addresses */
    for (size_t t = 0; t < most; t++) {
      if (!taken(n, line, line->types[t / 2], how[t], 0)) continue;
      if (n->c.n_in > 1) run_offer(n, 0, t == 0);
      if (n->c.n_in > 1 && t == 0) other_constants(n);
      done(n);
    }
  }
  end(n);
}

typedef struct more_words {
  void (*each)(void *sink, const char *word);
  void *sink;
} more_words;

/* Operators with a second operand in some line: two words, or more, before the results. */
static void with_operands(void *sink, const char *word) {
  const more_words *to = sink;
  char of[64];
  for (uint32_t i = 0; i < op_line_count(); i++) {
    const op_line *line = op_line_at(i);
    const char *results = strchr(line->text, '>'), *space = strchr(line->text, ' ');
    op_word(line, of);
    if (strcmp(of, word) != 0 || results == NULL || space == NULL || space + 1 >= results) continue;
    to->each(to->sink, word);
    return;
  }
}

static void constant_words(kit *k, void (*each)(void *sink, const char *word), void *sink) {
  more_words to = {each, sink};
  op_words(k, with_operands, &to);
}

/* Reduced precision where it is allowed; results within the bound of bfloat16. */
static void fast(kit *k) {
  run *n = begin(k);
  const op_line *line;
  for (uint32_t i = 0; (line = op_line_of(k, i)) != NULL; i++) {
    if (line->types[0] != 'f') continue;
    for (int constant = 0; constant < 2; constant++) {
      if (!taken(n, line, 'f', constant != 0 ? OP_KNOWN_EVEN : OP_RUN, HEDDLE_REGION_FAST)) continue;
      run_offer(n, 0, false);
      done(n);
    }
  }
  end(n);
}

static void fast_words(kit *k, void (*each)(void *sink, const char *word), void *sink) {
  (void)k;
  each(sink, "MatMul");
  each(sink, "Gemm");
  each(sink, "Conv");
  each(sink, "Softmax");
}

/* ---------------------------------------------------------------- one op, several threads */

enum { THREADS = 3, ROUNDS = 4 };

/* A thread with values of its own. */
typedef struct worker {
  kit k; /* with an err of its own */
  op_case c;
  op_ready ready;
  op_want want[OP_OUT];
  pthread_t thread;
} worker;

static void *work(void *arg) {
  worker *w = arg;
  heddle_pstream *stream = kit_stream(&w->k, w->k.dev);
  for (int i = 0; i < ROUNDS; i++)
    op_launch(&w->k, w->k.dev, stream, &w->ready, w->want, (i % 2 == 0 ? OP_ARENA : 0) | OP_ROW, -1);
  w->k.t.stream.close(stream);
  return NULL;
}

static void share(run *n, const op_line *line) {
  kit *k = n->k;
  op_ready ready;
  worker *workers = calloc(THREADS, sizeof *workers);
  if (workers == NULL) kit_fail(k, "the kit has no memory for threads");
  op_prepare(k, &n->c, &n->offers, 0, &ready);
  for (uint32_t t = 0; t < THREADS; t++) {
    worker *w = &workers[t];
    w->k = *k;
    op_read(k, &w->c, line, 'f', OP_RUN, 1);
    op_values(&w->c, 10 + t);
    if (!op_reference(k, &w->c, w->want)) kit_fail(k, "the kit's reference did not take the same region twice");
    w->ready = ready;
    w->ready.c = &w->c;
    op_describe(&w->c, '\0', &w->ready.r);
  }
  for (uint32_t t = 0; t < THREADS; t++)
    if (pthread_create(&workers[t].thread, NULL, work, &workers[t]) != 0)
      kit_fail(k, "the kit could not start a thread");
  for (uint32_t t = 0; t < THREADS; t++) {
    pthread_join(workers[t].thread, NULL);
    op_want_free(workers[t].want);
    op_free(&workers[t].c);
  }
  op_ready_free(k, &ready);
  free(workers);
}

/* Long enough that the launches meet. */
static void shared(kit *k) {
  static const op_line lines[] = {{"MatMul", "f", "f[65,129] f[129,67] > f[65,67]", 13},
                                  {"Add", "f", "f[9,3300] f[9,3300] > f[9,3300]", 14},
                                  {"Softmax", "f", "f[65,333] > f[65,333]", 13}};
  run *n = begin(k);
  for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
    if (!taken(n, &lines[i], 'f', OP_RUN, 0)) continue;
    share(n, &lines[i]);
    done(n);
  }
  end(n);
}

/* ---------------------------------------------------------------- more elements than one grid, or 2^16, or 2^20 */

static void large(kit *k) {
  static const op_line lines[] = {
      {"Relu", "f", "f[4300003] > f[4300003]", 14},
      {"Add", "f", "f[1100003] f[1100003] > f[1100003]", 14},
      {"Mul", "f", "f[1031,1033] f[1033] > f[1031,1033]", 14},
      {"Sigmoid", "f", "f[1100003] > f[1100003]", 13},
      {"Cast", "f", "f[1100003] > i[1100003] ; to=6", 13},
      {"MatMul", "f", "f[3,70001] f[70001,2] > f[3,2]", 13},
      {"MatMul", "f", "f[1,3] f[3,70001] > f[1,70001]", 13},
      {"MatMul", "f", "f[70001,2] f[2,1] > f[70001,1]", 13},
      {"Softmax", "f", "f[2,70001] > f[2,70001]", 13},
      {"Softmax", "f", "f[70001,2] > f[70001,2]", 13},
      {"ReduceMax", "f", "f[2,70001] l=1 > f[2,1]", 18},
      {"ReduceSum", "f", "f[70001,2] l=1 > f[70001,1]", 13},
      {"ReduceSum", "f", "f[70001,2] l=0 > f[1,2]", 13},
      {"Transpose", "f", "f[1031,1033] > f[1033,1031] ; perm:1,0", 13},
      {"Concat", "f", "f[2,70001] f[2,7] > f[2,70008] ; axis=1", 13},
      {"Slice", "f", "f[1100003] l=5 l=1100000 l=0 l=1 > f[1099995]", 13},
      {"MaxPool", "f", "f[1,2,300,301] > f[1,2,150,150] ; kernel_shape:2,2 strides:2,2", 12},
      {"Conv", "f", "f[1,1,270,271] f[2,1,3,3] > f[1,2,268,269]", 13}};
  run *n = begin(k);
  for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
    op_ready ready;
    if (!taken(n, &lines[i], 'f', OP_RUN, 0)) continue;
    op_prepare(k, &n->c, &n->offers, 0, &ready);
    op_launch(k, k->dev, n->stream, &ready, n->want, 0, -1);
    op_ready_free(k, &ready);
    done(n);
  }
  end(n);
}

/* The limits are for drivers that compile each region when it is first met. */
KIT_GROUP(kit_numerics, "numerics",
          {"numerics/run", "what query offers is prepared and run, with the operator's results and no byte beside them",
           KIT_STAGE_DEVICE, KIT_SERIES, 300, numbers, op_words},
          {"numerics/constants", "operands that are known before the run give the same results as others",
           KIT_STAGE_DEVICE, KIT_SERIES, 300, constants, constant_words},
          {"numerics/fast", "a region with HEDDLE_REGION_FAST keeps the precision of bfloat16", KIT_STAGE_DEVICE,
           KIT_SERIES, 240, fast, fast_words},
          {"numerics/sizes", "what query offers of each size: whole vectors, blocks and their rests", KIT_STAGE_DEVICE,
           KIT_SERIES, 120, op_sizes, op_sizes_words},
          {"numerics/repeats", "a launch is run any number of times, and each time with what its operands then have",
           KIT_STAGE_DEVICE, 0, 60, op_repeats, NULL},
          {"numerics/same-operands", "operands that are only read may be the same memory", KIT_STAGE_DEVICE, 0, 0,
           op_same_operands, NULL},
          {"numerics/resize", "a launch that is resized gives what one gives that was prepared for these shapes",
           KIT_STAGE_DEVICE, 0, 300, op_resize, NULL},
          {"numerics/resize-refused", "a launch whose op.resize was refused is as before", KIT_STAGE_DEVICE, 0, 60,
           op_refused_resize, NULL},
          {"numerics/counts", "LIVE_OBJECTS follows prepare, bind, launch_free and op_free", KIT_STAGE_DEVICE, 0, 60,
           op_counts, NULL},
          {"numerics/kept", "an op keeps nothing of its region, and a launch nothing of its operands' slices",
           KIT_STAGE_DEVICE, 0, 120, op_kept, NULL},
          {"numerics/large", "operands of more than 2^16, 2^20 and 2^22 elements", KIT_STAGE_DEVICE, KIT_LONG, 300,
           large, NULL},
          {"numerics/threads", "an op is used by any thread, its launches by one each", KIT_STAGE_DEVICE, 0, 300,
           shared, NULL});
