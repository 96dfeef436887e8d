/* tools/compare.c: heddle compare: runs a model on two lists of devices and finds the first node whose result differs.
 * Side b's values are made part by part; each node is then computed by side a from the inputs that b had, so that what
 * came before is not blamed on it. Only values that are still needed are kept. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "against.h"
#include "compare_region.h"
#include "compare_report.h"
#include "numbers.h"
#include "text.h"

static const option known[] = {
    {"a", OPTION_TEXT, "LIST", offsetof(options, a), "devices that are taken for right, such as cpu"},
    {"b", OPTION_TEXT, "LIST", offsetof(options, b), "devices that are compared with them, such as opencl:0"},
    {"place-a", OPTION_RULES, "PATTERN=DEVICE", offsetof(options, place_a), "placement of side a, as of heddle run"},
    {"place-b", OPTION_RULES, "PATTERN=DEVICE", offsetof(options, place_b), "of side b"},
    OPTION_PARAMS,
    OPTION_LIB,
    OPTION_MODEL_NAME,
    OPTION_OPTIMIZE,
    OPTION_MEMORY,
    OPTION_PRECISION,
    OPTION_INPUT,
    OPTION_DIM,
    {"random", OPTION_FLAG, NULL, offsetof(options, random),
     "makes up inputs that are not given; always the same ones"},
    {"output-dir", OPTION_TEXT, "DIR", offsetof(options, output_dir),
     "where the node that differs is written; heddle-compare by default"},
    {"all", OPTION_FLAG, NULL, offsetof(options, all), "goes on after the first difference, to the end"},
    {"json", OPTION_FLAG, NULL, offsetof(options, json), "one JSON object"},
    {"threads", OPTION_COUNT, "N", offsetof(options, threads), "threads for devices that compute on the host"},
    {"timeout", OPTION_NUMBER, "S", offsetof(options, timeout), "gives up when a run takes S seconds"},
    OPTION_AGAINST("onnxruntime: outputs of b, cpu by default, with ONNX Runtime's; needs the Python packages"),
    OPTION_SET,
    {"set-a", OPTION_PAIRS, "KEY=VALUE", offsetof(options, settings_a), "a setting of side a alone"},
    {"set-b", OPTION_PAIRS, "KEY=VALUE", offsetof(options, settings_b), "of side b alone"},
    OPTION_KEY,
    OPTION_HELP,
    OPTION_END};

enum { FEWEST = 8, MOST = 128 };                           /* nodes of a part */
static const uint64_t little = 32 << 20, much = 256 << 20; /* bytes of a part's values: more nodes, fewer */

/* An output of the whole model: a's value, the largest error of b's, the largest element. */
typedef struct output {
  heddle_tensor *of_a;
  double error, most;
} output;

typedef struct comparison {
  const options *o;
  options oa, ob;
  session a, b;
  whole w;
  bool fast;
  uint32_t compared, found;
  json_t *differences; /* with --json */
  char *command;       /* of the first difference */
  char *memory;        /* --memory as a setting, or NULL */
  output *outputs;
  uint32_t n_outputs;
  bool outputs_differ;
  regions rows;                   /* of b */
  plain_session plain_a, plain_b; /* where rows has some: without regions */
  uint32_t regions_found;
  uint32_t known;      /* values of nodes before this one are there */
  json_t *region_list; /* with --json */
  char *rewritten;     /* labels of the regions of the rewritten model */
  bool fused_later;    /* outputs agree without the regions of the rewritten model */
} comparison;

/* ---- two sides */

/* extra may be NULL. */
static bool joined(const char *extra, const words *first, const words *second, words *out) {
  out->data = calloc(first->count + second->count + 1, sizeof *out->data);
  if (out->data == NULL) return false;
  if (extra != NULL) out->data[out->count++] = extra;
  for (size_t i = 0; i < first->count; i++) out->data[out->count++] = first->data[i];
  for (size_t i = 0; i < second->count; i++) out->data[out->count++] = second->data[i];
  return true;
}

/* --memory as a setting, which may name devices that only the other side has. */
static char *memory_setting(const char *limits) {
  const size_t n = limits != NULL ? strlen(limits) + sizeof "limit.memory=" : 0;
  char *made = n > 0 ? malloc(n) : NULL;
  if (made != NULL) snprintf(made, n, "limit.memory=%s", limits);
  return made;
}

static int side(session *s, options *mine, const options *o, const char *limits, const char *devices,
                const words *settings, const words *place) {
  *mine = *o;
  mine->devices = devices;
  mine->place = *place;
  mine->ignore_annotations = true;
  mine->memory = NULL;
  mine->settings = (words){0};
  if (!joined(limits, &o->settings, settings, &mine->settings)) return fail_text("compare", "out of memory");
  int status = session_model(s, "compare", mine);
  if (status == DONE) status = session_executor(s, o->random);
  return status;
}

static int run_whole(session *s) {
  heddle_error err = {0};
  heddle_status r = heddle_executor_run(s->ex, session_timeout(s), &err);
  return r == HEDDLE_OK ? DONE : session_run_failed(s, r, &err);
}

/* The largest error between two tensors of numbers, and the largest element of the first; other tensors: 0. */
static double error_between(const heddle_tensor *x, const heddle_tensor *y, double *most) {
  double error = 0;
  *most = 0;
  if (!numbers_known(heddle_tensor_dtype(x))) return 0;
  if (heddle_tensor_bytes(x) != heddle_tensor_bytes(y)) return (double)INFINITY;
  for (uint64_t k = 0; k < numbers_count(x); k++) {
    const double p = number_at(x, k), q = number_at(y, k);
    if (isfinite(p) && fabs(p) > *most) *most = fabs(p);
    if (p == q || (isnan(p) && isnan(q))) continue;
    const double off = isfinite(p - q) ? fabs(p - q) : (double)INFINITY;
    if (off > error) error = off;
  }
  return error;
}

/* How far the outputs of the two runs lie apart, of the whole model as it runs otherwise (rewritten, fused). */
static int compare_outputs(comparison *c) {
  heddle_error err = {0};
  c->n_outputs = heddle_executor_output_count(c->a.ex);
  c->outputs = calloc((size_t)c->n_outputs + 1, sizeof *c->outputs);
  if (c->outputs == NULL) return fail_text("compare", "out of memory");
  for (uint32_t i = 0; i < c->n_outputs; i++) {
    heddle_tensor *y = NULL;
    heddle_status s = heddle_executor_view_output(c->a.ex, i, &c->outputs[i].of_a, &err);
    if (s == HEDDLE_OK) s = heddle_executor_view_output(c->b.ex, i, &y, &err);
    if (s != HEDDLE_OK) return fail("compare", &err);
    c->outputs[i].error = error_between(c->outputs[i].of_a, y, &c->outputs[i].most);
    heddle_tensor_release(y);
  }
  return DONE;
}

/* The part of the largest element that an output may be off; indices and truths may be any, since a rounding moves them. */
static double share_of(heddle_dtype d) {
  if (numbers_are_floats(d)) return d.bits == 16 ? 0.1 : 0.01;
  const bool quantised = d.bits == 8 && (d.code == HEDDLE_DTYPE_INT || d.code == HEDDLE_DTYPE_UINT);
  return quantised ? 0.1 : (double)INFINITY;
}

/* Errors of all nodes add up in the outputs, and a rounding that tips a step of a quantised model is not small. So an
 * error is called a difference where it is more than 1 % of the largest element (10 % in 16 bits, and of integers of 8),
 * and more than four times that of b's values from node to node, of which each is right. */
static void judge_outputs(comparison *c) {
  const json_t *heads = json_object_get(c->w.document, "heads");
  for (uint32_t i = 0; i < c->n_outputs; i++) {
    const output *o = &c->outputs[i];
    const uint32_t entry = whole_entry(&c->w, json_array_get(heads, i));
    double most, drift = 0;
    if (entry != UINT32_MAX && c->w.values[entry] != NULL) drift = error_between(o->of_a, c->w.values[entry], &most);
    const double share = share_of(heddle_tensor_dtype(o->of_a));
    const bool far = isfinite(share) && o->error > share * o->most;
    c->outputs_differ = c->outputs_differ || (far && o->error > 4 * drift);
  }
}

/* ---- the walk */

/* The values of the inputs that a part's nodes read: of the model's own, from the executor, when they are first read. */
static heddle_status fetch_inputs(comparison *c, uint32_t begin, uint32_t end, heddle_error *err) {
  whole *w = &c->w;
  for (uint32_t node = begin; node < end; node++) {
    for (uint32_t k = 0; k < whole_operands(w, node); k++) {
      const uint32_t entry = whole_operand(w, node, k);
      if (entry == UINT32_MAX || w->values[entry] != NULL || !whole_is_input(w, w->owner[entry])) continue;
      const int32_t at = heddle_executor_input_index(c->b.ex, whole_name(w, w->owner[entry]));
      heddle_io_info info = {.struct_size = sizeof info};
      heddle_status s = HEDDLE_EINVAL;
      if (at >= 0) s = heddle_executor_input_info(c->b.ex, (uint32_t)at, &info, err);
      if (s == HEDDLE_OK) s = heddle_executor_get_input(c->b.ex, (uint32_t)at, &w->values[entry], err);
      if (s != HEDDLE_OK) return s;
      w->constant[entry] = info.is_param;
    }
  }
  return HEDDLE_OK;
}

/* What is constant goes on being constant through nodes that read nothing else. */
static void spread_constants(whole *w, uint32_t node) {
  bool constant = true;
  for (uint32_t k = 0; constant && k < whole_operands(w, node); k++) {
    const uint32_t entry = whole_operand(w, node, k);
    constant = entry == UINT32_MAX || w->constant[entry];
  }
  for (uint32_t entry = w->first[node]; entry < w->first[node + 1]; entry++) w->constant[entry] = constant;
}

static void forget(whole *w, uint32_t end) {
  for (uint32_t entry = 0; entry < w->first[end]; entry++) {
    if (w->last_use[entry] >= end || w->values[entry] == NULL) continue;
    heddle_tensor_release(w->values[entry]);
    w->values[entry] = NULL;
  }
}

/* Of a node that differs: what the region gives in which b runs it, where all that it reads is known. */
static heddle_status try_region(comparison *c, difference *d, heddle_error *err) {
  for (uint32_t i = 0; i < c->rows.n; i++) {
    const region_row *row = &c->rows.rows[i];
    if (!row->chosen[d->node] || row->last >= c->known) continue;
    region_difference of_region;
    bool differs = false;
    const heddle_status s = region_compare(&c->plain_a.s, &c->b, &c->w, row, c->fast, &differs, &of_region, err);
    region_difference_finish(&of_region);
    d->region_nodes = row->count;
    d->region_differs = differs;
    return s;
  }
  return HEDDLE_OK;
}

static int found_difference(comparison *c, const part *alone, difference *d, heddle_tensor *const *expected) {
  int status = DONE;
  const bool knows_a = d->device_a[0] != '\0', knows_b = d->device_b[0] != '\0';
  c->found++;
  if (d->device_a[0] == '\0') snprintf(d->device_a, sizeof d->device_a, "%s", c->oa.devices);
  if (d->device_b[0] == '\0') snprintf(d->device_b, sizeof d->device_b, "%s", c->ob.devices);
  progress_end();
  if (c->o->json) json_array_append_new(c->differences, difference_object(&c->w, alone, d));
  else report_difference(&c->w, alone, d);
  if (c->command == NULL)
    status = report_replay(&(replay_side){&c->a, knows_a ? d->device_a : NULL},
                           &(replay_side){&c->b, knows_b ? d->device_b : NULL}, &c->w, alone, expected,
                           c->o->output_dir != NULL ? c->o->output_dir : "heddle-compare", &c->command);
  return status;
}

/* What b gives where the node is alone, and where that was. */
static heddle_status try_alone(comparison *c, const part *alone, difference *d, heddle_error *err) {
  const uint32_t n = part_outputs(&c->w, alone);
  heddle_tensor **out = calloc((size_t)n + 1, sizeof(heddle_tensor *));
  judgement j = {0};
  if (out == NULL) return err->status = HEDDLE_ENOMEM;
  part_place place = {.largest = 0};
  heddle_status s = part_run(&c->b, &c->w, alone, out, &place, err);
  snprintf(d->device_b, sizeof d->device_b, "%s", place.device);
  if (s == HEDDLE_OK) s = judge(&c->a, &c->w, alone, d->output, c->fast, d->expected, out[d->output], &j, err);
  d->same_alone = j.differs;
  for (uint32_t i = 0; i < n; i++) heddle_tensor_release(out[i]);
  free(out);
  return s;
}

static int compare_node(comparison *c, uint32_t node) {
  whole *w = &c->w;
  heddle_error err = {0};
  part alone = {0};
  part_place place = {.largest = 0};
  const uint32_t n = w->first[node + 1] - w->first[node];
  heddle_tensor **expected = calloc((size_t)n + 1, sizeof(heddle_tensor *));
  if (expected == NULL) return fail_text("compare", "out of memory");
  int status = DONE;
  heddle_status s = part_make(w, node, node + 1, &alone, &err);
  if (s == HEDDLE_OK) s = part_run(&c->a, w, &alone, expected, &place, &err);
  for (uint32_t k = 0; k < n && s == HEDDLE_OK && status == DONE; k++) {
    difference d = {.node = node, .output = k, .expected = expected[k], .got = w->values[w->first[node] + k]};
    snprintf(d.device_a, sizeof d.device_a, "%s", place.device);
    s = judge(&c->a, w, &alone, k, c->fast, expected[k], d.got, &d.judged, &err);
    if (s != HEDDLE_OK || !d.judged.differs) continue;
    s = try_alone(c, &alone, &d, &err);
    if (s == HEDDLE_OK) s = try_region(c, &d, &err);
    if (s == HEDDLE_OK) status = found_difference(c, &alone, &d, expected);
    if (!c->o->all) break;
  }
  c->compared++;
  if (s != HEDDLE_OK) status = fail_text("compare", "node '%s' alone: %s", whole_name(w, node), err.text);
  for (uint32_t k = 0; k < n; k++) heddle_tensor_release(expected[k]);
  free(expected);
  part_finish(&alone);
  return status;
}

/* The regions whose last node a part has. Their values are there since the regions were read. */
static int compare_regions(comparison *c, uint32_t begin, uint32_t end) {
  for (uint32_t i = 0; i < c->rows.n; i++) {
    const region_row *row = &c->rows.rows[i];
    region_difference d;
    heddle_error err = {0};
    bool differs = false;
    if (row->last < begin || row->last >= end) continue;
    heddle_status s = region_compare(&c->plain_a.s, &c->b, &c->w, row, c->fast, &differs, &d, &err);
    if (s == HEDDLE_OK && differs) {
      c->regions_found++;
      progress_end();
      if (c->o->json) json_array_append_new(c->region_list, region_object(&c->w, &d));
      else region_report(&c->w, &d);
    }
    region_difference_finish(&d);
    if (s != HEDDLE_OK)
      return fail_text("compare", "the region that ends with node '%s': %s", whole_name(&c->w, row->last), err.text);
    if (differs && !c->o->all) return DONE;
  }
  return DONE;
}

/* Side b's values of a part's nodes; *bytes is what they take. */
static heddle_status values_of_part(comparison *c, uint32_t begin, uint32_t end, uint64_t *bytes, heddle_error *err) {
  whole *w = &c->w;
  part p = {0};
  *bytes = 0;
  heddle_status s = fetch_inputs(c, begin, end, err);
  if (s == HEDDLE_OK) s = part_make(w, begin, end, &p, err);
  const uint32_t n = s == HEDDLE_OK ? part_outputs(w, &p) : 0;
  heddle_tensor **out = calloc((size_t)n + 1, sizeof(heddle_tensor *));
  if (s == HEDDLE_OK && out == NULL) s = err->status = HEDDLE_ENOMEM;
  if (s == HEDDLE_OK && n > 0) s = part_run(c->rows.n > 0 ? &c->plain_b.s : &c->b, w, &p, out, NULL, err);
  for (uint32_t entry = w->first[begin], i = 0; s == HEDDLE_OK && entry < w->first[end]; entry++) {
    if (whole_is_input(w, w->owner[entry])) continue;
    w->values[entry] = out[i];
    *bytes += heddle_tensor_bytes(out[i]);
    out[i++] = NULL;
  }
  for (uint32_t i = 0; out != NULL && i < n; i++) heddle_tensor_release(out[i]);
  free(out);
  for (uint32_t node = begin; node < end; node++)
    if (!whole_is_input(w, node)) spread_constants(w, node);
  part_finish(&p);
  return s;
}

static int walk(comparison *c) {
  whole *w = &c->w;
  uint32_t size = FEWEST;
  for (uint32_t begin = 0; begin < w->n_nodes;) {
    heddle_error err = {0};
    const uint32_t end = w->n_nodes - begin < size ? w->n_nodes : begin + size;
    uint64_t bytes;
    progress("node %" PRIu32 " of %" PRIu32, begin + 1, w->n_nodes);
    if (values_of_part(c, begin, end, &bytes, &err) != HEDDLE_OK)
      return fail_text("compare", "nodes '%s' to '%s': %s", whole_name(w, begin), whole_name(w, end - 1), err.text);
    c->known = end;
    for (uint32_t node = begin; node < end; node++) {
      if (whole_is_input(w, node)) continue;
      int status = compare_node(c, node);
      if (status != DONE || (c->found > 0 && !c->o->all)) return status;
    }
    int status = compare_regions(c, begin, end);
    if (status != DONE || (c->regions_found > 0 && !c->o->all)) return status;
    forget(w, end);
    if (bytes < little && size < MOST) size *= 2;
    if (bytes > much && size > 1) size /= 2;
    begin = end;
  }
  progress_end();
  return DONE;
}

/* ---- the result */

static int finish_text(const comparison *c) {
  for (uint32_t i = 0; i < c->n_outputs; i++) {
    heddle_io_info info = {.struct_size = sizeof info};
    if (heddle_executor_output_info(c->a.ex, i, &info, NULL) != HEDDLE_OK) continue;
    print("output %s of the whole model: at most %.3g apart, the largest element is %.3g\n", info.name,
          c->outputs[i].error, c->outputs[i].most);
  }
  if (c->found > 0) {
    print("%s %" PRIu32 " of %" PRIu32 " nodes compared\n", c->found == 1 ? "1 difference;" : "differences;",
          c->compared, c->w.rank[c->w.n_nodes]);
    print("written to %s; replay with\n  %s\n", c->o->output_dir != NULL ? c->o->output_dir : "heddle-compare",
          c->command);
    return FAILED;
  }
  if (c->regions_found > 0) {
    print("%" PRIu32 " of %" PRIu32 " nodes compared, each agrees one by one\n", c->compared, c->w.rank[c->w.n_nodes]);
    return FAILED;
  }
  if (c->fused_later) {
    fail_text("compare",
              "all %" PRIu32
              " nodes agree one by one, and the regions of the model as it is written; the model's outputs do "
              "not, and agree with --set-b %s: what is wrong lies in a region of the rewritten model, %s",
              c->compared, c->plain_b.settings[0], c->rewritten != NULL ? c->rewritten : "");
    return FAILED;
  }
  if (c->outputs_differ) {
    fail_text("compare",
              "all %" PRIu32 " nodes agree one by one, but the model's outputs do not: what is wrong lies between the "
              "nodes (how they are rewritten, laid out or copied; it is no region that a plugin fuses); %s",
              c->compared,
              c->o->optimize != NULL && strcmp(c->o->optimize, "off") == 0
                  ? "it is not the rewriting, which is off"
                  : "--optimize off shows whether the rewriting is the cause");
    return FAILED;
  }
  print("equal: %" PRIu32 " nodes, each within its own error bound\n", c->compared);
  return DONE;
}

static int finish_json(comparison *c) {
  json_t *outputs = json_array();
  for (uint32_t i = 0; i < c->n_outputs; i++) {
    heddle_io_info info = {.struct_size = sizeof info};
    const double error = c->outputs[i].error;
    if (heddle_executor_output_info(c->a.ex, i, &info, NULL) != HEDDLE_OK) continue;
    json_array_append_new(outputs, json_pack("{so so sf}", "name", json_words(info.name), "error",
                                             error - error == 0 ? json_real(error) : json_string("inf"), "largest",
                                             c->outputs[i].most));
  }
  const bool equal = c->found == 0 && c->regions_found == 0 && !c->outputs_differ;
  json_t *o = json_pack("{so ss ss sb sI sI so so}", "model", json_words(c->o->model), "a", c->o->a, "b", c->o->b,
                        "equal", (int)equal, "nodes", (json_int_t)c->w.rank[c->w.n_nodes], "compared",
                        (json_int_t)c->compared, "outputs", outputs, "differences", json_incref(c->differences));
  json_object_set_new(o, "outputs_differ", json_boolean(c->outputs_differ));
  json_object_set_new(o, "regions", json_incref(c->region_list));
  json_object_set_new(o, "regions_compared", json_integer((json_int_t)c->rows.n));
  json_object_set_new(o, "rewritten_region",
                      c->fused_later && c->rewritten != NULL ? json_words(c->rewritten) : json_null());
  json_object_set_new(o, "replay", c->command != NULL ? json_words(c->command) : json_null());
  int status = print_json("compare", o);
  return status == DONE && !equal ? FAILED : status;
}

/* Either side may compute float32 in less than that. */
static bool is_fast(const session *s) {
  const char *value = NULL;
  if ((s->model_flags & (HEDDLE_MODEL_FAST | HEDDLE_MODEL_STRICT)) != 0)
    return (s->model_flags & HEDDLE_MODEL_FAST) != 0;
  return heddle_context_setting(s->ctx, "precision", &value, NULL, NULL) == HEDDLE_OK && strcmp(value, "fast") == 0;
}

/* b's regions in the model as it is written, and sides without any, where there are some. A compiled library belongs to
 * one context, and its functions are no part of regions. */
static int find_regions(comparison *c) {
  heddle_error err = {0};
  if (c->w.calls_library) return DONE;
  heddle_status s = fetch_inputs(c, 0, c->w.n_nodes, &err);
  if (s == HEDDLE_OK) s = regions_read(&c->b, &c->w, &c->rows, &err);
  if (s == HEDDLE_ENOMEM) { /* the model is on the device already */
    print_error("heddle compare: the regions of b are not compared: %s\n", err.text);
    regions_finish(&c->rows);
    return DONE;
  }
  if (s != HEDDLE_OK) return fail_text("compare", "the regions of b: %s", err.text);
  if (c->rows.n == 0) return DONE;
  int status = plain_start(&c->plain_a, &c->a);
  return status == DONE ? plain_start(&c->plain_b, &c->b) : status;
}

/* The labels of the regions of several nodes of b's whole model; NULL where it has none. */
static char *rewritten_regions(const comparison *c) {
  char *text = NULL, *made = NULL;
  size_t i, used = 0;
  json_t *region;
  if (heddle_executor_explain(c->b.ex, HEDDLE_EXPLAIN_JSON, &text, NULL) != HEDDLE_OK) return NULL;
  json_t *plan = json_loads(text, 0, NULL);
  json_array_foreach(json_object_get(plan, "regions"), i, region) {
    const char *label = json_string_value(json_object_get(region, "label"));
    if (json_array_size(json_object_get(region, "nodes")) < 2 || label == NULL) continue;
    char *grown = realloc(made, used + strlen(label) + 3);
    if (grown == NULL) break;
    made = grown;
    used += (size_t)sprintf(made + used, "%s%s", used > 0 ? ", " : "", label);
  }
  json_decref(plan);
  heddle_free(text);
  return made;
}

/* Where only outputs differ: the whole model once more on b, rewritten as before, with its nodes one by one. */
static int try_without_regions(comparison *c) {
  c->rewritten = rewritten_regions(c);
  if (c->rewritten == NULL) return DONE;
  plain_finish(&c->plain_b);
  int status = plain_start(&c->plain_b, &c->b);
  (void)session_finish(&c->plain_b.s, DONE); /* its context again, with a model */
  c->plain_b.s = (session){0};
  if (status == DONE) status = session_model(&c->plain_b.s, "compare", &c->plain_b.o);
  if (status == DONE) status = session_executor(&c->plain_b.s, c->o->random);
  if (status == DONE) status = run_whole(&c->plain_b.s);
  bool far = false;
  for (uint32_t i = 0; status == DONE && i < c->n_outputs; i++) {
    heddle_error err = {0};
    heddle_tensor *y = NULL;
    double most;
    if (heddle_executor_view_output(c->plain_b.s.ex, i, &y, &err) != HEDDLE_OK) return fail("compare", &err);
    const double error = error_between(c->outputs[i].of_a, y, &most);
    far = far || (c->outputs[i].error > 0 && error > c->outputs[i].error / 4);
    heddle_tensor_release(y);
  }
  c->fused_later = status == DONE && !far;
  return status;
}

static int compare_it(comparison *c) {
  heddle_error err = {0};
  const options *o = c->o;
  c->memory = memory_setting(o->memory);
  if (o->memory != NULL && c->memory == NULL) return fail_text("compare", "out of memory");
  int status = side(&c->a, &c->oa, o, c->memory, o->a, &o->settings_a, &o->place_a);
  if (status == DONE) status = side(&c->b, &c->ob, o, c->memory, o->b, &o->settings_b, &o->place_b);
  if (status == DONE) status = run_whole(&c->a);
  if (status == DONE) status = run_whole(&c->b);
  if (status == DONE) status = compare_outputs(c);
  if (status != DONE) return status;
  if (whole_read(heddle_model_graph(c->a.model), &c->w, &err) != HEDDLE_OK) return fail("compare", &err);
  c->fast = is_fast(&c->a) || is_fast(&c->b);
  c->differences = json_array();
  c->region_list = json_array();
  status = find_regions(c);
  if (status == DONE) status = walk(c);
  if (status != DONE) return status;
  if (c->found == 0) judge_outputs(c);
  if (c->outputs_differ && c->regions_found == 0) status = try_without_regions(c);
  if (status != DONE) return status;
  return o->json ? finish_json(c) : finish_text(c);
}

static int compare(const options *o) {
  if (o->against != NULL) return against_run("compare", o);
  if (o->a == NULL || o->b == NULL) {
    print_error("heddle compare: which devices? --a LIST are taken for right, --b LIST are compared with them\n");
    return WRONG_WORDS;
  }
  comparison c = {.o = o};
  int status = compare_it(&c);
  whole_finish(&c.w);
  regions_finish(&c.rows);
  plain_finish(&c.plain_a);
  plain_finish(&c.plain_b);
  free(c.rewritten);
  json_decref(c.region_list);
  json_decref(c.differences);
  free(c.command);
  for (uint32_t i = 0; c.outputs != NULL && i < c.n_outputs; i++) heddle_tensor_release(c.outputs[i].of_a);
  free(c.outputs);
  status = session_finish(&c.a, status);
  status = session_finish(&c.b, status);
  free(c.memory);
  free(c.oa.settings.data);
  free(c.ob.settings.data);
  return status;
}

const command compare_command = {
    "compare",
    "runs a model on two lists of devices and finds the first node that differs",
    "Runs a model on the devices of --a and of --b, and compares node by node: each is computed by a from the inputs "
    "that\nb had, and may differ by its own rounding, no more. At the first difference it says where that is, and "
    "writes "
    "the\nnode alone with its inputs, which heddle run runs on any device. Regions of several nodes that b runs as one "
    "are "
    "compared\nwith their nodes one by one. Exit status 1 says that there is a difference.",
    known,
    true,
    compare};
