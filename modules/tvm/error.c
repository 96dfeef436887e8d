/* modules/tvm/error.c: the words of a failed function, from the calls by which compiled code leaves them to the error
 * that the caller gets. Where a tvm_ffi was in the process first, compiled code leaves them with that, and they are
 * fetched from there. */
#define _GNU_SOURCE /* RTLD_NOLOAD */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/failure.h"
#include "modules/tvm/thread.h"

void heddle__tvm_say(const char *kind, const char *words) {
  heddle__tvm_thread *self = heddle__tvm_self();
  snprintf(self->error, sizeof self->error, "%s%s%.900s", kind != NULL ? kind : "", kind != NULL ? ": " : "",
           words != NULL ? words : "");
  self->status = HEDDLE_OK;
  self->raised = false;
}

void heddle__tvm_forget(heddle__tvm_thread *self) {
  if (self->error[0] == '\0') return;
  (void)heddle__tvm_keep_as(HEDDLE__TEXT_ERROR, self->error, strlen(self->error));
  self->error[0] = '\0';
  self->status = HEDDLE_OK;
}

void heddle__tvm_say_error(const char *what, const heddle_error *why) {
  heddle__tvm_thread *self = heddle__tvm_self();
  heddle__tvm_say(what, why->text);
  self->status = why->status;
  self->api_code = why->api_code;
  self->about = *why;
}

void heddle__tvm_set_last_error(const char *words) {
  heddle__tvm_say(NULL, words);
}

void heddle__tvm_raise(const char *kind, const char *words) {
  heddle__tvm_say(kind, words);
  heddle__tvm_self()->raised = true;
}

void *heddle__of_tvm_ffi(const char *name) {
  void *library = dlopen("libtvm_ffi.so", RTLD_LAZY | RTLD_NOLOAD);
  void *symbol = library != NULL ? dlsym(library, name) : NULL;
  if (library != NULL) dlclose(library); /* its loader holds it */
  return symbol;
}

/* A library that TVM itself loaded after us imports the same name and finds ours first; its call is not from one of
 * ours, and goes on to TVM's. */
static bool pass_on(const char *kind, const char **parts, int32_t n) {
  void (*next)(const char *, const char **, int32_t) = NULL;
  if (heddle__tvm_self()->pool != NULL) return false;
  void *symbol = heddle__of_tvm_ffi("TVMFFIErrorSetRaisedFromCStrParts");
  if (symbol == NULL) return false;
  memcpy(&next, &symbol, sizeof next);
  next(kind, parts, n);
  return true;
}

void heddle__tvm_raise_parts(const char *kind, const char **parts, int32_t n) {
  heddle__tvm_thread *self = heddle__tvm_self();
  if (pass_on(kind, parts, n)) return;
  heddle__tvm_say(kind, NULL);
  self->raised = true;
  size_t used = strlen(self->error);
  for (int32_t i = 0; i < n && used < sizeof self->error - 1; i++) {
    if (parts[i] == NULL) continue;
    size_t more = strlen(parts[i]), room = sizeof self->error - 1 - used;
    memcpy(self->error + used, parts[i], more < room ? more : room);
    used += more < room ? more : room;
    self->error[used] = '\0';
  }
}

/* Takes the words that a tvm_ffi keeps for this thread: an object with two strings, kind and message. */
static void fetch(void) {
  void (*move)(void **) = NULL;
  void *symbol = heddle__of_tvm_ffi("TVMFFIErrorMoveFromRaised"), *object = NULL;
  if (symbol == NULL) return;
  memcpy(&move, &symbol, sizeof move);
  move(&object);
  if (object == NULL) return;
  const heddle__bytes *body = (const heddle__bytes *)((const heddle__object *)object + 1);
  char words[860];
  snprintf(words, sizeof words, "%.*s", (int)(body[1].size < sizeof words ? body[1].size : sizeof words - 1),
           body[1].data);
  char kind[64];
  snprintf(kind, sizeof kind, "%.*s", (int)(body[0].size < sizeof kind ? body[0].size : sizeof kind - 1), body[0].data);
  heddle__tvm_say(kind, words);
  heddle__tvm_drop(object, false);
}

heddle_status heddle__tvm_words(heddle_status usual, heddle_error *err) {
  heddle__tvm_thread *self = heddle__tvm_self();
  heddle_status s = self->status != HEDDLE_OK ? self->status : usual;
  heddle__fail(err, s, "%s", self->error[0] != '\0' ? self->error : "it failed, and left no words");
  if (self->status != HEDDLE_OK && err != NULL) err->api_code = self->api_code;
  if (self->status != HEDDLE_OK) heddle__copy_members(&self->about, err);
  heddle__tvm_forget(self);
  return s;
}

heddle_status heddle__tvm_failed(const char *function, const char *file, heddle_error *err) {
  heddle__tvm_thread *self = heddle__tvm_self();
  if (self->error[0] == '\0') {
    self->status = HEDDLE_OK; /* of words that are gone */
    fetch();
  }
  heddle_status s = self->status != HEDDLE_OK ? self->status : HEDDLE_EFAILED;
  heddle__fail(err, s, "function '%.200s' of %.200s: %s", function, file,
               self->error[0] != '\0' ? self->error : "it failed, and left no words");
  if (self->status != HEDDLE_OK && err != NULL) err->api_code = self->api_code;
  if (self->status != HEDDLE_OK) heddle__copy_members(&self->about, err);
  self->error[0] = '\0';
  self->status = HEDDLE_OK;
  return s;
}

void heddle__tvm_drop(void *object, bool era21) {
  if (era21) {
    heddle__object21 *o = object;
    if (__atomic_fetch_sub(&o->count, 1, __ATOMIC_ACQ_REL) == 1 && o->deleter != NULL) o->deleter(o);
    return;
  }
  /* One strong reference less; all strong ones together hold one weak one. */
  const uint64_t weak = UINT64_C(1) << 32, last = weak + 1;
  heddle__object *o = object;
  uint64_t before = __atomic_fetch_sub(&o->counts, 1, __ATOMIC_ACQ_REL);
  if (before == last) {
    if (o->deleter != NULL) o->deleter(o, 3);
  } else if ((before & 0xffffffff) == 1) {
    if (o->deleter != NULL) o->deleter(o, 1);
    if (__atomic_fetch_sub(&o->counts, weak, __ATOMIC_ACQ_REL) == weak && o->deleter != NULL) o->deleter(o, 2);
  }
}
