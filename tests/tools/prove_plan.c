/* tests/tools/prove_plan.c: reads plans as `heddle plan --json` writes them, one a line, and proves each.
 * Prints a line for each: "ok", or "refused: TEXT"; a line that is no plan ends it with status 2. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "executor/prove.h"

typedef struct plan {
  heddle__proof proof;
  bool *hosts;
  heddle__proof_alloc *allocs;
  heddle__proof_initial *initial;
  heddle__proof_step *steps;
  heddle__proof_access *accesses; /* of all steps, in a row */
  uint32_t *waits;                /* likewise */
} plan;

static uint64_t number(const json_t *object, const char *key) {
  const json_t *value = json_object_get(object, key);
  if (!json_is_integer(value)) {
    fprintf(stderr, "prove_plan: '%s' is not an integer\n", key);
    exit(2);
  }
  return (uint64_t)json_integer_value(value);
}

/* How many sets there are of something: one where nothing is said of it. */
static uint32_t sets_of(const json_t *object, const char *key) {
  return json_object_get(object, key) != NULL ? (uint32_t)number(object, key) : 1;
}

/* 1 + a number; 0 where there is none. */
static uint32_t one_more(const json_t *object, const char *key) {
  return json_object_get(object, key) != NULL ? (uint32_t)number(object, key) + 1 : 0;
}

static json_t *list(const json_t *object, const char *key) {
  json_t *value = json_object_get(object, key);
  if (!json_is_array(value)) {
    fprintf(stderr, "prove_plan: '%s' is not an array\n", key);
    exit(2);
  }
  return value;
}

static bool truth(const json_t *object, const char *key) {
  return json_is_true(json_object_get(object, key));
}

static void *room(size_t count, size_t size) {
  void *p = heddle__alloc(count, size);
  if (p == NULL) {
    fprintf(stderr, "prove_plan: out of memory\n");
    exit(2);
  }
  return p;
}

static heddle__access_mode mode_of(const json_t *access) {
  static const char *const names[] = {"read", "write", "release", "acquire"};
  const char *name = json_string_value(json_object_get(access, "mode"));
  for (int i = 0; name != NULL && i < 4; i++)
    if (strcmp(name, names[i]) == 0) return (heddle__access_mode)i;
  fprintf(stderr, "prove_plan: unknown mode '%s'\n", name != NULL ? name : "");
  exit(2);
}

static void read_places(plan *p, const json_t *root) {
  const json_t *streams = list(root, "streams"), *allocs = list(root, "allocations"), *initial = list(root, "initial");
  size_t i;
  json_t *one;
  p->hosts = room(json_array_size(streams), sizeof *p->hosts);
  json_array_foreach(streams, i, one) p->hosts[i] = truth(one, "host");
  p->allocs = room(json_array_size(allocs), sizeof *p->allocs);
  json_array_foreach(allocs, i, one) {
    p->allocs[i].bytes = number(one, "bytes");
    p->allocs[i].coherent = truth(one, "coherent");
    p->allocs[i].sets = sets_of(one, "sets");
  }
  p->initial = room(json_array_size(initial), sizeof *p->initial);
  json_array_foreach(initial, i, one) {
    p->initial[i].alloc = (uint32_t)number(one, "alloc");
    p->initial[i].value = (uint32_t)number(one, "value");
    p->initial[i].offset = number(one, "offset");
    p->initial[i].bytes = number(one, "bytes");
    p->initial[i].becomes = one_more(one, "becomes");
  }
}

static void read_steps(plan *p, const json_t *steps) {
  size_t i, k, n_accesses = 0, n_waits = 0;
  json_t *step, *one;
  json_array_foreach(steps, i, step) {
    n_accesses += json_array_size(list(step, "accesses"));
    n_waits += json_array_size(list(step, "waits"));
  }
  p->steps = room(json_array_size(steps), sizeof *p->steps);
  p->accesses = room(n_accesses, sizeof *p->accesses);
  p->waits = room(n_waits, sizeof *p->waits);
  heddle__proof_access *access = p->accesses;
  uint32_t *wait = p->waits;
  json_array_foreach(steps, i, step) {
    const json_t *accesses = list(step, "accesses"), *waits = list(step, "waits");
    p->steps[i] = (heddle__proof_step){.stream = (uint32_t)number(step, "stream"),
                                       .n_accesses = (uint32_t)json_array_size(accesses),
                                       .n_waits = (uint32_t)json_array_size(waits),
                                       .accesses = access,
                                       .waits = wait};
    json_array_foreach(accesses, k, one) {
      access->alloc = (uint32_t)number(one, "alloc");
      access->value = (uint32_t)number(one, "value"); /* -1 is HEDDLE__NO_VALUE */
      access->offset = number(one, "offset");
      access->bytes = number(one, "bytes");
      access->mode = mode_of(one);
      access->keeps = one_more(one, "keeps");
      access++;
    }
    json_array_foreach(waits, k, one) *wait++ = (uint32_t)number(one, "step");
  }
}

static void prove_line(const json_t *root) {
  plan p = {0};
  heddle_error err = {0};
  read_places(&p, root);
  read_steps(&p, list(root, "steps"));
  p.proof = (heddle__proof){.n_streams = (uint32_t)json_array_size(list(root, "streams")),
                            .n_allocs = (uint32_t)json_array_size(list(root, "allocations")),
                            .n_values = (uint32_t)json_array_size(list(root, "values")),
                            .n_initial = (uint32_t)json_array_size(list(root, "initial")),
                            .n_steps = (uint32_t)json_array_size(list(root, "steps")),
                            .in_flight = (uint32_t)number(root, "in_flight"),
                            .stream_sets = sets_of(root, "stream_sets"),
                            .stream_is_host = p.hosts,
                            .allocs = p.allocs,
                            .initial = p.initial,
                            .steps = p.steps};
  heddle_status s = heddle__prove(&p.proof, NULL, &err);
  if (s == HEDDLE_OK) printf("ok\n");
  else if (s == HEDDLE_EPLAN) printf("refused: %s\n", err.text);
  else {
    fprintf(stderr, "prove_plan: %s\n", err.text);
    exit(2);
  }
  heddle__free(p.hosts);
  heddle__free(p.allocs);
  heddle__free(p.initial);
  heddle__free(p.steps);
  heddle__free(p.accesses);
  heddle__free(p.waits);
}

int main(void) {
  json_error_t where;
  for (int c; (c = getchar()) != EOF;) {
    if (c == '\n' || c == ' ') continue;
    ungetc(c, stdin);
    json_t *root = json_loadf(stdin, JSON_DISABLE_EOF_CHECK, &where);
    if (root == NULL) {
      fprintf(stderr, "prove_plan: %s\n", where.text);
      return 2;
    }
    prove_line(root);
    json_decref(root);
  }
  return 0;
}
