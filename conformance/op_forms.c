/* Cases about how a region is passed: elements of a size that the plugin does not know, and memory that is the plugin's for
 * the call alone. */
#include "op_clone.h"
#include "op_any.h"
#include "op_each.h"
#include "proc_self.h"
#include "tables.h"

#include <stdlib.h>
#include <string.h>

static const char *const ops[] = {"Relu",    "Add",    "MatMul",  "Gemm",  "Conv", "Softmax", "Concat",   "Transpose",
                                  "Reshape", "Gather", "MaxPool", "Slice", "Cast", "Clip",    "LeakyRelu"};
enum { OPS = sizeof ops / sizeof ops[0] };

typedef struct form {
  op_case c;
  op_region r;
  op_offers plain, other;
} form;

/* The first line of an operator, asked about; whether the plugin takes it in the form that it is in elsewhere. */
static bool taken(kit *k, form *f, const char *op, uint32_t known) {
  for (uint32_t i = 0; i < op_line_count(); i++) {
    const op_line *line = op_line_at(i);
    if (strcmp(line->op, op) != 0) continue;
    if (op_ask(k, line, line->types[0], &f->c, &f->r, &f->plain, known) == HEDDLE_OK) return true;
    op_free(&f->c);
    return false;
  }
  return false;
}

static form *new_form(kit *k) {
  if (!k->t.has_op || k->t.op.query == NULL) kit_skip(k, "the plugin has no operators");
  form *f = calloc(1, sizeof *f);
  if (f == NULL) kit_fail(k, "the kit has no memory");
  return f;
}

/* The answer to the same region in another form. */
static void same(kit *k, form *f, int how, const char *who) {
  char text[512];
  op_clone clone = op_clone_make(k, &f->r.region, how);
  op_region r = f->r;
  r.region = *clone.region;
  const heddle_status s = op_query(k, &r, &f->other);
  op_text(&f->c, text, sizeof text);
  if (s != HEDDLE_OK)
    kit_fail(k, "%s: op.query takes the region, and refuses it from a %s host, whose elements have other sizes: %.400s",
             text, who, k->err.text);
  if (f->other.count != f->plain.count || f->other.all[0].flags != f->plain.all[0].flags ||
      f->other.all[0].workspace_bytes != f->plain.all[0].workspace_bytes)
    kit_fail(k, "%s: op.query makes another offer to a %s host, whose elements have other sizes", text, who);
  op_clone_free(&clone);
}

static void forms(kit *k, int how, const char *who) {
  form *f = new_form(k);
  uint32_t n = 0;
  heddle_pdevice *dev = op_open_if_needed(k);
  for (uint32_t i = 0; i < OPS; i++)
    for (uint32_t known = OP_RUN; known <= OP_KNOWN_EVEN; known += OP_KNOWN_EVEN - OP_RUN) {
      if (!taken(k, f, ops[i], known)) continue;
      same(k, f, how, who);
      op_free(&f->c);
      n++;
    }
  if (dev != NULL) kit_close(k, dev);
  free(f);
  if (n == 0) kit_skip(k, "the device takes none of the kit's common operators");
}

void op_newer(kit *k) {
  forms(k, OP_CLONE_NEWER, "newer");
}

void op_older(kit *k) {
  forms(k, OP_CLONE_OLDER, "older");
}

/* The same definition in an operator set that is newer than any: a refusal is no fault, and the report says so. */
void op_opsets(kit *k) {
  enum { NEWER = 90 };
  form *f = new_form(k);
  uint32_t n = 0, refused = 0;
  heddle_pdevice *dev = op_open_if_needed(k);
  for (uint32_t i = 0; i < OPS; i++) {
    if (!taken(k, f, ops[i], OP_RUN)) continue;
    f->r.node.opset = NEWER;
    refused += f->r.node.since_version != 0 && op_query(k, &f->r, &f->other) != HEDDLE_OK;
    op_free(&f->c);
    n++;
  }
  if (dev != NULL) kit_close(k, dev);
  free(f);
  if (n == 0) kit_skip(k, "the device takes none of the kit's common operators");
  if (refused > 0)
    kit_note(k,
             "query refuses %u of %u operators in a newer opset, though since_version says that their definition is "
             "the same",
             (unsigned)refused, (unsigned)n);
}

/* query opens nothing, by the descriptors and threads of the process. */
void op_quiet(kit *k) {
  form *f = new_form(k);
  const uint32_t descriptors = proc_descriptors(), threads = proc_threads();
  for (uint32_t i = 0; i < OPS; i++)
    if (taken(k, f, ops[i], OP_RUN)) op_free(&f->c);
  if (k->dev != NULL) kit_skip(k, "the plugin needs an open device to answer (HEDDLE_ENEEDSOPEN)");
  const uint32_t more = proc_descriptors(), running = proc_threads();
  if (more > descriptors)
    kit_fail(k, "op.query opened %u descriptors; it is pure and opens nothing", (unsigned)(more - descriptors));
  if (running > threads) kit_fail(k, "op.query started %u threads; it is pure", (unsigned)(running - threads));
  free(f);
}

/* What device.query counts of ops and launches. */
void op_counts(kit *k) {
  heddle_pstream *s = kit_stream(k, k->dev);
  const int64_t before = kit_live(k, HEDDLE_QUERY_LIVE_OBJECTS);
  op_any *any = op_any_prepare(k);
  int64_t more = kit_live(k, HEDDLE_QUERY_LIVE_OBJECTS) - before;
  if (more != 1) kit_fail(k, "LIVE_OBJECTS grew by %lld with an op", (long long)more);
  heddle_plaunch *launch = op_any_bind(k, any, s);
  more = kit_live(k, HEDDLE_QUERY_LIVE_OBJECTS) - before;
  if (more != 2) kit_fail(k, "LIVE_OBJECTS grew by %lld with an op and a launch", (long long)more);
  k->t.op.launch_free(launch);
  op_any_free(k, any);
  more = kit_live(k, HEDDLE_QUERY_LIVE_OBJECTS) - before;
  if (more != 0) kit_fail(k, "LIVE_OBJECTS is off by %lld after an op and a launch were freed", (long long)more);
  k->t.stream.close(s);
}

/* Prepared from a region that is gone when prepare returns, and bound with slices that are gone when bind does. */
static void run_kept(kit *k, form *f, heddle_pstream *stream) {
  op_want want[OP_OUT];
  op_ready ready;
  if (!op_reference(k, &f->c, want)) return;
  op_clone clone = op_clone_make(k, &f->r.region, OP_CLONE_SAME);
  op_region r = f->r;
  r.region = *clone.region;
  op_prepare_region(k, &f->c, &r, &f->plain, 0, &ready);
  memcpy(f->r.values, clone.region->values.data, clone.region->values.count * sizeof *f->r.values); /* with layouts */
  for (uint64_t i = 0; i < f->r.region.values.count; i++) f->r.values[i].data = NULL, f->r.values[i].shape = NULL;
  op_clone_gone(&clone);
  ready.r.region = f->r.region;
  op_launch(k, k->dev, stream, &ready, want, OP_GONE, -1);
  op_ready_free(k, &ready);
  op_clone_free(&clone);
  op_want_free(want);
}

void op_kept(kit *k) {
  form *f = new_form(k);
  heddle_pstream *stream = kit_stream(k, k->dev);
  uint32_t n = 0;
  for (uint32_t i = 0; i < OPS; i++)
    for (uint32_t known = OP_RUN; known <= OP_KNOWN_EVEN; known += OP_KNOWN_EVEN - OP_RUN) {
      if (!taken(k, f, ops[i], known)) continue;
      run_kept(k, f, stream);
      op_free(&f->c);
      n++;
    }
  k->t.stream.close(stream);
  free(f);
  if (n == 0) kit_skip(k, "the device takes none of the kit's common operators");
}
