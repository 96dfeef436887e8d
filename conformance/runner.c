/* conformance/runner.c: runs the checks, several at a time, and reports them in order. Three gates come first, one for
 * each stage: where one fails, what needs its stage is not run, so that a fault is reported once and a hang waited for
 * once. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "conformance/check.h"
#include "conformance/kit_side.h"

/* The case that goes through a stage itself, as its own work. */
static const char *const gates[] = {"load/entry", "root/open", "device/open"};

static volatile sig_atomic_t interrupted;

static void on_signal(int number) {
  interrupted = number;
}

typedef struct runner {
  const check_options *o;
  check_list *list;
  FILE *out;
  const check_report *report;
  check_counts counts;
  size_t next_reported, numbered;
  bool terminal;
} runner;

/* ---- outcomes */

static void set_reason(check *c, const char *before, const char *reason) {
  size_t n = strlen(before) + strlen(reason) + 1;
  char *text = malloc(n);
  if (text != NULL) snprintf(text, n, "%s%s", before, reason);
  free(c->reason);
  c->reason = text;
}

/* What the lists make of an outcome. */
static void excuse(check *c) {
  if (c->excuse == NULL || !c->expected) return;
  if (c->outcome == CHECK_FAIL) c->outcome = CHECK_FAIL_EXPECTED;
  else if (c->outcome == CHECK_PASS) {
    c->outcome = CHECK_PASS_UNEXPECTED;
    set_reason(c, "it passed, and its failure is expected: ", c->excuse);
  }
}

static bool is_gate(const check *c) {
  for (size_t i = 0; i < sizeof gates / sizeof gates[0]; i++)
    if (strcmp(c->what->name, gates[i]) == 0) return true;
  return false;
}

bool check_is_reported(const check *c) {
  return c->wanted || c->outcome == CHECK_FAIL || (is_gate(c) && c->outcome == CHECK_SKIP);
}

static void count(check_counts *n, const check *c) {
  switch (c->outcome) {
  case CHECK_PASS: n->passed++; break;
  case CHECK_FAIL: c->cause != 0 ? n->consequences++ : n->failed++; break;
  case CHECK_SKIP: n->skipped++; break;
  case CHECK_FAIL_EXPECTED: n->expected++; break;
  case CHECK_PASS_UNEXPECTED: n->unexpected++; break;
  default: break;
  }
}

static void report(runner *r, const check *c) {
  count(&r->counts, c);
  r->report->each(r->out, r->list, c, ++r->numbered);
}

/* What is left once all are known: the failures, each cause and then what follows from it, or all in order. */
static void report_rest(runner *r) {
  check_list *list = r->list;
  check_find_causes(list);
  for (; r->next_reported < list->count; r->next_reported++)
    if (list->data[r->next_reported].outcome != CHECK_WAITING && check_is_reported(&list->data[r->next_reported]))
      report(r, &list->data[r->next_reported]);
  if (r->report->in_order) {
    fflush(r->out);
    return;
  }
  for (size_t i = 0; i < list->count; i++) {
    if (list->data[i].outcome != CHECK_FAIL || list->data[i].cause != 0) continue;
    report(r, &list->data[i]);
    for (size_t j = 0; j < list->count; j++)
      if (list->data[j].outcome == CHECK_FAIL && list->data[j].cause == i + 1) report(r, &list->data[j]);
  }
  fflush(r->out);
}

/* Reports what is over and did not fail, as far as nothing before it is still running, or for a report that is in order,
 * as far as nothing before it has failed: what it follows from is not known yet. */
static void flush_reports(runner *r) {
  bool printed = false;
  for (; r->next_reported < r->list->count; r->next_reported++) {
    check *c = &r->list->data[r->next_reported];
    if (c->outcome == CHECK_FAIL && r->report->in_order) break;
    if (c->outcome == CHECK_RUNNING || (c->outcome == CHECK_WAITING && c->wanted)) break;
    if (c->outcome == CHECK_WAITING || c->outcome == CHECK_FAIL || !check_is_reported(c)) continue;
    if (r->terminal && !printed) fputs("\r\033[K", stderr);
    printed = true;
    report(r, c);
  }
  if (printed) fflush(r->out);
}

static void progress(const runner *r, const check *c) {
  if (r->terminal)
    fputs("\r\033[K", stderr), kit_print(stderr, "%zu of %zu: %.50s", r->next_reported, r->list->count, c->name),
        fflush(stderr);
}

/* ---- running */

static void not_started(check *c, char *reason) {
  c->outcome = CHECK_FAIL;
  set_reason(c, "the kit could not start a process: ", reason != NULL ? reason : "out of memory");
  free(reason);
}

static bool unsupported(check *c) {
  if (c->excuse == NULL || c->expected) return false;
  c->outcome = CHECK_SKIP;
  set_reason(c, "unsupported: ", c->excuse);
  return true;
}

/* What is run first of the rest: where it fails, the others that wait for the same need not wait long. */
static const char *const proofs[] = {"streams/sync", "fences/signal-empty"};

/* Runs one alone. */
static void run_one(runner *r, check *c, bool survey) {
  char *reason;
  check_process *p = check_start(r->o, &c, 1, survey, r->list, &reason);
  if (p == NULL) {
    not_started(c, reason);
    return;
  }
  while (!check_poll(p)) {
    if (interrupted) {
      check_kill(p);
      return;
    }
    check_wait(&p, 1, 20);
  }
}

static check *find(const runner *r, const char *name, uint32_t index) {
  for (size_t i = 0; i < r->list->count; i++)
    if (strcmp(r->list->data[i].what->name, name) == 0 && r->list->data[i].index == index) return &r->list->data[i];
  return NULL;
}

static bool needs(const check *c, uint32_t stage) {
  return c->what->stage >= stage || (c->what->flags & KIT_OPENS) != 0;
}

/* Everything past the stage that the gate is for: on its device only where that is the device. */
static void close_gate(runner *r, const check *gate, uint32_t stage) {
  char before[256];
  snprintf(before, sizeof before, "not run, as %s %s: ", gate->name,
           gate->outcome == CHECK_SKIP ? "does not apply" : "failed");
  for (size_t i = 0; i < r->list->count; i++) {
    check *c = &r->list->data[i];
    if (c->outcome != CHECK_WAITING || !c->wanted || !needs(c, stage)) continue;
    if (stage == KIT_STAGE_DEVICE && c->index != gate->index) continue;
    if (unsupported(c)) continue;
    c->outcome = CHECK_SKIP;
    set_reason(c, before, gate->reason != NULL ? gate->reason : "");
  }
}

/* A device that makes nothing has been checked when it has refused everything with a message. */
static void skip_refused(const runner *r, const check *gate) {
  for (size_t i = 0; i < r->list->count; i++) {
    check *c = &r->list->data[i];
    if (c->outcome != CHECK_WAITING || !c->wanted || c->index != gate->index) continue;
    if (!needs(c, KIT_STAGE_DEVICE) || (c->what->flags & KIT_REFUSES) != 0 || unsupported(c)) continue;
    c->outcome = CHECK_SKIP;
    set_reason(c, "the device makes neither streams nor memory: ", gate->refuses);
  }
}

/* False where the gate is shut. */
static bool run_gate(runner *r, const char *name, uint32_t index, uint32_t stage) {
  check *gate = find(r, name, index);
  bool needed = false;
  for (size_t i = 0; i < r->list->count; i++)
    needed = needed || (r->list->data[i].wanted && needs(&r->list->data[i], stage));
  if (gate == NULL || (!needed && !gate->wanted)) return true;
  if (gate->outcome == CHECK_WAITING) {
    progress(r, gate);
    run_one(r, gate, false);
  }
  if (gate->outcome == CHECK_PASS && gate->refuses != NULL) skip_refused(r, gate);
  if (gate->outcome == CHECK_PASS) return true;
  close_gate(r, gate, stage);
  return false;
}

/* ---- cases in series */

typedef struct series {
  check_process *process; /* NULL: none runs */
  check *cases[CHECK_SERIES];
  size_t n;
} series;

static bool joins(const check *c) {
  return c->outcome == CHECK_WAITING && c->wanted && (c->what->flags & KIT_SERIES) != 0 && c->excuse == NULL &&
         !c->alone;
}

/* As many that each job has two turns with what is left. */
static size_t series_length(const runner *r, size_t from) {
  size_t left = 0;
  for (size_t i = from; i < r->list->count; i++) left += joins(&r->list->data[i]);
  const size_t n = left / (2 * r->o->jobs);
  return n < 1 ? 1 : n > CHECK_SERIES ? CHECK_SERIES : n;
}

/* The next case that waits, and what can follow it in its process; false where none waits. */
static bool take_series(runner *r, size_t *next, series *out) {
  check_list *list = r->list;
  out->n = 0;
  while (*next < list->count && out->n == 0) {
    check *c = &list->data[(*next)++];
    if (c->outcome != CHECK_WAITING || !c->wanted || unsupported(c)) continue;
    out->cases[out->n++] = c;
  }
  if (out->n == 0) return false;
  const check *first = out->cases[0];
  if (!joins(first)) return true;
  for (size_t most = series_length(r, *next - 1); *next < list->count && out->n < most; (*next)++) {
    check *c = &list->data[*next];
    if (!joins(c) || c->index != first->index || c->what->stage != first->what->stage) break;
    out->cases[out->n++] = c;
  }
  return true;
}

/* A failure behind other cases may be theirs: the case is run again alone, and where it passes then, it needs them to fail. */
static void judge_again(check *c, const check *before) {
  char text[256];
  if (c->outcome == CHECK_FAIL && before != NULL && c->fault != KIT_FAULT_HUNG) {
    c->alone = true;
    snprintf(text, sizeof text, "behind %s in one process, and not alone: ", before->name);
    set_reason(c, text, c->reason != NULL ? c->reason : "");
    free(c->behind);
    free(c->notes);
    free(c->output);
    c->behind = c->reason;
    c->reason = c->notes = c->output = NULL;
    c->outcome = CHECK_WAITING;
  } else if (c->alone && c->outcome == CHECK_PASS) {
    c->outcome = CHECK_FAIL;
    free(c->reason);
    c->reason = c->behind;
    c->behind = NULL;
  }
}

/* What the process did not come to waits again, and what has to be judged again. */
static void end_series(runner *r, series *s, size_t *next) {
  for (size_t i = s->n; i-- > 0;) {
    check *c = s->cases[i];
    if (c->outcome == CHECK_RUNNING) c->outcome = CHECK_WAITING;
    else judge_again(c, i > 0 ? s->cases[i - 1] : NULL);
    if (c->outcome == CHECK_WAITING) *next = (size_t)(c - r->list->data) < *next ? (size_t)(c - r->list->data) : *next;
    else excuse(c);
  }
  s->process = NULL;
}

static void run_rest(runner *r) {
  series running[64] = {{0}};
  check_process *processes[64];
  size_t next = 0, alive = 0, jobs = r->o->jobs;
  while (!interrupted) {
    for (size_t j = 0; j < jobs; j++) {
      series *s = &running[j];
      while (s->process == NULL && take_series(r, &next, s)) {
        char *reason;
        progress(r, s->cases[0]);
        s->process = check_start(r->o, s->cases, s->n, false, r->list, &reason);
        if (s->process == NULL) {
          for (size_t i = 0; i < s->n; i++) not_started(s->cases[i], i == 0 ? reason : NULL);
          continue;
        }
        for (size_t i = 0; i < s->n; i++) s->cases[i]->outcome = CHECK_RUNNING;
        alive++;
      }
      if (s->process != NULL && check_poll(s->process)) {
        end_series(r, s, &next);
        alive--;
      }
      processes[j] = s->process;
    }
    flush_reports(r);
    if (alive == 0 && next >= r->list->count) break;
    check_wait(processes, jobs, 20);
  }
  for (size_t j = 0; j < jobs; j++)
    if (running[j].process != NULL) check_kill(running[j].process);
}

/* The first two gates and the survey, after which the whole list is known. */
static int prepare(runner *r) {
  check_list *list = r->list;
  if (!check_list_make(r->o, list)) return CHECK_FAILED;
  uint32_t first = r->o->device == UINT32_MAX ? 0 : r->o->device;
  check *entry = find(r, gates[0], first), *open = find(r, gates[1], first);
  run_one(r, entry, false);
  if (entry->outcome == CHECK_PASS) run_one(r, open, false);
  check kept[2] = {*entry, *open};
  if (open->outcome == CHECK_PASS && !interrupted) {
    check survey = {.what = open->what, .group = open->group, .index = first, .name = "the survey"};
    run_one(r, &survey, true);
    if (survey.outcome != CHECK_PASS && !interrupted)
      kit_print(stderr, "heddle check-plugin: what the plugin has could not be listed: %s\n%s",
                survey.reason != NULL ? survey.reason : "out of memory", survey.output != NULL ? survey.output : "");
    free(survey.reason);
    free(survey.notes);
    free(survey.output);
    if (survey.outcome != CHECK_PASS) return CHECK_FAILED;
  }
  free(list->data);
  list->data = NULL;
  list->count = 0;
  if (!check_list_make(r->o, list)) return CHECK_FAILED;
  check *places[2] = {find(r, gates[0], first), find(r, gates[1], first)};
  for (int i = 0; i < 2; i++) {
    if (places[i] == NULL) continue;
    bool wanted = places[i]->wanted;
    *places[i] = kept[i];
    places[i]->wanted = wanted;
  }
  const char *none = list->n_devices > 0 ? check_list_unmatched(r->o, list) : NULL; /* else words are missing */
  if (none != NULL) {
    kit_print(stderr, "heddle check-plugin: there is no case '%s'; --list shows those there are\n", none);
    return CHECK_WRONG_WORDS;
  }
  return check_list_excuse(r->o, list);
}

static void run_all(runner *r) {
  check_list *list = r->list;
  uint32_t first = r->o->device == UINT32_MAX ? 0 : r->o->device;
  bool on = run_gate(r, gates[0], first, KIT_STAGE_ENTRY);
  if (on && !interrupted) on = run_gate(r, gates[1], first, KIT_STAGE_INSTANCE);
  for (size_t i = 0; on && i < list->count && !interrupted; i++)
    if (strcmp(list->data[i].what->name, gates[2]) == 0) run_gate(r, gates[2], list->data[i].index, KIT_STAGE_DEVICE);
  for (size_t i = 0; i < list->count; i++)
    if (is_gate(&list->data[i])) excuse(&list->data[i]);
  for (size_t p = 0; on && p < sizeof proofs / sizeof proofs[0]; p++)
    for (size_t i = 0; i < list->count && !interrupted; i++) {
      check *c = &list->data[i];
      if (strcmp(c->what->name, proofs[p]) != 0 || c->outcome != CHECK_WAITING || !c->wanted || unsupported(c))
        continue;
      progress(r, c);
      run_one(r, c, false);
      excuse(c);
    }
  if (!interrupted) run_rest(r);
}

bool check_has_passed(const check_list *list, const check_counts *counts) {
  if (counts->failed > 0 || counts->unexpected > 0) return false;
  for (size_t i = 0; i < list->count; i++) /* a plugin without a device here has not been checked */
    if (strcmp(list->data[i].what->name, gates[1]) == 0 && list->data[i].outcome == CHECK_SKIP) return false;
  return true;
}

int check_run(const check_options *o, check_list *list, FILE *out, check_counts *counts) {
  runner r = {.o = o, .list = list, .out = out, .report = check_find_report(o->format)};
  r.terminal = isatty(STDERR_FILENO) == 1;
  struct sigaction act = {.sa_handler = on_signal};
  sigemptyset(&act.sa_mask);
  sigaction(SIGINT, &act, NULL);
  sigaction(SIGTERM, &act, NULL);
  sigaction(SIGHUP, &act, NULL);
  const uint64_t start = kit_now_ms();
  list->began = (int64_t)time(NULL);
  int status = prepare(&r);
  if (status == CHECK_DONE) {
    r.report->begin(out, o, list);
    run_all(&r);
  }
  if (r.terminal) fputs("\r\033[K", stderr);
  if (interrupted) {
    kit_print(stderr, "heddle check-plugin: interrupted\n");
    return CHECK_FAILED;
  }
  if (status != CHECK_DONE) return status;
  flush_reports(&r);
  report_rest(&r);
  list->seconds = (double)(kit_now_ms() - start) / 1000;
  *counts = r.counts;
  r.report->end(out, o, list, &r.counts);
  if (r.counts.passed + r.counts.failed + r.counts.consequences + r.counts.skipped + r.counts.expected +
          r.counts.unexpected ==
      0) {
    kit_print(stderr, "heddle check-plugin: no case is left to run; --list shows those there are\n");
    return CHECK_WRONG_WORDS;
  }
  return check_has_passed(list, &r.counts) ? CHECK_DONE : CHECK_FAILED;
}
