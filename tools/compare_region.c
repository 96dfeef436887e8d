/* tools/compare_region.c: a region of several nodes against its nodes one by one. How far its results may lie off is the
 * bound of each node with what it makes of the bounds before it, which is measured by moving the operands. */
#include "compare_region.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare_exact.h"
#include "numbers.h"
#include "text.h"

enum { MOVES = 6, MOST_EXHAUSTIVE = 8, MOST_TRIES = 300 };

static heddle_status no_memory(heddle_error *err) {
  snprintf(err->text, sizeof err->text, "out of memory");
  return err->status = HEDDLE_ENOMEM;
}

/* ---- a session without regions */

int plain_start(plain_session *p, const session *of) {
  const size_t most = heddle_model_device_count(of->model);
  *p = (plain_session){.o = *of->o};
  p->o.settings.data = calloc(of->o->settings.count + most + 1, sizeof *p->o.settings.data);
  p->settings = calloc(most + 1, sizeof *p->settings);
  if (p->o.settings.data == NULL || p->settings == NULL) return fail_text("compare", "out of memory");
  p->o.settings.count = 0;
  for (size_t i = 0; i < most; i++) {
    heddle_device_info info = {.struct_size = sizeof info};
    if (heddle_device_get_info(heddle_model_device(of->model, i), &info, NULL) != HEDDLE_OK) continue;
    snprintf(p->settings[i], sizeof p->settings[i], "%s.regions=0", info.plugin);
    bool there = false;
    for (size_t k = 0; k < i; k++) there = there || strcmp(p->settings[k], p->settings[i]) == 0;
    if (!there) p->o.settings.data[p->o.settings.count++] = p->settings[i];
  }
  for (size_t i = 0; i < of->o->settings.count; i++) {
    const size_t name = strcspn(of->o->settings.data[i], "=");
    const bool regions = name > 8 && strncmp(of->o->settings.data[i] + name - 8, ".regions", 8) == 0;
    if (!regions) p->o.settings.data[p->o.settings.count++] = of->o->settings.data[i];
  }
  const int status = session_context(&p->s, "compare", &p->o);
  p->s.model_flags = of->model_flags;
  return status;
}

void plain_finish(plain_session *p) {
  (void)session_finish(&p->s, DONE);
  free(p->o.settings.data);
  free(p->settings);
  *p = (plain_session){0};
}

/* ---- the regions of a plan */

/* The whole's node of each node of the part's plan. */
static uint32_t *numbered(const whole *w, uint32_t *count) {
  uint32_t *nodes = calloc((size_t)w->n_nodes + 1, sizeof *nodes);
  *count = 0;
  for (uint32_t i = 0; nodes != NULL && i < w->n_nodes; i++)
    if (!whole_is_input(w, i)) nodes[(*count)++] = i;
  return nodes;
}

static bool read_row(const whole *w, const part *p, const uint32_t *nodes, uint32_t n_nodes, const json_t *plan,
                     const json_t *region, region_row *row) {
  const json_t *list = json_object_get(region, "nodes"), *number;
  size_t i;
  row->chosen = calloc((size_t)w->n_nodes + 1, sizeof *row->chosen);
  if (row->chosen == NULL) return false;
  row->first = w->n_nodes;
  json_array_foreach((json_t *)(uintptr_t)list, i, number) {
    const json_int_t at = json_integer_value(number) - (json_int_t)p->n_inputs;
    if (at < 0 || at >= (json_int_t)n_nodes) continue;
    const uint32_t node = nodes[at];
    row->chosen[node] = true;
    row->count++;
    if (node < row->first) row->first = node;
    if (node > row->last) row->last = node;
  }
  const json_t *device =
      json_array_get(json_object_get(plan, "devices"), (size_t)json_integer_value(json_object_get(region, "device")));
  const char *name = json_string_value(json_object_get(device, "name"));
  snprintf(row->device, sizeof row->device, "%s", name != NULL ? name : "");
  return true;
}

/* Values that a region reads or makes stay until it was compared. */
static void keep_values(whole *w, const region_row *row) {
  for (uint32_t i = row->first; i <= row->last; i++) {
    if (!row->chosen[i]) continue;
    for (uint32_t k = 0; k < whole_operands(w, i); k++) {
      const uint32_t entry = whole_operand(w, i, k);
      if (entry != UINT32_MAX && w->last_use[entry] < row->last) w->last_use[entry] = row->last;
    }
    for (uint32_t entry = w->first[i]; entry < w->first[i + 1]; entry++)
      if (w->last_use[entry] < row->last) w->last_use[entry] = row->last;
  }
}

heddle_status regions_read(const session *b, whole *w, regions *out, heddle_error *err) {
  part p = {0};
  json_t *plan = NULL, *region;
  uint32_t n_nodes = 0;
  size_t i;
  *out = (regions){0};
  bool *all = calloc((size_t)w->n_nodes + 1, sizeof *all), *heads = calloc((size_t)w->n_entries + 1, sizeof *heads);
  uint32_t *nodes = numbered(w, &n_nodes);
  bool good = all != NULL && heads != NULL && nodes != NULL;
  for (uint32_t k = 0; good && k < w->n_nodes; k++) all[k] = !whole_is_input(w, k);
  for (uint32_t k = 0; good && k < w->n_entries; k++) heads[k] = w->last_use[k] == w->n_nodes;
  heddle_status s = good ? part_choose(w, all, heads, &p, err) : no_memory(err);
  if (s == HEDDLE_OK) s = part_plan(b, w, &p, &plan, err);
  const json_t *list = json_object_get(plan, "regions");
  if (s == HEDDLE_OK && (out->rows = calloc(json_array_size(list) + 1, sizeof *out->rows)) == NULL) s = no_memory(err);
  if (s == HEDDLE_OK) {
    json_array_foreach((json_t *)(uintptr_t)list, i, region) {
      if (json_array_size(json_object_get(region, "nodes")) < 2) continue;
      if (!read_row(w, &p, nodes, n_nodes, plan, region, &out->rows[out->n])) {
        s = no_memory(err);
        break;
      }
      if (out->rows[out->n].count < 2) free(out->rows[out->n].chosen), out->rows[out->n] = (region_row){0};
      else keep_values(w, &out->rows[out->n++]);
    }
  }
  json_decref(plan);
  part_finish(&p);
  free(nodes);
  free(heads);
  free(all);
  return s;
}

void regions_finish(regions *r) {
  for (uint32_t i = 0; i < r->n; i++) free(r->rows[i].chosen);
  free(r->rows);
  *r = (regions){0};
}

/* ---- one set of nodes */

/* What a and b give of the same set, with the numbers of a and how far they may lie off. Indexed by entry. */
typedef struct trial {
  const session *a, *b;
  const whole *w;
  const bool *chosen;
  bool fast, *heads;
  heddle_tensor **of_a, **of_b;
  double **x, **err;
} trial;

static bool is_wide(const heddle_tensor *t) {
  return numbers_known(heddle_tensor_dtype(t));
}

static heddle_status run_side(trial *t, const session *s, const bool *heads, heddle_tensor **to, uint32_t *largest,
                              heddle_error *err) {
  const whole *w = t->w;
  part p = {0};
  part_place place = {.largest = 0};
  heddle_status r = part_choose(w, t->chosen, heads, &p, err);
  const uint32_t n = r == HEDDLE_OK ? part_outputs(w, &p) : 0;
  heddle_tensor **out = calloc((size_t)n + 1, sizeof(heddle_tensor *));
  if (r == HEDDLE_OK && out == NULL) r = no_memory(err);
  if (r == HEDDLE_OK) r = part_run(s, w, &p, out, &place, err);
  for (uint32_t entry = 0, i = 0; out != NULL && entry < w->n_entries && i < n; entry++)
    if (t->chosen[w->owner[entry]] && (heads == NULL || heads[entry])) to[entry] = out[i++];
  free(out);
  part_finish(&p);
  *largest = place.largest;
  return r;
}

/* The operands of a node; those of the set moved by twice their bounds. move MOVES: not moved. */
static bool moved(const trial *t, uint32_t node, uint32_t move, double **x) {
  const whole *w = t->w;
  uint32_t state = 31 * move + node;
  for (uint32_t k = 0; k < whole_operands(w, node); k++) {
    const uint32_t entry = whole_operand(w, node, k);
    if (entry == UINT32_MAX) continue;
    const heddle_tensor *from = t->of_a[entry] != NULL ? t->of_a[entry] : w->values[entry];
    if (from == NULL || !is_wide(from) || (x[k] = numbers_of(from)) == NULL) return false;
    for (uint64_t e = 0; t->err[entry] != NULL && move < MOVES && e < numbers_count(from); e++) {
      state = state * 1664525U + 1013904223U;
      const bool up = move < 2 ? move == 0 : (state >> 16 & 1) != 0;
      x[k][e] += (up ? 2 : -2) * t->err[entry][e];
    }
  }
  return true;
}

/* Adds to the bounds of a node's output what the bounds of its operands make of it. */
static void carry(const trial *t, uint32_t node, uint32_t k, double *bounds) {
  const uint32_t entry = t->w->first[node] + k, operands = whole_operands(t->w, node);
  const uint64_t n = numbers_count(t->of_a[entry]);
  double *base = calloc((size_t)n + 1, sizeof *base), *y = calloc((size_t)n + 1, sizeof *y);
  double *most = calloc((size_t)n + 1, sizeof *most), **x = calloc((size_t)operands + 1, sizeof(double *));
  bool good = base != NULL && y != NULL && most != NULL && x != NULL;
  for (uint32_t i = 0; good && i <= MOVES; i++) {
    const uint32_t move = i == 0 ? MOVES : i - 1;
    good = moved(t, node, move, x) && exact_run(t->a, t->w, node, k, (const double *const *)x, i == 0 ? base : y, n);
    for (uint32_t j = 0; j < operands; j++) {
      free(x[j]);
      x[j] = NULL;
    }
    for (uint64_t e = 0; good && i > 0 && e < n; e++) {
      double off = fabs(y[e] - base[e]);
      if (isnan(off)) off = isnan(y[e]) == isnan(base[e]) ? 0 : (double)INFINITY;
      if (off > most[e]) most[e] = off;
    }
  }
  double largest = 0;
  for (uint64_t e = 0; e < n; e++)
    if (isfinite(t->x[entry][e]) && fabs(t->x[entry][e]) > largest) largest = fabs(t->x[entry][e]);
  for (uint64_t e = 0; e < n; e++) bounds[e] += good ? 2 * most[e] : 0x1p-10 * largest; /* what is not evaluated */
  free(base);
  free(y);
  free(most);
  free(x);
}

static bool reads_set(const trial *t, uint32_t node) {
  for (uint32_t k = 0; k < whole_operands(t->w, node); k++) {
    const uint32_t entry = whole_operand(t->w, node, k);
    if (entry != UINT32_MAX && t->err[entry] != NULL) return true;
  }
  return false;
}

static heddle_status find_bounds(trial *t, heddle_error *err) {
  const whole *w = t->w;
  for (uint32_t entry = 0; entry < w->n_entries; entry++) {
    const uint32_t node = w->owner[entry], k = entry - w->first[node];
    if (!t->chosen[node] || t->of_a[entry] == NULL || !is_wide(t->of_a[entry])) continue;
    double *bounds = calloc((size_t)numbers_count(t->of_a[entry]) + 1, sizeof *bounds);
    t->x[entry] = numbers_of(t->of_a[entry]);
    if (bounds == NULL || t->x[entry] == NULL ||
        !judge_bounds(t->a, w, node, k, t->fast, t->of_a[entry], t->x[entry], bounds)) {
      free(bounds);
      return no_memory(err);
    }
    if (reads_set(t, node)) carry(t, node, k, bounds);
    t->err[entry] = bounds;
  }
  return HEDDLE_OK;
}

static bool same_bytes(const heddle_tensor *p, const heddle_tensor *q) {
  const uint64_t n = heddle_tensor_bytes(p);
  return n == heddle_tensor_bytes(q) &&
         (n == 0 || memcmp(heddle_tensor_data((heddle_tensor *)(uintptr_t)p),
                           heddle_tensor_data((heddle_tensor *)(uintptr_t)q), (size_t)n) == 0);
}

/* Fills d with the first result beyond its bounds; false where all are within. */
static bool find_beyond(const trial *t, region_difference *d) {
  const whole *w = t->w;
  for (uint32_t entry = 0; entry < w->n_entries; entry++) {
    const heddle_tensor *want = t->of_a[entry], *is = t->of_b[entry];
    if (is == NULL || want == NULL || same_bytes(want, is)) continue;
    d->entry = entry;
    d->elements = numbers_count(want);
    d->beyond = 0;
    if (!is_wide(want) || heddle_tensor_bytes(want) != heddle_tensor_bytes(is)) {
      d->beyond = d->elements;
      return true;
    }
    for (uint64_t e = 0; e < d->elements; e++) {
      const double got = number_at(is, e), bound = 2 * t->err[entry][e];
      if (judge_holds(heddle_tensor_dtype(want), t->x[entry][e], got, bound)) continue;
      if (d->beyond++ > 0) continue;
      d->first = e;
      d->got = got;
      d->expected = t->x[entry][e];
      d->bound = bound;
    }
    if (d->beyond > 0) return true;
  }
  return false;
}

static void trial_finish(trial *t) {
  for (uint32_t entry = 0; entry < t->w->n_entries; entry++) {
    if (t->of_a != NULL) heddle_tensor_release(t->of_a[entry]);
    if (t->of_b != NULL) heddle_tensor_release(t->of_b[entry]);
    if (t->x != NULL) free(t->x[entry]);
    if (t->err != NULL) free(t->err[entry]);
  }
  free(t->heads);
  free(t->of_a);
  free(t->of_b);
  free(t->x);
  free(t->err);
}

/* Runs the set on both sides. *differs stays false where b does not run it as one region of count nodes. */
static heddle_status try_set(const session *a, const session *b, const whole *w, const bool *chosen, uint32_t count,
                             bool fast, bool *differs, region_difference *d, heddle_error *err) {
  const size_t n = (size_t)w->n_entries + 1;
  trial t = {.a = a, .b = b, .w = w, .chosen = chosen, .fast = fast};
  uint32_t largest = 0, ignored;
  *differs = false;
  t.heads = calloc(n, sizeof *t.heads);
  t.of_a = calloc(n, sizeof(heddle_tensor *));
  t.of_b = calloc(n, sizeof(heddle_tensor *));
  t.x = calloc(n, sizeof(double *));
  t.err = calloc(n, sizeof(double *));
  heddle_status s = HEDDLE_OK;
  if (t.heads == NULL || t.of_a == NULL || t.of_b == NULL || t.x == NULL || t.err == NULL) s = no_memory(err);
  for (uint32_t entry = 0; s == HEDDLE_OK && entry < w->n_entries; entry++)
    t.heads[entry] = chosen[w->owner[entry]] && part_leaves(w, chosen, entry);
  if (s == HEDDLE_OK) s = run_side(&t, b, t.heads, t.of_b, &largest, err);
  if (s == HEDDLE_OK && largest == count) {
    s = run_side(&t, a, NULL, t.of_a, &ignored, err);
    bool same = true;
    for (uint32_t entry = 0; s == HEDDLE_OK && entry < w->n_entries; entry++)
      same = same && (t.of_b[entry] == NULL || same_bytes(t.of_a[entry], t.of_b[entry]));
    if (s == HEDDLE_OK && !same) s = find_bounds(&t, err);
    if (s == HEDDLE_OK && !same) *differs = find_beyond(&t, d);
  }
  trial_finish(&t);
  return s;
}

/* ---- the smallest */

static bool is_connected(const whole *w, const bool *chosen, uint32_t first, uint32_t last, uint32_t count) {
  bool *met = calloc((size_t)w->n_nodes + 1, sizeof *met);
  uint32_t n = 0;
  if (met == NULL) return false;
  for (uint32_t i = first; i <= last && n == 0; i++)
    if (chosen[i]) met[i] = true, n = 1;
  for (bool grew = true; grew;) {
    grew = false;
    for (uint32_t i = first; i <= last; i++) {
      for (uint32_t k = 0; chosen[i] && k < whole_operands(w, i); k++) {
        const uint32_t entry = whole_operand(w, i, k);
        const uint32_t from = entry != UINT32_MAX ? w->owner[entry] : UINT32_MAX;
        if (from == UINT32_MAX || !chosen[from] || met[i] == met[from]) continue;
        met[i] = met[from] = grew = true;
        n++;
      }
    }
  }
  free(met);
  return n == count;
}

/* Which nodes of the region, in their order, the number-th candidate of size has; false behind the last. All sub-sets of
 * small regions, else rows of neighbours. */
static bool candidate(uint32_t count, uint32_t size, uint32_t *number, uint64_t *mask) {
  if (count > MOST_EXHAUSTIVE) {
    if (*number + size > count) return false;
    *mask = ((UINT64_C(1) << (size < 63 ? size : 63)) - 1) << *number;
    ++*number;
    return count <= 64;
  }
  while (++*number < (UINT32_C(1) << count)) {
    uint32_t bits = 0;
    for (uint32_t i = 0; i < count; i++) bits += *number >> i & 1;
    if (bits != size) continue;
    *mask = *number;
    return true;
  }
  return false;
}

static heddle_status shrink(const session *a, const session *b, const whole *w, const region_row *row, bool fast,
                            region_difference *d, heddle_error *err) {
  bool *set = calloc((size_t)w->n_nodes + 1, sizeof *set);
  uint32_t tries = 0;
  heddle_status s = set != NULL ? HEDDLE_OK : no_memory(err);
  for (uint32_t size = 2; s == HEDDLE_OK && size < row->count; size++) {
    uint32_t number = 0;
    uint64_t mask = 0;
    while (s == HEDDLE_OK && tries < MOST_TRIES && candidate(row->count, size, &number, &mask)) {
      bool differs = false;
      memset(set, 0, (size_t)w->n_nodes * sizeof *set);
      for (uint32_t i = row->first, k = 0; i <= row->last; i++)
        if (row->chosen[i]) set[i] = (mask >> k++ & 1) != 0;
      if (!is_connected(w, set, row->first, row->last, size)) continue;
      tries++;
      region_difference found = *d;
      s = try_set(a, b, w, set, size, fast, &differs, &found, err);
      if (s != HEDDLE_OK || !differs) continue;
      *d = found;
      memcpy(d->smallest, set, (size_t)w->n_nodes * sizeof *set);
      d->n_smallest = size;
      free(set);
      return HEDDLE_OK;
    }
  }
  free(set);
  return s;
}

heddle_status region_compare(const session *a, const session *b, const whole *w, const region_row *row, bool fast,
                             bool *differs, region_difference *out, heddle_error *err) {
  *out = (region_difference){.row = row, .n_smallest = row->count};
  heddle_status s = try_set(a, b, w, row->chosen, row->count, fast, differs, out, err);
  if (s != HEDDLE_OK || !*differs) return s;
  out->smallest = calloc((size_t)w->n_nodes + 1, sizeof *out->smallest);
  if (out->smallest == NULL) return no_memory(err);
  memcpy(out->smallest, row->chosen, (size_t)w->n_nodes * sizeof *row->chosen);
  return shrink(a, b, w, row, fast, out, err);
}

void region_difference_finish(region_difference *d) {
  free(d->smallest);
  d->smallest = NULL;
}

/* ---- words */

void region_setting(const region_difference *d, char *out, size_t size) {
  snprintf(out, size, "%.*s.regions=0", (int)strcspn(d->row->device, ":"), d->row->device);
}

static void print_nodes(const whole *w, const bool *chosen) {
  const char *between = "";
  for (uint32_t i = 0; i < w->n_nodes; i++) {
    if (!chosen[i]) continue;
    print("%s%s (%s)", between, whole_name(w, i), whole_op(w, i));
    between = ", ";
  }
  print("\n");
}

void region_report(const whole *w, const region_difference *d) {
  char setting[64];
  const uint32_t node = w->owner[d->entry];
  region_setting(d, setting, sizeof setting);
  print("region of %u nodes on %s: it differs, and its nodes one by one agree\n  nodes: ", (unsigned)d->row->count,
        d->row->device);
  print_nodes(w, d->row->chosen);
  print("  smallest part that differs: ");
  print_nodes(w, d->smallest);
  print("  %llu of %llu elements of %s are beyond their bounds; element %llu: the region gives %.9g, its nodes %.9g, "
        "%.3g "
        "may lie between them\n",
        (unsigned long long)d->beyond, (unsigned long long)d->elements, whole_name(w, node),
        (unsigned long long)d->first, d->got, d->expected, d->bound);
  print("  --set %s runs the nodes one by one\n", setting);
}

static json_t *names_of(const whole *w, const bool *chosen) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < w->n_nodes; i++)
    if (chosen[i]) json_array_append_new(list, json_words(whole_name(w, i)));
  return list;
}

static json_t *number_object(double x) {
  char text[32];
  if (x - x == 0) return json_real(x);
  snprintf(text, sizeof text, "%g", x);
  return json_string(text);
}

json_t *region_object(const whole *w, const region_difference *d) {
  char setting[64];
  const uint32_t node = w->owner[d->entry];
  region_setting(d, setting, sizeof setting);
  return json_pack("{ss so so so sI sI sI sI so so so ss}", "device", d->row->device, "nodes",
                   names_of(w, d->row->chosen), "smallest", names_of(w, d->smallest), "node",
                   json_words(whole_name(w, node)), "output", (json_int_t)(d->entry - w->first[node]), "beyond",
                   (json_int_t)d->beyond, "elements", (json_int_t)d->elements, "first", (json_int_t)d->first, "got",
                   number_object(d->got), "expected", number_object(d->expected), "bound", number_object(d->bound),
                   "setting", setting);
}
