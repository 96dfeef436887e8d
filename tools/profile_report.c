/* tools/profile_report.c: what timed runs tell, as tables for people and as one JSON object in a file. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "profile.h"
#include "text.h"

static double us(uint64_t ns) {
  return (double)ns / 1e3;
}

static double percent(uint64_t part, uint64_t all) {
  return all > 0 ? 100 * (double)part / (double)all : 0;
}

/* What a stretch before a step of the path is: the device or the calling thread going from one step to the next of a
 * stream, the way from one stream to another, or what goes before the path's first step. */
static const char *gap_word(const path_part *part) {
  if (part->by == PATH_BEGIN) return "begin";
  return part->by == PATH_STREAM ? "launch" : "wait";
}

static const char *by_word(path_by by) {
  static const char *const words[] = {"begin", "stream", "event", "fence", "host"};
  return words[by];
}

/* What the path's length is made of. */
typedef struct sums {
  uint64_t steps, launch, wait, begin, busy;
} sums;

static sums sum_path(const profile *p) {
  sums s = {0};
  for (size_t i = 0; i < p->n_path; i++) {
    const path_part *part = &p->path[i];
    s.steps += part->takes;
    s.busy += part->busy;
    if (part->by == PATH_BEGIN) s.begin += part->gap;
    else if (part->by == PATH_STREAM) s.launch += part->gap;
    else s.wait += part->gap;
  }
  return s;
}

static uint64_t first_start(const profile *p) {
  return p->n_ran > 0 ? p->times[p->order[0]].start : 0;
}

/* ---- for people */

static void print_steps(const profile *p) {
  const uint64_t first = first_start(p);
  print("\n%-28s  %-18s  %-8s  %6s  %10s  %12s  %12s\n", "step", "operator", "device", "stream", "bytes", "start us",
        "takes us");
  for (size_t i = 0; i < p->n_ran; i++) {
    const profile_step *step = &p->steps[p->order[i]];
    const path_step *t = &p->times[p->order[i]];
    char bytes[24] = "";
    if (step->bytes > 0) snprintf(bytes, sizeof bytes, "%" PRIu64, step->bytes);
    print("%-28s  %-18s  %-8s  %6" PRIu32 "  %10s  %12.1f  %12.1f\n", step->name, step->op, step->device, t->stream,
          bytes, us(t->start - first), us(step->median_ns));
  }
  print("%zu steps in %.1f us: the run of median length of %" PRIu64 "; what a step takes is its median\n", p->n_ran,
        us(p->walls[p->shown]), p->n_runs);
  print("without times of steps a run takes %.1f us", us(p->plain_median));
  if (p->replays > 0) print(", replaying %" PRIu64 " recordings, which are taken apart to be timed", p->replays);
  print("\n");
}

static void print_operators(const profile *p) {
  print("\n%-28s  %-8s  %6s  %12s  %7s  %12s\n", "operator", "device", "count", "total us", "share", "mean us");
  for (size_t i = 0; i < p->n_operators; i++) {
    const profile_operator *op = &p->operators[i];
    print("%-28s  %-8s  %6zu  %12.1f  %5.1f %%  %12.1f\n", op->op, op->device, op->count, us(op->total_ns),
          percent(op->total_ns, p->total_ns), us(op->total_ns) / (double)op->count);
  }
  print("%-28s  %-8s  %6zu  %12.1f\n", "all", "", p->n_ran, us(p->total_ns));
}

static void print_path(const profile *p) {
  const uint64_t first = first_start(p), wall = p->walls[p->shown];
  const sums s = sum_path(p);
  print("\ncritical path: %zu of %zu steps\n", p->n_path, p->n_ran);
  print("%-28s  %-18s  %-8s  %12s  %12s  %10s  %s\n", "step", "operator", "device", "start us", "counts us",
        "before us", "what is before it");
  for (size_t i = 0; i < p->n_path; i++) {
    const path_part *part = &p->path[i];
    const profile_step *step = &p->steps[part->step];
    print("%-28s  %-18s  %-8s  %12.1f  %12.1f  %10.1f  %s", step->name, step->op, step->device, us(part->start - first),
          us(part->takes), us(part->gap + part->busy), gap_word(part));
    if (part->by != PATH_BEGIN) print(" by %s%s", by_word(part->by), p->reads[i] ? ", reads its result" : "");
    if (part->busy > 0) print(", calling thread busy %.1f us", us(part->busy));
    print("\n");
  }
  print("steps %.1f us (%.1f %%), launch %.1f, wait %.1f, begin %.1f, calling thread busy %.1f: together %.1f us\n",
        us(s.steps), percent(s.steps, wall), us(s.launch), us(s.wait), us(s.begin), us(s.busy),
        us(s.steps + s.launch + s.wait + s.begin + s.busy));
}

void profile_print(const profile *p) {
  print_steps(p);
  if (p->n_ran == 0) return;
  print_operators(p);
  print_path(p);
}

/* ---- as JSON */

static json_t *numbers_json(const uint64_t *values, uint64_t n) {
  json_t *list = json_array();
  for (uint64_t i = 0; i < n; i++) json_array_append_new(list, json_integer((json_int_t)values[i]));
  return list;
}

static json_t *steps_json(const profile *p) {
  const uint64_t first = first_start(p);
  json_t *list = json_array();
  for (size_t i = 0; i < p->n_ran; i++) {
    const profile_step *step = &p->steps[p->order[i]];
    const path_step *t = &p->times[p->order[i]];
    json_array_append_new(list, json_pack("{sI so so so sI sI sI sI sI}", "step", (json_int_t)p->order[i], "name",
                                          json_words(step->name), "op", json_words(step->op), "device",
                                          json_words(step->device), "stream", (json_int_t)t->stream, "bytes",
                                          (json_int_t)step->bytes, "start_ns", (json_int_t)(t->start - first), "end_ns",
                                          (json_int_t)(t->end - first), "median_ns", (json_int_t)step->median_ns));
  }
  return list;
}

static json_t *operators_json(const profile *p) {
  json_t *list = json_array();
  for (size_t i = 0; i < p->n_operators; i++) {
    const profile_operator *op = &p->operators[i];
    json_array_append_new(list, json_pack("{so so sI sI sf sf}", "op", json_words(op->op), "device",
                                          json_words(op->device), "count", (json_int_t)op->count, "total_ns",
                                          (json_int_t)op->total_ns, "share", percent(op->total_ns, p->total_ns) / 100,
                                          "mean_ns", (double)op->total_ns / (double)op->count));
  }
  return list;
}

static json_t *path_json(const profile *p) {
  const uint64_t first = first_start(p);
  json_t *list = json_array();
  for (size_t i = 0; i < p->n_path; i++) {
    const path_part *part = &p->path[i];
    json_array_append_new(list, json_pack("{sI sI sI sI sI ss ss sb}", "step", (json_int_t)part->step, "start_ns",
                                          (json_int_t)(part->start - first), "takes_ns", (json_int_t)part->takes,
                                          "gap_ns", (json_int_t)part->gap, "busy_ns", (json_int_t)part->busy, "gap",
                                          gap_word(part), "by", by_word(part->by), "reads", (int)p->reads[i]));
  }
  return list;
}

int profile_save(const profile *p, const char *model, const char *path) {
  const sums s = sum_path(p);
  json_t *o = json_pack("{si so sI sI so sI so sI sI so so so s{sI sI sI sI sI}}", "format", 1, "model",
                        json_words(model), "runs", (json_int_t)p->n_runs, "wall_ns", (json_int_t)p->walls[p->shown],
                        "walls_ns", numbers_json(p->walls, p->n_runs), "plain_ns", (json_int_t)p->plain_median,
                        "plains_ns", numbers_json(p->plain, p->n_runs), "replays", (json_int_t)p->replays, "total_ns",
                        (json_int_t)p->total_ns, "steps", steps_json(p), "operators", operators_json(p), "path",
                        path_json(p), "sums", "steps_ns", (json_int_t)s.steps, "launch_ns", (json_int_t)s.launch,
                        "wait_ns", (json_int_t)s.wait, "begin_ns", (json_int_t)s.begin, "busy_ns", (json_int_t)s.busy);
  if (o == NULL) return fail_text("run", "out of memory");
  errno = 0;
  const int written = json_dump_file(o, path, JSON_INDENT(2));
  const int error = errno;
  json_decref(o);
  if (written != 0) return fail_text("run", "cannot write %s: %s", path, error != 0 ? strerror(error) : "no room");
  print("wrote %s\n", path);
  return DONE;
}
