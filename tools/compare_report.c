/* tools/compare_report.c: a difference as text, as JSON, and as a graph of one node with its inputs. */
#include "compare_report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "library.h"
#include "numbers.h"
#include "text.h"

static void type_text(const heddle_tensor *t, char *out, size_t size) {
  char dtype[32], shape[200];
  dtype_text(heddle_tensor_dtype(t), dtype);
  shape_text(heddle_tensor_shape(t), heddle_tensor_ndim(t), NULL, shape, sizeof shape);
  snprintf(out, size, "%s %s", dtype, shape);
}

/* "[0, 3:7, 5]" of the box in which the differences lie. */
static void box_text(const judgement *j, char *out, size_t size) {
  size_t used = (size_t)snprintf(out, size, "[");
  for (uint32_t d = 0; d < j->ndim && used + 64 < size; d++) {
    used += (size_t)snprintf(out + used, size - used, "%s%" PRId64, d > 0 ? ", " : "", j->low[d]);
    if (j->high[d] != j->low[d]) used += (size_t)snprintf(out + used, size - used, ":%" PRId64, j->high[d] + 1);
  }
  snprintf(out + used, size - used, "]");
}

/* The digits that tell two numbers apart. */
static int digits_of(const heddle_tensor *t) {
  const heddle_dtype d = heddle_tensor_dtype(t);
  return !numbers_are_floats(d) || d.bits == 64 ? 17 : d.bits == 32 ? 9 : 5;
}

static void input_text(const whole *w, uint32_t entry, char *out, size_t size) {
  const uint32_t node = w->owner[entry];
  char type[240];
  type_text(w->values[entry], type, sizeof type);
  if (w->first[node + 1] - w->first[node] > 1)
    snprintf(out, size, "%s:%" PRIu32 " %s", whole_name(w, node), entry - w->first[node], type);
  else snprintf(out, size, "%s %s", whole_name(w, node), type);
}

void report_difference(const whole *w, const part *p, const difference *d) {
  const judgement *j = &d->judged;
  char type[240], other[240], at[200], box[400], input[700];
  type_text(d->expected, type, sizeof type);
  type_text(d->got, other, sizeof other);
  print("node %s (%s), output %" PRIu32 ", %s\n", whole_name(w, d->node), whole_op(w, d->node), d->output, type);
  print("  a: %s, b: %s\n", d->device_a, d->device_b);
  for (uint32_t i = 0; i < p->n_inputs; i++) {
    input_text(w, p->inputs[i], input, sizeof input);
    print("  in%" PRIu32 ": %s%s\n", i, input, w->constant[p->inputs[i]] ? ", constant" : "");
  }
  if (j->other_type) {
    print("  b gives %s\n", other);
  } else if (!numbers_known(heddle_tensor_dtype(d->got))) {
    print("  the bytes differ\n");
  } else {
    const int digits = digits_of(d->got);
    index_text(d->expected, j->first, at, sizeof at);
    print("  %" PRIu64 " of %" PRIu64 " elements are beyond their bounds; the first is %s:\n", j->beyond, j->elements,
          at);
    print("    b gives %.*g, a gives %.*g, %.3g may lie between them (%s)\n", digits, j->got, digits, j->expected,
          j->bound, j->rule);
    index_text(d->expected, j->worst, at, sizeof at);
    print("  the largest error is %.3g, at %s: %.*g, not %.*g\n", j->error, at, digits, j->worst_got, digits,
          j->worst_expected);
    box_text(j, box, sizeof box);
    print("  all lie in %s\n", box);
  }
  print(d->same_alone ? "  the node alone differs on b too\n"
                      : "  the node alone is right on b: what is wrong lies in how it runs among the others (memory, "
                        "layouts, order)\n");
  if (d->region_nodes > 0)
    print("  the region of %" PRIu32 " nodes in which b runs it %s\n", d->region_nodes,
          d->region_differs ? "differs too" : "is right");
}

/* JSON has no infinity and no NaN: text then. */
static json_t *number_object(double x) {
  char text[32];
  if (x - x == 0) return json_real(x);
  snprintf(text, sizeof text, "%g", x);
  return json_string(text);
}

static json_t *index_object(const heddle_tensor *t, uint64_t i) {
  const uint32_t ndim = heddle_tensor_ndim(t);
  const int64_t *shape = heddle_tensor_shape(t);
  json_t *list = json_array();
  for (uint32_t d = ndim; d-- > 0; i /= (uint64_t)shape[d])
    json_array_insert_new(list, 0, json_integer((json_int_t)(i % (uint64_t)shape[d])));
  return list;
}

json_t *difference_object(const whole *w, const part *p, const difference *d) {
  const judgement *j = &d->judged;
  char dtype[32], name[24];
  json_t *inputs = json_array(), *first = json_null(), *worst = json_null(), *low = json_array(), *high = json_array();
  for (uint32_t i = 0; i < p->n_inputs; i++) {
    const uint32_t entry = p->inputs[i];
    const heddle_tensor *t = w->values[entry];
    dtype_text(heddle_tensor_dtype(t), dtype);
    snprintf(name, sizeof name, "in%" PRIu32, i);
    json_array_append_new(inputs, json_pack("{ss so sI ss so sb}", "name", name, "node",
                                            json_words(whole_name(w, w->owner[entry])), "output",
                                            (json_int_t)(entry - w->first[w->owner[entry]]), "dtype", dtype, "shape",
                                            json_shape(heddle_tensor_shape(t), heddle_tensor_ndim(t), NULL), "constant",
                                            (int)w->constant[entry]));
  }
  if (j->beyond > 0 && numbers_known(heddle_tensor_dtype(d->got))) {
    first = json_pack("{so so so so}", "index", index_object(d->got, j->first), "got", number_object(j->got),
                      "expected", number_object(j->expected), "bound", number_object(j->bound));
    worst = json_pack("{so so so so}", "index", index_object(d->got, j->worst), "got", number_object(j->worst_got),
                      "expected", number_object(j->worst_expected), "error", number_object(j->error));
    for (uint32_t i = 0; i < j->ndim; i++) {
      json_array_append_new(low, json_integer(j->low[i]));
      json_array_append_new(high, json_integer(j->high[i]));
    }
  }
  dtype_text(heddle_tensor_dtype(d->expected), dtype);
  return json_pack("{so so sI ss ss ss so so sI sI so so so so ss sb so}", "node", json_words(whole_name(w, d->node)),
                   "op", json_words(whole_op(w, d->node)), "output", (json_int_t)d->output, "device_a", d->device_a,
                   "device_b", d->device_b, "dtype", dtype, "shape",
                   json_shape(heddle_tensor_shape(d->expected), heddle_tensor_ndim(d->expected), NULL), "inputs",
                   inputs, "beyond", (json_int_t)j->beyond, "elements", (json_int_t)j->elements, "first", first,
                   "worst", worst, "low", low, "high", high, "rule", j->rule, "alone", (int)d->same_alone, "region",
                   d->region_nodes == 0 ? json_null() : json_string(d->region_differs ? "differs" : "right"));
}

/* ---- replay */

typedef struct line {
  char *text;
  size_t used, room;
  bool good;
} line;

static void add(line *l, const char *text) {
  const size_t n = strlen(text);
  if (l->good && l->used + n + 1 > l->room) {
    char *grown = realloc(l->text, (l->used + n + 1) * 2);
    l->good = grown != NULL;
    if (!l->good) return;
    l->text = grown;
    l->room = (l->used + n + 1) * 2;
  }
  if (!l->good) return;
  memcpy(l->text + l->used, text, n + 1);
  l->used += n;
}

/* A word as a shell takes it. */
static void add_word(line *l, const char *word) {
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:%@?";
  add(l, " ");
  if (word[0] != '\0' && strspn(word, plain) == strlen(word) && strchr(word, '?') == NULL) {
    add(l, word);
    return;
  }
  add(l, "'");
  for (; *word != '\0'; word++) {
    const char one[2] = {*word, '\0'};
    add(l, *word == '\'' ? "'\\''" : one);
  }
  add(l, "'");
}

static void add_option(line *l, const char *option, const char *value) {
  if (value == NULL) return;
  add(l, option);
  add_word(l, value);
}

/* Where the node ran, whatever the order of the list, a rule or a column device_index says; where that is not known (a
 * node that runs graphs), the rules of the side. */
static void add_place(line *l, const replay_side *side) {
  const session *s = side->session;
  char rule[40];
  if (side->device != NULL) {
    snprintf(rule, sizeof rule, "*=%s", side->device);
    add_option(l, " --place", rule);
    return;
  }
  for (size_t i = 0; i < s->o->place.count; i++) add_option(l, " --place", s->o->place.data[i]);
}

/* The command that runs the written node on the devices of a side. */
static char *command_of(const replay_side *side, const whole *w, const part *p, const char *folder) {
  const session *s = side->session;
  line l = {.good = true};
  char path[4300];
  add(&l, "heddle run");
  snprintf(path, sizeof path, "%s/node.json", folder);
  add_word(&l, path);
  add_option(&l, " --device", s->o->devices);
  if (strchr(s->o->devices, ',') != NULL || w->calls_library || s->o->place.count > 0) add_place(&l, side);
  for (uint32_t i = 0; i < p->n_inputs; i++) {
    if (w->constant[p->inputs[i]]) continue;
    snprintf(path, sizeof path, "in%" PRIu32 "=%s/in%" PRIu32 ".npy", i, folder, i);
    add_option(&l, " --input", path);
  }
  add_option(&l, " --lib", s->o->lib == NULL && w->calls_library && library_is(s->o->model) ? s->o->model : s->o->lib);
  add_option(&l, " --precision", s->o->precision);
  for (size_t i = 0; i < s->o->settings.count; i++) add_option(&l, " --set", s->o->settings.data[i]);
  if (l.good) return l.text;
  free(l.text);
  return NULL;
}

static int write_commands(const char *folder, const char *a, const char *b) {
  char path[4300];
  snprintf(path, sizeof path, "%s/replay.txt", folder);
  FILE *f = fopen(path, "w");
  bool good = f != NULL && fprintf(f, "%s\n%s\n", a, b) > 0;
  int error = errno;
  if (f != NULL && fclose(f) != 0) {
    good = false;
    error = errno;
  }
  return good ? DONE : fail_text("compare", "cannot write %s: %s", path, strerror(error));
}

int report_replay(const replay_side *a, const replay_side *b, const whole *w, const part *p,
                  heddle_tensor *const *expected, const char *folder, char **command) {
  heddle_error err = {0};
  struct stat info;
  *command = NULL;
  if (mkdir(folder, 0777) != 0 && (errno != EEXIST || stat(folder, &info) != 0 || !S_ISDIR(info.st_mode)))
    return fail_text("compare", "cannot make the folder %s: %s", folder, strerror(errno == EEXIST ? ENOTDIR : errno));
  if (part_save(w, p, expected, folder, &err) != HEDDLE_OK) return fail("compare", &err);
  char *of_a = command_of(a, w, p, folder), *of_b = command_of(b, w, p, folder);
  int status =
      of_a != NULL && of_b != NULL ? write_commands(folder, of_a, of_b) : fail_text("compare", "out of memory");
  free(of_a);
  if (status == DONE) *command = of_b;
  else free(of_b);
  return status;
}
