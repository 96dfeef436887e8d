/* executor/explain/text.c: a plan for people. A summary comes first, then a section each for nodes, copies, streams and
 * memory. A section is a heading "NAME (COUNT)", rows that begin with two spaces, and an empty line; nothing is cut. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/alloc.h"
#include "core/registry.h"
#include "executor/budget.h"
#include "executor/explain/sheet.h"
#include "executor/place/placer.h"

/* A table is put together in cells, so that its columns can be as wide as they need. */
#define MAX_COLUMNS 6
#define MAX_CELL 44

typedef struct table {
  heddle__sheet cells; /* each cell's bytes and a zero */
  uint32_t columns;
  uint32_t width[MAX_COLUMNS];
  uint32_t column; /* of the next cell */
} table;

/* Columns are counted in characters: bytes that continue one in UTF-8 are not counted. */
static uint32_t text_width(const char *text) {
  uint32_t n = 0;
  for (; *text != '\0'; text++) n += (*text & 0xC0) != 0x80;
  return n;
}

static void cell(table *t, const char *text) {
  uint32_t width = text_width(text);
  if (width > t->width[t->column] && width <= MAX_CELL) t->width[t->column] = width;
  t->column = (t->column + 1) % t->columns;
  heddle__say_bytes(&t->cells, text, strlen(text) + 1);
}

static void cell_number(table *t, uint64_t number) {
  char text[24];
  snprintf(text, sizeof text, "%" PRIu64, number);
  cell(t, text);
}

/* The last column is not padded: it may be as long as it likes. */
static void print_table(table *t, heddle__sheet *sheet) {
  const char *p = t->cells.text, *end = p == NULL ? NULL : p + t->cells.used;
  if (t->cells.failed) sheet->failed = true;
  while (p != NULL && p < end && !sheet->failed) {
    heddle__say(sheet, "  ");
    for (uint32_t i = 0; i < t->columns && p < end; i++) {
      heddle__say(sheet, "%s", p);
      if (i + 1 < t->columns) {
        for (uint32_t k = text_width(p); k < t->width[i]; k++) heddle__say_bytes(sheet, " ", 1);
        heddle__say_bytes(sheet, "  ", 2);
      }
      p += strlen(p) + 1;
    }
    heddle__say_bytes(sheet, "\n", 1);
  }
  heddle__free(t->cells.text);
}

/* ---- the summary */

static void say_devices(const heddle__plan *plan, heddle__sheet *sheet) {
  heddle__say(sheet, "devices   ");
  for (uint32_t i = 0; i < plan->n_devices; i++)
    heddle__say(sheet, "%s%s", i == 0 ? "" : ", ", heddle__explain_device(plan, i));
  heddle__say(sheet, "   (list from: %s)\n", plan->req.devices_from != NULL ? plan->req.devices_from : "call");
  for (const char *at = plan->req.left_out; at != NULL && *at != '\0';) {
    size_t n = strcspn(at, "\n");
    heddle__say(sheet, "warning   %.*s\n", (int)n, at);
    at += n + (at[n] == '\n');
  }
  if (plan->req.on_failure != NULL) heddle__say(sheet, "on failure %s\n", plan->req.on_failure);
  heddle__say(sheet, "nodes     ");
  bool first = true;
  for (uint32_t d = 0; d < plan->n_devices; d++) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->n_placed; i++) n += plan->placed[i].device == d;
    if (n == 0) continue;
    heddle__say(sheet, "%s%" PRIu32 " on %s", first ? "" : ", ", n, heddle__explain_device(plan, d));
    first = false;
  }
  heddle__say(sheet, "%s\n", first ? "none" : "");
  first = true;
  for (uint32_t d = 0; d < plan->n_devices; d++) {
    const heddle_device *dev = plan->devices[d].dev;
    if (!dev->plugin->one_by_one) continue;
    heddle__say(sheet, "%s%s", first ? "regions   off, nodes run one by one on " : ", ",
                heddle__explain_device(plan, d));
    first = false;
  }
  if (!first) heddle__say(sheet, "\n");
}

static bool is_copy(heddle__step_kind kind) {
  return kind != HEDDLE__STEP_OP && kind != HEDDLE__STEP_RELEASE && kind != HEDDLE__STEP_ACQUIRE &&
         kind != HEDDLE__STEP_FINISH;
}

static void say_counts(const heddle__plan *plan, heddle__sheet *sheet) {
  uint32_t copies = 0, ops = 0, waits[3] = {0};
  uint64_t bytes = 0, arenas = 0, constants = 0, io = 0;
  for (uint32_t i = 0; i < plan->n_steps; i++) {
    const heddle__step *s = &plan->steps[i];
    ops += s->kind == HEDDLE__STEP_OP;
    if (is_copy(s->kind)) {
      copies++;
      bytes += plan->instances[s->src].bytes;
    }
    for (uint32_t k = 0; k < s->n_waits; k++) waits[s->waits[k].by]++;
  }
  for (uint32_t i = 0; i < plan->n_allocs; i++) {
    const heddle__allocation *a = &plan->allocs[i];
    uint64_t *sum = a->kind == HEDDLE__ALLOC_CONSTANT                                   ? &constants
                    : a->kind == HEDDLE__ALLOC_INPUT || a->kind == HEDDLE__ALLOC_OUTPUT ? &io
                                                                                        : &arenas;
    *sum += a->bytes;
  }
  heddle__say(sheet,
              "copies    %" PRIu32 " a run, %" PRIu64 " bytes\nsteps     %" PRIu32 " of operators on %" PRIu32
              " streams; waits: %" PRIu32 " by event, %" PRIu32 " by fence, %" PRIu32 " by the host\n",
              copies, bytes, ops, plan->n_streams, waits[HEDDLE__BY_EVENT], waits[HEDDLE__BY_FENCE],
              waits[HEDDLE__BY_HOST]);
  heddle__say(sheet,
              "memory    %" PRIu64 " bytes for values between nodes, %" PRIu64 " for constants, %" PRIu64
              " for inputs and outputs\n\n",
              arenas, constants, io);
}

/* ---- sections */

/* Of a region that reads or writes layouts of its plugin's: those of its first input and first output, and the constants
 * that are packed in another layout. */
static void say_layouts(const heddle__plan *plan, const heddle__region *r, heddle__sheet *sheet) {
  char before[HEDDLE__LAYOUT_NAME], after[HEDDLE__LAYOUT_NAME];
  const heddle_layout from = r->n_inputs > 0 ? plan->values[r->inputs[0]].layout : 0;
  const heddle_layout to = r->n_outputs > 0 ? plan->values[r->outputs[0]].layout : 0;
  if (r->kind != HEDDLE__REGION_OP) return;
  heddle__explain_layout(plan, r->device, from, before);
  heddle__explain_layout(plan, r->device, to, after);
  if (from != 0 || to != 0) heddle__say(sheet, "; %s to %s", before, after);
  for (uint32_t i = 0; i < r->n_inputs; i++) {
    const heddle__value *v = &plan->values[r->inputs[i]];
    if (v->kind != HEDDLE__VALUE_CONSTANT || v->layout == 0) continue;
    heddle__explain_layout(plan, r->device, v->layout, before);
    heddle__say(sheet, "; %s as %s", plan->req.graph->nodes[plan->req.graph->args[v->arg]].name, before);
  }
}

static heddle_status say_nodes(const heddle__plan *plan, heddle__sheet *sheet, heddle_error *err) {
  const heddle_graph *g = plan->req.graph;
  uint32_t *region_of = heddle__alloc((size_t)plan->n_placed + plan->n_regions + 1, sizeof *region_of);
  if (region_of == NULL) return heddle__no_memory(err, "the explanation of a plan");
  uint32_t *stream_of = region_of + plan->n_placed;
  heddle__explain_regions(plan, region_of, stream_of);
  uint32_t n = 0;
  for (uint32_t i = 0; i < plan->n_placed; i++) n += plan->placed[i].device != HEDDLE__NONE;
  heddle__say(sheet, "nodes (%" PRIu32 ")\n", n);
  table t = {.columns = 5};
  cell(&t, "node"), cell(&t, "operator"), cell(&t, "device"), cell(&t, "stream"), cell(&t, "why");
  for (uint32_t i = 0; i < plan->n_placed; i++) {
    const heddle__placed *p = &plan->placed[i];
    if (p->device == HEDDLE__NONE) continue;
    uint32_t r = region_of[i], stream = r != HEDDLE__NONE ? stream_of[r] : HEDDLE__NONE;
    cell(&t, g->nodes[i].name);
    cell(&t, g->nodes[i].kind == HEDDLE__NODE_TVM ? g->nodes[i].func_name : g->nodes[i].op);
    cell(&t, heddle__explain_device(plan, p->device));
    if (stream != HEDDLE__NONE) cell_number(&t, stream);
    else cell(&t, "-");
    heddle__sheet why = {0};
    heddle__say(&why, "%s", p->cause != NULL ? p->cause : "");
    if (r != HEDDLE__NONE && plan->regions[r].kind == HEDDLE__REGION_VIEW)
      heddle__say(&why, "; a view: nothing to run");
    else if (r == HEDDLE__NONE) heddle__say(&why, "; known before the run");
    else if (stream == HEDDLE__NONE) heddle__say(&why, "; not run: nothing needs it");
    else if (plan->regions[r].n_nodes > 1) heddle__say(&why, "; one step with %s", plan->regions[r].label);
    if (r != HEDDLE__NONE && plan->regions[r].n_nodes > 0 && plan->regions[r].nodes[0] == i)
      say_layouts(plan, &plan->regions[r], &why);
    if (why.failed) sheet->failed = true;
    else cell(&t, why.text);
    heddle__free(why.text);
  }
  print_table(&t, sheet);
  heddle__say(sheet, "\n");
  heddle__free(region_of);
  return HEDDLE_OK;
}

static uint32_t users_of(const heddle__plan *plan, uint32_t value) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < plan->n_regions; i++)
    for (uint32_t k = 0; k < plan->regions[i].n_inputs; k++) n += plan->regions[i].inputs[k] == value;
  for (uint32_t i = 0; i < plan->n_outputs; i++) n += plan->outputs[i].value == value;
  return n;
}

static void say_reorders(const heddle__plan *plan, heddle__sheet *sheet) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < plan->n_regions; i++) n += plan->regions[i].kind == HEDDLE__REGION_REORDER;
  if (n == 0) return;
  heddle__say(sheet, "layouts (%" PRIu32 ")\n", n);
  for (uint32_t i = 0; i < plan->n_regions; i++) {
    const heddle__region *r = &plan->regions[i];
    if (r->kind != HEDDLE__REGION_REORDER) continue;
    const heddle__value *from = &plan->values[r->inputs[0]], *to = &plan->values[r->outputs[0]];
    char before[HEDDLE__LAYOUT_NAME], after[HEDDLE__LAYOUT_NAME];
    const uint32_t users = users_of(plan, r->outputs[0]);
    heddle__explain_layout(plan, r->device, from->layout, before);
    heddle__explain_layout(plan, r->device, to->layout, after);
    heddle__say(sheet, "  %s on %s: %s to %s, %" PRIu64 " bytes, for %" PRIu32 " use%s\n", from->name,
                heddle__explain_device(plan, r->device), before, after, to->size, users, users == 1 ? "" : "s");
  }
  heddle__say(sheet, "\n");
}

static void say_crossings(const heddle__plan *plan, heddle__sheet *sheet) {
  heddle__say(sheet, "between devices (%" PRIu32 ")\n", plan->n_crossings);
  if (plan->n_crossings == 0) {
    heddle__say(sheet, "  nothing\n\n");
    return;
  }
  table t = {.columns = 6};
  cell(&t, "value"), cell(&t, "from"), cell(&t, "to"), cell(&t, "bytes"), cell(&t, "route"), cell(&t, "time");
  for (uint32_t i = 0; i < plan->n_crossings; i++) {
    const heddle__crossing *c = &plan->crossings[i];
    cell(&t, plan->values[c->value].name);
    cell(&t, heddle__explain_device(plan, c->from));
    cell(&t, heddle__explain_device(plan, c->to));
    cell_number(&t, c->bytes);
    cell(&t, heddle__explain_route(c->route));
    char words[48];
    const uint64_t tenths = (heddle__explain_time(c) + 50) / 100;
    snprintf(words, sizeof words, "%" PRIu64 ".%u us, %s", tenths / 10, (unsigned)(tenths % 10),
             c->cost.measured ? "measured" : "assumed");
    cell(&t, words);
  }
  print_table(&t, sheet);
  heddle__say(sheet, "\n");
}

static void say_states(const heddle__plan *plan, heddle__sheet *sheet) {
  if (plan->req.n_ties == 0) return;
  heddle__say(sheet, "state values (%" PRIu32 ")\n", plan->req.n_ties);
  table t = {.columns = 4};
  cell(&t, "input"), cell(&t, "output"), cell(&t, "device"), cell(&t, "update");
  for (uint32_t i = 0; i < plan->req.n_ties; i++) {
    const heddle__tie *tie = &plan->req.ties[i];
    const heddle__update *u = &plan->updates[i];
    cell(&t, plan->req.graph->nodes[plan->req.graph->args[tie->arg]].name);
    cell(&t, plan->values[plan->outputs[tie->output].value].name);
    cell(&t, heddle__explain_device(plan, plan->spaces[plan->instances[u->output].space].device));
    heddle__sheet how = {0};
    if (u->step == HEDDLE__NONE) heddle__say(&how, "in other memory: %s", u->why);
    else heddle__say(&how, "in place, by %s", plan->regions[plan->steps[u->step].region].label);
    if (how.failed) sheet->failed = true;
    else cell(&t, how.text);
    heddle__free(how.text);
  }
  print_table(&t, sheet);
  heddle__say(sheet, "\n");
}

static void say_streams(const heddle__plan *plan, heddle__sheet *sheet) {
  heddle__say(sheet, "streams (%" PRIu32 ")\n", plan->n_streams);
  table t = {.columns = 5};
  cell(&t, "stream"), cell(&t, "device"), cell(&t, "for"), cell(&t, "steps"), cell(&t, "run by");
  for (uint32_t i = 0; i < plan->n_streams; i++) {
    const heddle__plan_stream *s = &plan->streams[i];
    cell_number(&t, i);
    cell(&t, heddle__explain_device(plan, s->device));
    cell(&t, heddle__explain_stream(s->kind));
    cell_number(&t, s->n_steps);
    cell(&t, s->is_host ? "the calling thread" : "the device");
  }
  print_table(&t, sheet);
  heddle__say(sheet, "\n");
}

static void say_memory(const heddle__plan *plan, heddle__sheet *sheet) {
  heddle__say(sheet, "memory (%" PRIu32 ")\n", plan->n_spaces);
  table t = {.columns = 6};
  cell(&t, "bytes on"), cell(&t, "kind"), cell(&t, "between nodes"), cell(&t, "constants"), cell(&t, "inputs");
  cell(&t, "outputs");
  for (uint32_t i = 0; i < plan->n_spaces; i++) {
    uint64_t bytes[5] = {0};
    for (uint32_t k = 0; k < plan->n_allocs; k++)
      if (plan->allocs[k].space == i) bytes[plan->allocs[k].kind] += plan->allocs[k].bytes * heddle__plan_sets(plan, k);
    cell(&t, heddle__explain_device(plan, plan->spaces[i].device));
    cell(&t, heddle__explain_memory(plan->spaces[i].image.width > 0 ? HEDDLE_MEMORY_IMAGE : plan->spaces[i].kind));
    cell_number(&t, bytes[HEDDLE__ALLOC_ARENA] + bytes[HEDDLE__ALLOC_SLOT]);
    cell_number(&t, bytes[HEDDLE__ALLOC_CONSTANT]);
    cell_number(&t, bytes[HEDDLE__ALLOC_INPUT]);
    cell_number(&t, bytes[HEDDLE__ALLOC_OUTPUT]);
  }
  print_table(&t, sheet);
}

/* What is taken of each device in all, by kind. */
static void say_taken(const heddle__plan *plan, heddle__sheet *sheet) {
  uint32_t n = 0;
  table t = {.columns = 5};
  cell(&t, "taken of"), cell(&t, "device"), cell(&t, "unified"), cell(&t, "pinned"), cell(&t, "limit");
  for (uint32_t d = 0; d < plan->n_devices; d++) {
    uint64_t bytes[3], limit = plan->req.limits != NULL ? plan->req.limits[d] : 0;
    for (uint32_t k = 0; k < 3; k++) bytes[k] = heddle__plan_bytes(plan, d, k);
    if (bytes[0] + bytes[1] + bytes[2] + limit == 0) continue;
    n++;
    cell(&t, heddle__explain_device(plan, d));
    cell_number(&t, bytes[HEDDLE_MEMORY_DEVICE]);
    cell_number(&t, bytes[HEDDLE_MEMORY_UNIFIED]);
    cell_number(&t, bytes[HEDDLE_MEMORY_PINNED]);
    char text[96] = "none";
    if (limit != 0) snprintf(text, sizeof text, "%" PRIu64 " (%.64s)", limit, plan->req.limits_from);
    cell(&t, text);
  }
  heddle__say(sheet, "\nmemory taken (%" PRIu32 ")\n", n);
  print_table(&t, sheet);
}

/* Whether the graph leaves the shape of an input to the caller. */
static bool has_open_input(const heddle__plan *plan) {
  const heddle_graph *g = plan->req.graph;
  for (uint32_t i = 0; i < g->n_args; i++) {
    const uint32_t id = g->nodes[g->args[i]].first_entry;
    const heddle__type *type = &g->types[id];
    if (!plan->values[id].used || plan->values[id].kind != HEDDLE__VALUE_INPUT) continue;
    if (!type->has_shape) return true;
    for (uint32_t d = 0; d < type->ndim; d++)
      if (type->dims[d].value < 0) return true;
  }
  return false;
}

/* The bounds of the program that this one is a size of. */
static void say_range(const heddle__plan *plan, heddle__sheet *sheet) {
  const heddle_graph *g = plan->req.graph;
  const char *sep = "range     a size of the program for shapes up to";
  for (uint32_t i = 0; plan->req.bounds != NULL && i < g->n_args; i++) {
    const heddle__known *k = &plan->req.bounds[i].known, *mine = &plan->req.inputs[i].known;
    char shape[128];
    if (plan->req.bounds[i].source != HEDDLE__SOURCE_INPUT || k->ndim != mine->ndim || k->ndim == 0 ||
        memcmp(k->shape, mine->shape, k->ndim * sizeof *k->shape) == 0)
      continue;
    heddle__shape_name(k->shape, k->ndim, shape, sizeof shape);
    heddle__say(sheet, "%s '%s' %s", sep, g->nodes[g->args[i]].name, shape);
    sep = ",";
  }
  if (*sep == ',') heddle__say(sheet, "\n");
  heddle__explain_dim d;
  for (uint32_t arg = 0, dim = 0; heddle__explain_next_dim(plan, &arg, &dim, &d);) {
    if (d.bound == 0 && d.most == 0) continue;
    heddle__say(sheet, "dimension %" PRIu32 " of '%s'%s%s%s: %" PRId64, d.dim, d.input, d.name != NULL ? " ('" : "",
                d.name != NULL ? d.name : "", d.name != NULL ? "')" : "", d.value);
    if (d.bound > 0) heddle__say(sheet, ", planned for 1 to %" PRId64, d.bound);
    if (d.most > 0) heddle__say(sheet, ", at most %" PRId64 " by the options", d.most);
    heddle__say(sheet, "\n");
  }
  if (plan->req.growths > 0) heddle__say(sheet, "growths   %" PRIu32 "\n", plan->req.growths);
  uint32_t n[2] = {0, 0};
  for (uint32_t i = 0; i < plan->n_regions; i++) {
    const char *sizes = heddle__explain_sizes(plan, &plan->regions[i]);
    if (sizes != NULL) n[*sizes == 'p']++;
  }
  if (n[0] + n[1] > 0)
    heddle__say(sheet, "sizes     %" PRIu32 " steps are resized, %" PRIu32 " are prepared for each set of shapes\n",
                n[0], n[1]);
}

heddle_status heddle__explain_text(const heddle__plan *plan, heddle__sheet *sheet, heddle_error *err) {
  heddle__say(sheet, "plan      %s\n", plan->req.graph->source);
  say_devices(plan, sheet);
  if (plan->req.in_flight > 1)
    heddle__say(sheet, "in flight %" PRIu32 " runs, each in memory of its own but for the constants\n",
                plan->req.in_flight);
  if (has_open_input(plan))
    heddle__say(sheet, "programs  at most %" PRIu32 " are kept, one for each set of shapes\n", plan->req.programs);
  say_range(plan, sheet);
  if (plan->req.fast) heddle__say(sheet, "precision fast: float32 may be computed in fewer bits\n");
  if (plan->fitted != NULL) heddle__say(sheet, "to fit    %s\n", plan->fitted);
  if (plan->placing != NULL) heddle__say_bytes(sheet, plan->placing->text, strlen(plan->placing->text));
  say_counts(plan, sheet);
  heddle_status s = say_nodes(plan, sheet, err);
  if (s != HEDDLE_OK) return s;
  say_reorders(plan, sheet);
  say_crossings(plan, sheet);
  say_states(plan, sheet);
  say_streams(plan, sheet);
  say_memory(plan, sheet);
  say_taken(plan, sheet);
  if (plan->req.optimized != NULL)
    heddle__say_bytes(sheet, plan->req.optimized->text, strlen(plan->req.optimized->text));
  return HEDDLE_OK;
}
