/* executor/explain/dot.c: a plan as a picture for Graphviz: what runs, coloured by device, and the edges between; an
 * edge over which a value is copied carries its bytes and route. */
#include <inttypes.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/tensor.h"
#include "executor/explain/sheet.h"
#include "heddle/text.h"

/* Fill and line of the first eight devices, then again. */
static const char *const colours[8][2] = {{"#dbe9f6", "#2166ac"}, {"#fde0c5", "#c4620c"}, {"#d9f0d3", "#1b7837"},
                                          {"#eadcf0", "#762a83"}, {"#fff3b8", "#927608"}, {"#d4efec", "#01665e"},
                                          {"#fbd9e5", "#b0185f"}, {"#e3e3e3", "#4d4d4d"}};

static const char *colour(uint32_t device, int line) {
  return device == HEDDLE__NONE ? line ? "#4d4d4d" : "#ffffff" : colours[device % 8][line];
}

/* Text inside double quotes; long names lose their middle, at no more than 48 bytes. */
static void say_quoted(heddle__sheet *sheet, const char *name) {
  char *text = heddle__alloc(strlen(name) + 1, 1);
  if (text == NULL) {
    sheet->failed = true;
    return;
  }
  (void)heddle_text_clean(name, text, strlen(name) + 1);
  size_t n = 0, cut_from = SIZE_MAX, cut_to = 0;
  while (text[n] != '\0') n++;
  if (n > 48) {
    for (cut_from = 30; cut_from > 0 && (text[cut_from] & 0xC0) == 0x80;) cut_from--;
    for (cut_to = n - 14; (text[cut_to] & 0xC0) == 0x80;) cut_to++;
  }
  for (size_t i = 0; i < n; i++) {
    if (i == cut_from) {
      heddle__say_bytes(sheet, "...", 3);
      i = cut_to;
    }
    if (text[i] == '"' || text[i] == '\\') heddle__say_bytes(sheet, "\\", 1);
    heddle__say_bytes(sheet, &text[i], 1);
  }
  heddle__free(text);
}

static void say_shape(heddle__sheet *sheet, const heddle__known *known) {
  char dtype[32];
  heddle__dtype_name(known->dtype, dtype);
  heddle__say(sheet, "%s [", dtype);
  for (uint32_t i = 0; i < known->ndim; i++) heddle__say(sheet, "%s%" PRId64, i == 0 ? "" : ", ", known->shape[i]);
  heddle__say(sheet, "]");
}

static void say_region(const heddle__plan *plan, heddle__sheet *sheet, uint32_t i) {
  const heddle__region *r = &plan->regions[i];
  heddle__say(sheet, "  r%" PRIu32 " [label=\"", i);
  say_quoted(sheet, r->label);
  heddle__say(sheet, "\\n");
  for (uint32_t k = 0; k < r->n_nodes && k < 6; k++) {
    if (k > 0) heddle__say(sheet, "+");
    say_quoted(sheet, plan->req.graph->nodes[r->nodes[k]].op);
  }
  if (r->n_nodes > 6) heddle__say(sheet, "+...");
  if (r->kind == HEDDLE__REGION_REORDER) heddle__say(sheet, "Reorder");
  heddle__say(sheet, "\", fillcolor=\"%s\", color=\"%s\"%s];\n", colour(r->device, 0), colour(r->device, 1),
              r->kind == HEDDLE__REGION_VIEW ? ", style=\"filled,dashed\"" : "");
}

/* Where a value comes from: a region, or an input of the graph. false for constants, which are not drawn. */
static bool say_source(const heddle__plan *plan, heddle__sheet *sheet, uint32_t value) {
  const heddle__value *v = &plan->values[value];
  if (v->kind == HEDDLE__VALUE_COMPUTED && v->region != HEDDLE__NONE) {
    heddle__say(sheet, "  r%" PRIu32, v->region);
    return true;
  }
  if (v->kind != HEDDLE__VALUE_INPUT) return false;
  heddle__say(sheet, "  v%" PRIu32, value);
  return true;
}

/* labelled: one flag a crossing, so that a copy that serves several edges is written at the first of them. */
static void say_edge(const heddle__plan *plan, heddle__sheet *sheet, uint32_t value, const char *target,
                     uint32_t number, uint32_t device, bool *labelled) {
  if (!say_source(plan, sheet, value)) return;
  heddle__say(sheet, " -> %s%" PRIu32, target, number);
  const heddle__crossing *c = heddle__explain_crossing(plan, value, device);
  if (c != NULL) {
    bool *done = &labelled[c - plan->crossings];
    heddle__say(sheet, " [color=\"%s\", penwidth=2.5", colour(c->to, 1));
    if (!*done) heddle__say(sheet, ", label=\" %" PRIu64 " B %s\"", c->bytes, heddle__explain_route(c->route));
    heddle__say(sheet, "]");
    *done = true;
  }
  heddle__say(sheet, ";\n");
}

static void say_inputs(const heddle__plan *plan, heddle__sheet *sheet) {
  for (uint32_t i = 0; i < plan->n_values; i++) {
    const heddle__value *v = &plan->values[i];
    if (v->kind != HEDDLE__VALUE_INPUT || !v->used) continue;
    heddle__say(sheet, "  v%" PRIu32 " [shape=ellipse, fillcolor=\"#ffffff\", label=\"", i);
    say_quoted(sheet, v->name);
    heddle__say(sheet, "\\n");
    say_shape(sheet, &v->known);
    heddle__say(sheet, "\"];\n");
  }
}

static void say_outputs(const heddle__plan *plan, heddle__sheet *sheet, bool *labelled) {
  for (uint32_t i = 0; i < plan->n_outputs; i++) {
    const heddle__plan_output *o = &plan->outputs[i];
    const heddle__value *v = &plan->values[o->value];
    heddle__say(sheet, "  o%" PRIu32 " [shape=ellipse, fillcolor=\"#ffffff\", label=\"output %" PRIu32 ": ", i, i);
    say_quoted(sheet, v->name);
    heddle__say(sheet, "\\n");
    say_shape(sheet, &v->known);
    heddle__say(sheet, "\"];\n");
    say_edge(plan, sheet, o->value, "o", i, HEDDLE__NONE, labelled);
  }
}

heddle_status heddle__explain_dot(const heddle__plan *plan, heddle__sheet *sheet, heddle_error *err) {
  bool *labelled = heddle__alloc((size_t)plan->n_crossings + 1, sizeof *labelled);
  if (labelled == NULL) return heddle__no_memory(err, "the picture of a plan");
  heddle__say(sheet, "digraph plan {\n  rankdir=TB;\n  labelloc=t;\n  fontname=\"sans-serif\";\n"
                     "  node [shape=box, style=filled, fontname=\"sans-serif\", fontsize=11];\n"
                     "  edge [fontname=\"sans-serif\", fontsize=9];\n  label=<");
  for (uint32_t i = 0; i < plan->n_devices; i++) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < plan->n_placed; k++) n += plan->placed[k].device == i;
    heddle__say(sheet, "%s<font color=\"%s\"><b>%s</b>: %" PRIu32 " node%s</font>", i == 0 ? "" : " &nbsp; ",
                colour(i, 1), heddle__explain_device(plan, i), n, n == 1 ? "" : "s");
  }
  heddle__say(sheet, ">;\n");
  say_inputs(plan, sheet);
  for (uint32_t i = 0; i < plan->n_regions; i++) say_region(plan, sheet, i);
  for (uint32_t i = 0; i < plan->n_regions; i++) {
    const heddle__region *r = &plan->regions[i];
    for (uint32_t k = 0; k < r->n_inputs; k++)
      if (r->inputs[k] != HEDDLE__NONE) say_edge(plan, sheet, r->inputs[k], "r", i, r->device, labelled);
  }
  say_outputs(plan, sheet, labelled);
  heddle__say(sheet, "}\n");
  heddle__free(labelled);
  return HEDDLE_OK;
}
