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
  op_offers offers;
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

/* One offer: one buffer and two runs; other buffers and other values through a second launch; each pair in place. */
static void run_offer(run *n, uint32_t offer, bool all) {
  kit *k = n->k;
  op_ready ready;
  op_prepare(k, &n->c, &n->offers, offer, &ready);
  op_launch(k, k->dev, n->stream, &ready, n->want, OP_ARENA | OP_TWICE, -1);
  if (all) {
    other_values(n);
    op_launch(k, k->dev, n->stream, &ready, n->want, OP_SHIFTED, -1);
    for (uint64_t p = 0; p < ready.offer->n_in_place; p++)
      op_launch(k, k->dev, n->stream, &ready, n->want, 0, (int32_t)p);
  }
  op_ready_free(k, &ready);
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

enum { THREADS = 3, ROUNDS = 8 };

typedef struct worker {
  kit *k;
  const op_ready *ready;
  const op_want *want;
} worker;

static void *work(void *arg) {
  worker *w = arg;
  heddle_pstream *stream = kit_stream(w->k, w->k->dev);
  for (int i = 0; i < ROUNDS; i++) op_launch(w->k, w->k->dev, stream, w->ready, w->want, i % 2 == 0 ? OP_ARENA : 0, -1);
  w->k->t.stream.close(stream);
  return NULL;
}

static void shared(kit *k) {
  static const op_line lines[] = {{"MatMul", "f", "f[9,33] f[33,17] > f[9,17]", 13},
                                  {"Add", "f", "f[9,33] f[33] > f[9,33]", 14},
                                  {"Softmax", "f", "f[9,33] > f[9,33]", 13}};
  run *n = begin(k);
  for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
    op_ready ready;
    pthread_t threads[THREADS];
    kit copies[THREADS];
    worker workers[THREADS];
    if (!taken(n, &lines[i], 'f', OP_RUN, 0)) continue;
    op_prepare(k, &n->c, &n->offers, 0, &ready);
    for (int t = 0; t < THREADS; t++) {
      copies[t] = *k; /* each has an err of its own */
      workers[t] = (worker){&copies[t], &ready, n->want};
      if (pthread_create(&threads[t], NULL, work, &workers[t]) != 0) kit_fail(k, "the kit could not start a thread");
    }
    for (int t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
    op_ready_free(k, &ready);
    done(n);
  }
  end(n);
}

/* The limits are for drivers that compile each region when it is first met. */
KIT_GROUP(kit_numerics, "numerics",
          {"numerics/run", "what query offers is prepared and run, with the operator's results and no byte beside them",
           KIT_STAGE_DEVICE, 0, 300, numbers, op_words},
          {"numerics/constants", "operands that are known before the run give the same results as others",
           KIT_STAGE_DEVICE, 0, 300, constants, constant_words},
          {"numerics/fast", "a region with HEDDLE_REGION_FAST keeps the precision of bfloat16", KIT_STAGE_DEVICE, 0,
           240, fast, fast_words},
          {"numerics/resize", "a launch that is resized gives what one gives that was prepared for these shapes",
           KIT_STAGE_DEVICE, 0, 300, op_resize, NULL},
          {"numerics/threads", "an op is used by any thread, its launches by one each", KIT_STAGE_DEVICE, 0, 300,
           shared, NULL});
