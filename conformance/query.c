/* The group "query": that answers of query are pure and well formed, and refusals have a message, for any region. */
#include "conformance/op_each.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Status and offers, compared by their bytes. */
static bool same_answer(heddle_status a, const op_offers *x, heddle_status b, const op_offers *y) {
  const uint32_t kept = x->count < OP_OFFERS ? x->count : OP_OFFERS;
  return a == b && x->count == y->count && (kept == 0 || memcmp(x->all, y->all, kept * sizeof x->all[0]) == 0);
}

typedef struct asked {
  op_case c;
  op_region r;
  op_offers first, second;
} asked;

static asked *new_asked(kit *k) {
  asked *a = calloc(1, sizeof *a);
  if (a == NULL) kit_fail(k, "the kit has no memory");
  return a;
}

static heddle_status no_offer(void *sink, const heddle_poffer *offer, heddle_error *err) {
  (void)sink;
  (void)offer;
  (void)err;
  return HEDDLE_OK;
}

static void pure(kit *k) {
  asked *a = new_asked(k);
  char text[512];
  heddle_pdevice *dev = op_open_if_needed(k);
  for (uint32_t i = 0; i < op_line_count(); i++) {
    const op_line *line = op_line_at(i);
    const heddle_status s = op_ask(k, line, line->types[0], &a->c, &a->r, &a->first, OP_RUN);
    const heddle_status again = op_query(k, &a->r, &a->second);
    op_text(&a->c, text, sizeof text);
    if (!same_answer(s, &a->first, again, &a->second))
      kit_fail(k, "%s: query gives two answers: status %d and %d, %u and %u offers", text, s, again, a->first.count,
               a->second.count);
    const heddle_status quiet = k->t.op.query(k->instance, k->index, &a->r.region, no_offer, NULL, NULL);
    if (quiet != s) kit_fail(k, "%s: query returns %d, and %d where err is NULL", text, s, quiet);
    op_free(&a->c);
  }
  free(a);
  if (dev != NULL) kit_close(k, dev);
}

static void well_formed(kit *k) {
  asked *a = new_asked(k);
  char text[512];
  uint32_t taken = 0;
  heddle_pdevice *dev = op_open_if_needed(k);
  for (uint32_t i = 0; i < op_line_count(); i++) {
    const op_line *line = op_line_at(i);
    for (const char *t = line->types; *t != '\0'; t++) {
      for (int constant = 0; constant < 2; constant++) {
        taken += op_ask(k, line, *t, &a->c, &a->r, &a->first, constant != 0 ? OP_KNOWN_ODD : OP_RUN) == HEDDLE_OK;
        op_text(&a->c, text, sizeof text);
        if (a->first.wrong[0] != '\0') kit_fail(k, "%s: %s", text, a->first.wrong);
        op_free(&a->c);
      }
    }
  }
  free(a);
  if (dev != NULL) kit_close(k, dev);
  kit_note(k, "%u regions are taken", taken);
}

static void words(kit *k) {
  asked *a = new_asked(k);
  char text[512];
  heddle_pdevice *dev = op_open_if_needed(k);
  for (uint32_t i = 0; i < op_line_count(); i++) {
    const op_line *line = op_line_at(i);
    for (const char *t = line->types; *t != '\0'; t++) {
      const heddle_status s = op_ask(k, line, *t, &a->c, &a->r, &a->first, OP_RUN);
      op_text(&a->c, text, sizeof text);
      if (s != HEDDLE_OK && s != HEDDLE_EUNSUPPORTED)
        kit_fail(k, "%s: query returned status %d; it takes a region or refuses it with HEDDLE_EUNSUPPORTED", text, s);
      if (s != HEDDLE_OK) kit_text(k, k->err.text, sizeof k->err.text, "the text of a refusal of query");
      if (s != HEDDLE_OK && (strstr(k->err.text, "kit_node") == NULL || strstr(k->err.text, line->op) == NULL))
        kit_fail(k, "%s: query refuses with \"%.300s\", which does not name the node, kit_node, and its operator", text,
                 k->err.text);
      op_free(&a->c);
    }
  }
  free(a);
  if (dev != NULL) kit_close(k, dev);
}

/* ---------------------------------------------------------------- regions that no device can run */

static void refused(kit *k, asked *a, const char *what) {
  const heddle_status s = op_query(k, &a->r, &a->first);
  if (s != HEDDLE_EUNSUPPORTED && s != HEDDLE_EINVAL)
    kit_fail(k, "query of %s returned status %d, expected HEDDLE_EUNSUPPORTED", what, s);
  kit_text(k, k->err.text, sizeof k->err.text, "the text of a refusal of query");
  if (k->err.text[0] == '\0') kit_fail(k, "query refused %s without a word", what);
  k->t.op.query(k->instance, k->index, &a->r.region, no_offer, NULL, NULL); /* an err of NULL is legal here too */
}

static void impossible(kit *k) {
  static const op_line add = {"Add", "f", "f[2,3] f[2,3] > f[2,3]", 14},
                       matmul = {"MatMul", "f", "f[2,3] f[3,4] > f[2,4]", 13},
                       reshape = {"Reshape", "f", "f[2,3] l=3,2 > f[3,2]", 14},
                       none = {"NoSuchOperator", "f", "f[2] > f[2]", 14};
  static const int64_t huge[] = {INT64_C(1) << 30, INT64_C(1) << 29}, odd[] = {5, 7};
  asked *a = new_asked(k);
  heddle_pdevice *dev = op_open_if_needed(k);
#define BEGIN(line) op_read(k, &a->c, &(line), 'f', OP_RUN, 1), op_describe(&a->c, '\0', &a->r)
#define END(what) refused(k, a, what), op_free(&a->c)
  BEGIN(none);
  END("an unknown operator");
  BEGIN(add), a->r.node.domain = "no.such.domain";
  END("Add of an unknown domain");
  BEGIN(add), a->r.node.opset = a->r.node.since_version = 0;
  END("Add of opset 0");
  BEGIN(add), a->r.node.opset = 100000, a->r.node.since_version = 0;
  END("Add of opset 100000");
  BEGIN(add), a->r.node.n_inputs = a->r.region.n_inputs = 1;
  END("Add with one operand");
  BEGIN(add), a->r.node_in[1] = -1, a->r.region.n_inputs = 1;
  END("Add without its second operand");
  BEGIN(matmul), a->r.node.n_inputs = 0, a->r.region.n_inputs = 0;
  END("MatMul without operands");
  BEGIN(matmul), a->r.values[2].shape = odd;
  END("MatMul with a result of another shape");
  BEGIN(add), a->r.values[2].shape = odd;
  END("Add with a result of another shape");
  BEGIN(matmul), a->r.values[1].dtype = op_dtype('l');
  END("MatMul of float32 and int64");
  BEGIN(add), a->r.values[0].dtype = a->r.values[1].dtype = a->r.values[2].dtype = (heddle_dtype){200, 17, 3};
  END("Add of an unknown type");
  BEGIN(reshape), a->r.values[1].data = NULL, a->r.values[1].data_bytes = 0, a->r.values[2].shape = odd;
  END("Reshape to a shape of other size");
  op_attr *at = &a->c.attrs[0];
  BEGIN(matmul), at->name = "no_such_attribute", at->kind = HEDDLE_ATTR_INT, at->count = 1, a->c.n_attrs = 1;
  op_describe(&a->c, '\0', &a->r);
  const heddle_status s = op_query(k, &a->r, &a->first); /* some ignore what they do not know; none may fall over it */
  if (s != HEDDLE_OK && s != HEDDLE_EUNSUPPORTED && s != HEDDLE_EINVAL)
    kit_fail(k, "query of MatMul with an unknown attribute returned status %d", s);
  op_free(&a->c);
  BEGIN(add), a->r.values[0].shape = a->r.values[1].shape = a->r.values[2].shape = huge;
  const heddle_status large =
      op_query(k, &a->r, &a->first); /* 2^61 bytes: may be taken, since nothing is allocated yet */
  if (large != HEDDLE_OK && large != HEDDLE_EUNSUPPORTED && large != HEDDLE_EINVAL && large != HEDDLE_ELIMIT)
    kit_fail(k, "query of Add of 2^59 elements returned status %d", large);
  op_free(&a->c);
  free(a);
  if (dev != NULL) kit_close(k, dev);
}

/* ---------------------------------------------------------------- threads */

enum { THREADS = 3 };

typedef struct worker {
  kit k;
  char wrong[640];
} worker;

static void *ask_all(void *arg) {
  worker *w = arg;
  kit *k = &w->k;
  asked *a = new_asked(k);
  for (uint32_t i = 0; i < op_line_count() && w->wrong[0] == '\0'; i++) {
    const op_line *line = op_line_at(i);
    const heddle_status s = op_ask(k, line, line->types[0], &a->c, &a->r, &a->first, OP_KNOWN_ODD);
    const heddle_status again = op_query(k, &a->r, &a->second);
    char text[512];
    op_text(&a->c, text, sizeof text);
    if (!same_answer(s, &a->first, again, &a->second))
      snprintf(w->wrong, sizeof w->wrong, "%s: query gives two answers while other threads ask", text);
    op_free(&a->c);
  }
  free(a);
  return NULL;
}

static void threads(kit *k) {
  pthread_t ids[THREADS];
  worker *all = calloc(THREADS, sizeof *all);
  heddle_pdevice *dev = op_open_if_needed(k);
  if (all == NULL) kit_fail(k, "the kit has no memory");
  for (int t = 0; t < THREADS; t++) {
    all[t].k = *k; /* each has an err of its own */
    if (pthread_create(&ids[t], NULL, ask_all, &all[t]) != 0) kit_fail(k, "the kit could not start a thread");
  }
  for (int t = 0; t < THREADS; t++) pthread_join(ids[t], NULL);
  for (int t = 0; t < THREADS; t++)
    if (all[t].wrong[0] != '\0') kit_fail(k, "%s", all[t].wrong);
  free(all);
  if (dev != NULL) kit_close(k, dev);
}

/* ---------------------------------------------------------------- list */

typedef struct listing {
  kit *k;
  asked *a;
  uint32_t listed, without;
} listing;

static heddle_status take_listed(void *sink, const char *domain, const char *op, uint32_t first, uint32_t last,
                                 const char *dtypes, heddle_error *err) {
  listing *l = sink;
  kit *k = l->k;
  uint32_t lines = 0, taken = 0;
  (void)err;
  kit_text(k, op, 128, "an operator's name from list");
  kit_text(k, domain, 128, "a domain from list");
  kit_text(k, dtypes, 1024, "the types of an operator from list");
  if (first > last) kit_fail(k, "list gives %s the opsets %u to %u", op, first, last);
  l->listed++;
  for (uint32_t i = 0; i < op_line_count() && taken == 0; i++) {
    const op_line *line = op_line_at(i);
    if (strcmp(line->op, op) != 0 || (line->opset == 0) != (strcmp(domain, "heddle") == 0)) continue;
    if (line->opset != 0 && (line->opset < first || line->opset > last)) continue;
    lines++;
    for (const char *t = line->types; *t != '\0' && taken == 0; t++) {
      taken += op_ask(k, line, *t, &l->a->c, &l->a->r, &l->a->first, OP_RUN) == HEDDLE_OK;
      op_free(&l->a->c);
      if (taken > 0) break;
      taken += op_ask(k, line, *t, &l->a->c, &l->a->r, &l->a->first, OP_KNOWN_EVEN) == HEDDLE_OK;
      op_free(&l->a->c);
    }
  }
  if (lines == 0) l->without++;
  else if (taken == 0)
    kit_fail(k, "list names %s, and query takes none of the kit's %u regions of it: %.300s", op, lines, k->err.text);
  return HEDDLE_OK;
}

static void list(kit *k) {
  heddle_pdevice *dev = op_open_if_needed(k);
  if (k->t.op.list == NULL) kit_skip(k, "the plugin has no list of its operators");
  listing l = {.k = k, .a = new_asked(k)};
  heddle_error err = {0};
  const heddle_status s = k->t.op.list(k->instance, k->index, take_listed, &l, &err);
  k->err = err;
  kit_ok(k, s, "op.list");
  kit_note(k, "%u operators are listed; the kit has no region of %u of them", l.listed, l.without);
  free(l.a);
  if (dev != NULL) kit_close(k, dev);
}

KIT_GROUP(kit_query, "query",
          {"query/pure", "query gives the same answer each time, with and without an err", KIT_STAGE_INSTANCE, 0, 60,
           pure, NULL},
          {"query/offers", "offers are well formed: indices, flags, alignments, times", KIT_STAGE_INSTANCE, 0, 60,
           well_formed, NULL},
          {"query/words", "a refusal is HEDDLE_EUNSUPPORTED and names node and operator", KIT_STAGE_INSTANCE, 0, 60,
           words, NULL},
          {"query/impossible", "what no device can run is refused, and never a crash", KIT_STAGE_INSTANCE, 0, 60,
           impossible, NULL},
          {"query/newer",
           "elements of arrays may have more bytes than the plugin knows: stride leads from one to the next",
           KIT_STAGE_INSTANCE, 0, 60, op_newer, NULL},
          {"query/older", "a member that is newer than 1.0 is read where HEDDLE_HAS says that it is there",
           KIT_STAGE_INSTANCE, 0, 60, op_older, NULL},
          {"query/opsets", "an operator whose definition is known is read so, however new the opset is",
           KIT_STAGE_INSTANCE, 0, 60, op_opsets, NULL},
          {"query/quiet", "query is pure: it opens nothing", KIT_STAGE_INSTANCE, 0, 60, op_quiet, NULL},
          {"query/threads", "query may be called by several threads at once", KIT_STAGE_INSTANCE, 0, 60, threads, NULL},
          {"query/list", "each operator that list names is taken in some region", KIT_STAGE_INSTANCE, 0, 60, list,
           NULL},
          {"query/partition", "proposals are connected, convex, do not overlap, and query takes them",
           KIT_STAGE_INSTANCE, 0, 60, op_partition, NULL});
