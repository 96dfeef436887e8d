/* modules/tvm/loader_functions.c: loaders of modules that are functions, for languages whose functions are values: what a
 * loader is asked for goes through one function a module. */
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "modules/tvm/convert.h"
#include "modules/tvm/loaders.h"

/* A module that such a loader made. */
typedef struct made {
  heddle_function *ask;
  const void *data; /* what it was loaded from, which stays as long as the module */
  uint64_t bytes;
  char **names; /* of its functions, up to NULL */
} made;

/* What a module answers to a question; *out is of the kind, or NONE. */
static heddle_status ask(const made *m, const char *what, heddle_value argument, int32_t kind, heddle_value *out,
                         heddle_error *err) {
  const heddle_value args[] = {{.kind = HEDDLE_VALUE_STRING, .of.s = what}, argument};
  heddle_status s = heddle_function_call(m->ask, args, argument.kind == HEDDLE_VALUE_NONE ? 1 : 2, out, err);
  if (s != HEDDLE_OK || out->kind == HEDDLE_VALUE_NONE || out->kind == kind) return s;
  heddle__value_drop(out);
  return heddle__fail(err, HEDDLE_EINVAL, "the module answered \"%s\" with a value of kind %d, not %d", what,
                      (int)out->kind, (int)kind);
}

static void free_made(made *m) {
  for (size_t i = 0; m->names != NULL && m->names[i] != NULL; i++) heddle__free(m->names[i]);
  heddle__free((void *)m->names);
  heddle_function_release(m->ask);
  heddle__free(m);
}

static heddle_status take_names(made *m, heddle_error *err) {
  heddle_value answer = {.kind = HEDDLE_VALUE_STRING};
  size_t n = 0, room = 0;
  for (;;) {
    if (n + 1 >= room) {
      void *more = heddle__grow((void *)m->names, room, 2 * room + 8, sizeof *m->names);
      if (more == NULL) return heddle__no_memory(err, "names of functions");
      m->names = more;
      room = 2 * room + 8;
    }
    heddle_status s =
        ask(m, "name", (heddle_value){.kind = HEDDLE_VALUE_INT, .of.i = (int64_t)n}, HEDDLE_VALUE_STRING, &answer, err);
    if (s != HEDDLE_OK || answer.kind == HEDDLE_VALUE_NONE) return s;
    m->names[n] = heddle__strndup(answer.of.s, strlen(answer.of.s));
    if (m->names[n] == NULL) return heddle__no_memory(err, "names of functions");
    n++;
  }
}

static heddle_status take_used(made *m, uint64_t *used, heddle_error *err) {
  heddle_value answer;
  heddle_status s = ask(m, "bytes", (heddle_value){.kind = HEDDLE_VALUE_NONE}, HEDDLE_VALUE_INT, &answer, err);
  if (s != HEDDLE_OK || answer.kind == HEDDLE_VALUE_NONE) return s;
  if (answer.of.i < 0 || (uint64_t)answer.of.i > *used)
    return heddle__fail(err, HEDDLE_EINVAL, "the module is said to have %lld bytes of %llu", (long long)answer.of.i,
                        (unsigned long long)*used);
  m->bytes = *used = (uint64_t)answer.of.i;
  return HEDDLE_OK;
}

static heddle_status load(void *self, const char *kind, const void *data, uint64_t bytes, uint64_t *used, void **module,
                          heddle_error *err) {
  const heddle_value args[] = {{.kind = HEDDLE_VALUE_STRING, .of.s = kind},
                               {.kind = HEDDLE_VALUE_BYTES, .of.data = data, .bytes = bytes}};
  heddle_value given;
  heddle_status s = heddle_function_call(self, args, 2, &given, err);
  if (s != HEDDLE_OK) return s;
  if (given.kind != HEDDLE_VALUE_FUNCTION) {
    heddle__value_drop(&given);
    return heddle__fail(err, HEDDLE_EINVAL, "the loader gave a value of kind %d, and no function", (int)given.kind);
  }
  made *m = heddle__alloc(1, sizeof *m);
  if (m == NULL) {
    heddle_function_release(given.of.function);
    return heddle__no_memory(err, "a module");
  }
  *m = (made){.ask = given.of.function, .data = data, .bytes = bytes};
  s = take_used(m, used, err);
  if (s == HEDDLE_OK) s = take_names(m, err);
  if (s == HEDDLE_OK) *module = m;
  else free_made(m);
  return s;
}

static void release(void *self, void *module) {
  (void)self;
  free_made(module);
}

static const char *name(void *self, void *module, uint32_t i) {
  const made *m = module;
  (void)self;
  for (uint32_t at = 0; at < i; at++)
    if (m->names[at] == NULL) return NULL;
  return m->names[i];
}

static heddle_status save(void *self, void *module, void (*write)(void *to, const void *data, size_t bytes), void *to,
                          heddle_error *err) {
  const made *m = module;
  heddle_value answer;
  (void)self;
  heddle_status s = ask(m, "save", (heddle_value){.kind = HEDDLE_VALUE_NONE}, HEDDLE_VALUE_BYTES, &answer, err);
  if (s != HEDDLE_OK) return s;
  if (answer.kind == HEDDLE_VALUE_NONE) write(to, m->data, (size_t)m->bytes);
  else write(to, answer.of.data, (size_t)answer.bytes);
  return HEDDLE_OK;
}

heddle_status heddle__functions_find(void *module, const char *name, heddle_function **out, heddle_error *err) {
  heddle_value answer;
  const heddle_value wanted = {.kind = HEDDLE_VALUE_STRING, .of.s = name};
  heddle_status s = ask(module, "find", wanted, HEDDLE_VALUE_FUNCTION, &answer, err);
  *out = s == HEDDLE_OK && answer.kind == HEDDLE_VALUE_FUNCTION ? answer.of.function : NULL;
  return s;
}

/* find and call are not asked for: what heddle__functions_find gives is a function already. */
const heddle_module_loader heddle__functions_loader = {
    .struct_size = sizeof(heddle_module_loader), .load = load, .release = release, .name = name, .save = save};
